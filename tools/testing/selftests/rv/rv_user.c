// SPDX-License-Identifier: GPL-2.0
/*
 * USER mode, and registrations in the application's own protection domains: by
 * what they are named, what keeps what alive, what is left when things end in any
 * order. The keys are used by the application's own queue pairs, for real.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/memfd.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "rv_device.h"
#include "rv_i386.h"
#include "rv_reload.h"
#include "rv_test.h"

#define BUFFER (16 * RVC_PAGE)
#define ACCESS (IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE)

/* ---- the application's side of verbs ------------------------------------- */

static struct ibv_context *open_verbs(struct __test_metadata *_metadata, const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	ASSERT_NE(NULL, list);
	for (int i = 0; list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	ASSERT_NE(NULL, context)
		TH_LOG("cannot open %s by verbs", name);
	return context;
}

static int attach_user(struct __test_metadata *_metadata, const struct rvc_port *port)
{
	struct rv_attach_params params;
	int fd = rvt_open(_metadata);

	rvc_attach_init(&params.in, port);
	params.in.rdma_mode = RV_RDMA_MODE_USER;
	ASSERT_EQ(0, rvc_attach(fd, &params));
	return fd;
}

/* What REG_MEM is asked for on the application's PD. */
static void reg_init(struct rv_mem_params *params, int cmd_fd, uint32_t pd_handle,
		     const void *addr, uint64_t length, uint32_t access)
{
	memset(params, 0, sizeof(*params));
	params->in.cmd_fd_int = cmd_fd;
	params->in.ibv_pd_handle = pd_handle;
	params->in.addr = (uintptr_t)addr;
	params->in.length = length;
	params->in.access = access;
}

static int reg_at(int fd, int cmd_fd, uint32_t pd_handle, const void *addr, uint64_t length,
		  uint32_t access, struct rvc_mr *mr)
{
	struct rv_mem_params params;
	struct rvc_mr unused;

	reg_init(&params, cmd_fd, pd_handle, addr, length, access);
	return rvc_reg_with(fd, &params.in, mr ? mr : &unused);
}

static int reg(int fd, struct ibv_pd *pd, const void *addr, uint64_t length, struct rvc_mr *mr)
{
	return reg_at(fd, pd->context->cmd_fd, pd->handle, addr, length, ACCESS, mr);
}

static struct rv_cache_stats_params_out stats_of(struct __test_metadata *_metadata, int fd)
{
	struct rv_cache_stats_params_out stats;

	ASSERT_EQ(0, rvc_cache_stats(fd, &stats));
	return stats;
}

/* The number of lines that "rdma res show mr" has with some text. */
static int shown(const char *device, const char *text)
{
	char command[256], line[16];
	FILE *f;
	int n = -1;

	snprintf(command, sizeof(command), "rdma -d res show mr dev %s | grep -c -- '%s'", device,
		 text);
	f = popen(command, "r");
	if (!f)
		return -1;
	if (fgets(line, sizeof(line), f))
		n = atoi(line);
	pclose(f);
	return n;
}

static int shown_of(const char *device, pid_t pid)
{
	char text[32];

	snprintf(text, sizeof(text), " pid %d ", pid);
	return shown(device, text);
}

/* The same by its key, which tells of it when its process is no more, too. */
static int shown_key(const char *device, uint32_t lkey)
{
	char text[32];

	snprintf(text, sizeof(text), " lkey 0x%x ", lkey);
	return shown(device, text);
}

/* ---- a queue pair that is connected to itself ---------------------------- */

struct loop {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void loop_init(struct __test_metadata *_metadata, struct loop *loop, struct ibv_pd *pd,
		      const struct rvc_port *port)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = port->num,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	loop->cq = ibv_create_cq(pd->context, 32, NULL, NULL, 0);
	ASSERT_NE(NULL, loop->cq);
	init.send_cq = init.recv_cq = loop->cq;
	loop->qp = ibv_create_qp(pd, &init);
	ASSERT_NE(NULL, loop->qp);
	ASSERT_EQ(0, ibv_modify_qp(loop->qp, &attr, IBV_QP_STATE | IBV_QP_PORT |
				   IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = loop->qp->qp_num;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 1;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = port->num;
	attr.ah_attr.grh.hop_limit = 64;
	attr.ah_attr.grh.sgid_index = port->gid_index;
	memcpy(attr.ah_attr.grh.dgid.raw, port->gid, 16);
	ASSERT_EQ(0, ibv_modify_qp(loop->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 18;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	ASSERT_EQ(0, ibv_modify_qp(loop->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
				   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				   IBV_QP_MAX_QP_RD_ATOMIC));
}

/* An RDMA WRITE from one registration to another; the completion's status. */
static int loop_write(struct __test_metadata *_metadata, struct loop *loop,
		      const struct rvc_mr *from, const struct rvc_mr *to)
{
	struct ibv_sge sge = { .addr = from->iova, .length = from->length, .lkey = from->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = to->iova, .rkey = to->rkey },
	};
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_post_send(loop->qp, &wr, &bad));
	ASSERT_TRUE(RVC_WAIT_FOR(ibv_poll_cq(loop->cq, 1, &wc) == 1));
	return wc.status;
}

/* ---- the fixture --------------------------------------------------------- */

FIXTURE(user)
{
	struct rvc_port port;
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint8_t *buf;
	int fd;
};

FIXTURE_SETUP(user)
{
	rvt_find_port(_metadata, &self->port);
	self->context = open_verbs(_metadata, self->port.dev);
	self->pd = ibv_alloc_pd(self->context);
	ASSERT_NE(NULL, self->pd);
	self->buf = rvt_alloc(_metadata, BUFFER);
	self->fd = attach_user(_metadata, &self->port);
}

FIXTURE_TEARDOWN(user)
{
	close(self->fd);
}

/* ---- ATTACH -------------------------------------------------------------- */

TEST_F(user, attach_answers_that_there_is_no_job)
{
	struct rv_attach_params params;
	int fd = rvt_open(_metadata);

	rvc_attach_init(&params.in, &self->port);
	params.in.rdma_mode = RV_RDMA_MODE_USER;
	params.in.mr_cache_size = 7;
	params.in.reconnect_timeout = 30;
	ASSERT_EQ(0, rvc_attach(fd, &params));
	EXPECT_EQ(65535, params.out.rv_index);
	EXPECT_EQ(7, params.out.mr_cache_size);
	EXPECT_EQ(0, params.out.q_depth);
	EXPECT_EQ(0, params.out.reconnect_timeout);
	EXPECT_EQ(512 * RVC_PAGE, params.out.max_fmr_size);
	EXPECT_ERRNO(EBUSY, rvc_attach(fd, &params));
}

/* Nothing of this is looked at but the name. */
TEST_F(user, attach_needs_no_port)
{
	struct rv_attach_params params;
	int fd = rvt_open(_metadata);

	memset(&params, 0xff, sizeof(params));
	memcpy(params.in.dev_name, self->port.dev, sizeof(self->port.dev));
	params.in.rdma_mode = RV_RDMA_MODE_USER | RV_RDMA_MODE_UPSIZE_CPU;
	params.in.mr_cache_size = 0;
	params.in.reconnect_timeout = 0;
	params.in.hb_interval = 0;
	ASSERT_EQ(0, rvc_attach(fd, &params));
	EXPECT_EQ(1024, params.out.mr_cache_size);
}

TEST_F(user, attach_checks_the_timeouts)
{
	struct rv_attach_params params;
	int fd = rvt_open(_metadata);

	rvc_attach_init(&params.in, &self->port);
	params.in.rdma_mode = RV_RDMA_MODE_USER;
	params.in.reconnect_timeout = 1;
	params.in.hb_interval = 1000;
	EXPECT_ERRNO(EINVAL, rvc_attach(fd, &params));
}

TEST_F(user, there_is_no_ring)
{
	struct rvc_ring ring;
	struct rv_event_stats_params_out stats;

	EXPECT_ERRNO(EINVAL, rvc_ring_map(self->fd, 64, &ring));
	memset(&stats, 0xaa, sizeof(stats));
	ASSERT_EQ(0, rvc_event_stats(self->fd, &stats));
	EXPECT_EQ(0, stats.send_write_cqe);
	EXPECT_EQ(0, stats.recv_write_bytes);
}

TEST_F(user, there_are_no_connections)
{
	struct rv_conn_create_params create;
	struct rv_conn_connect_params_in connect;
	struct rv_conn_get_stats_params_out stats;
	struct rv_post_write_params post;
	struct rvc_conn conn;
	struct rvc_mr mr;
	uint32_t count;

	rvc_create_init(&create.in, &self->port, RVT_PEER_ABOVE(&self->port));
	EXPECT_ERRNO(EINVAL, rvc_conn_create(self->fd, &create, &conn));
	rvc_connect_init(&connect, &self->port, RVT_PEER_ABOVE(&self->port), 1);
	EXPECT_ERRNO(EINVAL, rvc_conn_connect(self->fd, &connect));
	EXPECT_ERRNO(EINVAL, rvc_conn_connected(self->fd, 1));
	EXPECT_ERRNO(EINVAL, rvc_conn_count(self->fd, 1, 0, &count));
	EXPECT_ERRNO(EINVAL, rvc_conn_stats(self->fd, 0, RV_CONN_STAT_AGGREGATE, &stats));
	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
	rvc_post_init(&post.in, 1, &mr, 0x1000, 1);
	EXPECT_ERRNO(EINVAL, rvc_post(self->fd, &post));
}

TEST_F(user, the_kernel_has_no_protection_domain)
{
	struct rvc_mr mr;

	EXPECT_ERRNO(EINVAL, rvc_reg(self->fd, self->buf, BUFFER, RVC_ACCESS_TARGET, &mr));
}

/* ---- REG_MEM ------------------------------------------------------------- */

TEST_F(user, the_iova_is_the_address)
{
	struct rvc_mr whole, part;

	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &whole));
	EXPECT_EQ((uintptr_t)self->buf, whole.iova);
	EXPECT_NE(0, whole.handle);
	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf + 5000, 77, &part));
	EXPECT_EQ((uintptr_t)self->buf + 5000, part.iova);
	EXPECT_EQ(whole.lkey, part.lkey);
	EXPECT_EQ(whole.handle, part.handle);
	EXPECT_EQ(0, rvc_dereg(self->fd, &part));
	EXPECT_EQ(0, rvc_dereg(self->fd, &whole));
	EXPECT_ERRNO(EINVAL, rvc_dereg(self->fd, &whole));
}

TEST_F(user, hits_and_misses_are_counted)
{
	struct rvc_mr mr;

	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
		ASSERT_EQ(0, rvc_dereg(self->fd, &mr));
	}
	EXPECT_EQ(1, stats_of(_metadata, self->fd).miss);
	EXPECT_EQ(2, stats_of(_metadata, self->fd).hit);
	EXPECT_EQ(0, stats_of(_metadata, self->fd).failed);
	EXPECT_EQ(1, stats_of(_metadata, self->fd).count);
	EXPECT_EQ(0, stats_of(_metadata, self->fd).inuse);
}

/* In both older forms of the ioctl the PD is named, too. */
TEST_F(user, older_forms)
{
	struct rv_mem_params_r1 r1;
	struct rv_mem_params_r4 r4;
	struct rv_mem_params now;

	reg_init(&now, self->context->cmd_fd, self->pd->handle, self->buf, BUFFER, ACCESS);
	memcpy(&r1, &now, sizeof(r1));
	memcpy(&r4, &now, sizeof(r4));
	ASSERT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_REG_MEM_R1, &r1));
	ASSERT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_REG_MEM_R4, &r4));
	ASSERT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_REG_MEM, &now));
	EXPECT_EQ(r1.out.lkey, now.out.lkey);
	EXPECT_EQ(r4.out.lkey, now.out.lkey);
	reg_init(&now, -1, self->pd->handle, self->buf, BUFFER, ACCESS);
	memcpy(&r1, &now, sizeof(r1));
	memcpy(&r4, &now, sizeof(r4));
	EXPECT_ERRNO(EFAULT, rvc_ioctl(self->fd, RV_IOCTL_REG_MEM_R1, &r1));
	EXPECT_ERRNO(EFAULT, rvc_ioctl(self->fd, RV_IOCTL_REG_MEM_R4, &r4));
}

/*
 * A 32-bit program's REG_MEM has the number of a shorter 64-bit one, and its driver
 * data in other places: taken for that, they would have billions of bytes.
 */
TEST_F(user, from_i386_entry_with_driver_data)
{
	static const unsigned int forms[] = { 0xc0381bf3, 0xc0301bf3, 0xc0281bf3 };
	struct rv_mem_params params;
	uint8_t *low = mmap(NULL, RVC_PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	uint32_t data[2] = { 8, (uintptr_t)low + RVC_PAGE / 2 };

	ASSERT_NE(MAP_FAILED, (void *)low);
	if (RVT_IN_CHILD(getpid_of_i386() == getpid() ? 0 : 1))
		SKIP(return, "this kernel has no i386 system calls");
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		/* A range of its own, so that nothing is found in the cache. */
		reg_init(&params, self->context->cmd_fd, self->pd->handle,
			 self->buf + i * RVC_PAGE, RVC_PAGE, ACCESS);
		memcpy(low, &params, offsetof(struct rv_mem_params_in, ulen));
		memcpy(low + offsetof(struct rv_mem_params_in, ulen), data, sizeof(data));
		EXPECT_EQ(0, ioctl_of_i386(self->fd, forms[i], low));
		memcpy(&params, low, sizeof(params.out));
		EXPECT_NE(0, params.out.lkey);
	}
	EXPECT_EQ(ARRAY_SIZE(forms), stats_of(_metadata, self->fd).miss);
}

TEST_F(user, access_bits_follow_the_core)
{
	static const struct { uint32_t access; int error; } rows[] = {
		{ 0, 0 },
		{ IB_UVERBS_ACCESS_LOCAL_WRITE, 0 },
		{ ACCESS | IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_ATOMIC, 0 },
		{ IB_UVERBS_ACCESS_REMOTE_WRITE, EINVAL },
		{ IB_UVERBS_ACCESS_REMOTE_ATOMIC, EINVAL },
		{ ACCESS | 0x400, EINVAL },
		{ ACCESS | 0x10000000, EINVAL },
		{ ACCESS | 0x40000000, EINVAL },
		/* A window that is bound to it would keep it from being deregistered. */
		{ ACCESS | IB_UVERBS_ACCESS_MW_BIND, EOPNOTSUPP },
		{ ACCESS | IB_UVERBS_ACCESS_ON_DEMAND, EOPNOTSUPP },
	};

	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		EXPECT_EQ(-rows[i].error, reg_at(self->fd, self->context->cmd_fd, self->pd->handle,
						 self->buf, BUFFER, rows[i].access, NULL))
			TH_LOG("access %#x", rows[i].access);
}

TEST_F(user, bad_ranges)
{
	int cmd_fd = self->context->cmd_fd;
	uint32_t pd = self->pd->handle;
	struct rvc_mr mr;

	EXPECT_ERRNO(EFAULT, reg_at(self->fd, cmd_fd, pd, self->buf, 0, ACCESS, NULL));
	EXPECT_ERRNO(EFAULT, reg_at(self->fd, cmd_fd, pd, NULL, BUFFER, ACCESS, NULL));
	EXPECT_ERRNO(EINVAL, reg_at(self->fd, cmd_fd, pd, self->buf, ~0ULL, ACCESS, NULL));
	EXPECT_EQ(0, stats_of(_metadata, self->fd).count);
	/* The limit of fast registrations is none here. */
	self->buf = rvt_alloc(_metadata, 600 * RVC_PAGE);
	EXPECT_EQ(0, reg(self->fd, self->pd, self->buf, 600 * RVC_PAGE, &mr));
}

/* A range that can only be read cannot be registered for writing, but for reading. */
TEST_F(user, read_only_memory)
{
	ASSERT_EQ(0, mprotect(self->buf, BUFFER, PROT_READ));
	EXPECT_ERRNO(EFAULT, reg(self->fd, self->pd, self->buf, BUFFER, NULL));
	EXPECT_EQ(0, reg_at(self->fd, self->context->cmd_fd, self->pd->handle, self->buf, BUFFER, 0,
			    NULL));
}

TEST_F(user, too_much_driver_data)
{
	struct rv_mem_params params;

	reg_init(&params, self->context->cmd_fd, self->pd->handle, self->buf, BUFFER, ACCESS);
	params.in.ulen = 4 * 65535 + 1;
	params.in.udata = self->buf;
	EXPECT_ERRNO(EINVAL, rvc_ioctl(self->fd, RV_IOCTL_REG_MEM, &params));
	params.in.ulen = ~0UL;
	EXPECT_ERRNO(EINVAL, rvc_ioctl(self->fd, RV_IOCTL_REG_MEM, &params));
	params.in.ulen = 4 * 65535;
	EXPECT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_REG_MEM, &params));
}

#define TRACING "/sys/kernel/tracing/"
#define PROBE "rv_user_test"

/*
 * The driver gets the application's data as they are. rxe looks at none, so a
 * probe at its entry tells: the data are its seventh argument, on the stack.
 */
TEST_F(user, driver_data_arrive)
{
	struct rv_mem_params params;
	char command[512];

	if (system("mountpoint -q " TRACING " || mount -t tracefs tracefs " TRACING) ||
	    system("echo 'p:" PROBE " rxe_reg_user_mr where=+0($stack1):x64 answer=+8($stack1):x64 "
		   "length=+16($stack1):u64 room=+24($stack1):u64' >>" TRACING "kprobe_events"))
		SKIP(return, "no kprobe events here");
	ASSERT_EQ(0, system("echo 1 >" TRACING "events/kprobes/" PROBE "/enable"));
	reg_init(&params, self->context->cmd_fd, self->pd->handle, self->buf, BUFFER, ACCESS);
	params.in.ulen = 24;
	params.in.udata = (void *)0x123456789000;
	EXPECT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_REG_MEM, &params));
	EXPECT_EQ(0, system("echo 0 >" TRACING "events/kprobes/" PROBE "/enable"));
	snprintf(command, sizeof(command), "grep -q 'where=0x123456789000 answer=0x0 length=24 room=0' "
		 TRACING "trace || { cat " TRACING "trace >&2; false; }");
	EXPECT_EQ(0, system(command));
	EXPECT_EQ(0, system("echo '-:" PROBE "' >>" TRACING "kprobe_events && echo >" TRACING "trace"));
}

/* ---- what the PD is named by --------------------------------------------- */

/*
 * Whatever a process can have under a descriptor, and no PD is in it. Each is
 * refused, and what was a good registration before still is one.
 */
TEST_F(user, descriptors_of_every_kind)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(self->context);
	int pair[2], pipes[2];
	char path[64];
	struct rvc_mr mr;

	ASSERT_NE(NULL, channel);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	ASSERT_EQ(0, pipe(pipes));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->context->cmd_fd);
	struct { const char *what; int fd; } rows[] = {
		{ "none", -1 },
		{ "closed", 1000 },
		{ "INT_MIN", INT32_MIN },
		{ "/dev/null", open("/dev/null", O_RDWR) },
		{ "/dev/zero", open("/dev/zero", O_RDWR) },
		{ "/dev/tty or console", open("/dev/console", O_RDWR | O_NOCTTY) },
		{ "/dev/kmsg", open("/dev/kmsg", O_RDWR) },
		{ "regular file", open("/proc/self/exe", O_RDONLY) },
		{ "proc file", open("/proc/self/maps", O_RDONLY) },
		{ "directory", open("/", O_RDONLY | O_DIRECTORY) },
		{ "socket", pair[0] },
		{ "inet socket", socket(AF_INET, SOCK_DGRAM, 0) },
		{ "netlink socket", socket(AF_NETLINK, SOCK_RAW, 0) },
		{ "pipe", pipes[0] },
		{ "eventfd", eventfd(0, 0) },
		{ "timerfd", timerfd_create(CLOCK_MONOTONIC, 0) },
		{ "epoll", epoll_create1(0) },
		{ "memfd", memfd_create("rv", 0) },
		{ "rv, not attached", rvc_open() },
		{ "rv, itself", self->fd },
		{ "async events", self->context->async_fd },
		{ "completion channel", channel->fd },
		{ "rdma_cm", open("/dev/infiniband/rdma_cm", O_RDWR) },
		{ "umad", open("/dev/infiniband/umad0", O_RDWR) },
		{ "path of the uverbs file", open(path, O_PATH) },
	};

	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (rows[i].fd < 0 && i > 2) {
			TH_LOG("no %s here", rows[i].what);
			continue;
		}
		EXPECT_ERRNO(EFAULT, reg_at(self->fd, rows[i].fd, self->pd->handle, self->buf,
					    BUFFER, ACCESS, NULL))
			TH_LOG("%s", rows[i].what);
	}
	EXPECT_EQ(0, stats_of(_metadata, self->fd).count);
	EXPECT_LE(20, stats_of(_metadata, self->fd).failed);
	EXPECT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
}

/* A copy of the descriptor is as good, since it is the same open file. */
TEST_F(user, another_descriptor_of_the_same_file)
{
	struct rvc_mr mr, again;

	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
	ASSERT_EQ(0, reg_at(self->fd, dup(self->context->cmd_fd), self->pd->handle, self->buf,
			    BUFFER, ACCESS, &again));
	EXPECT_EQ(mr.lkey, again.lkey);
}

TEST_F(user, handles_that_are_none)
{
	struct ibv_cq *cq = ibv_create_cq(self->context, 4, NULL, NULL, 0);
	int cmd_fd = self->context->cmd_fd;

	ASSERT_NE(NULL, cq);
	EXPECT_ERRNO(EINVAL, reg_at(self->fd, cmd_fd, 12345, self->buf, BUFFER, ACCESS, NULL));
	EXPECT_ERRNO(EINVAL, reg_at(self->fd, cmd_fd, ~0U, self->buf, BUFFER, ACCESS, NULL));
	EXPECT_ERRNO(EINVAL, reg_at(self->fd, cmd_fd, 1U << 31, self->buf, BUFFER, ACCESS, NULL));
	/* Of something else. */
	ASSERT_NE(self->pd->handle, cq->handle);
	EXPECT_ERRNO(EINVAL, reg_at(self->fd, cmd_fd, cq->handle, self->buf, BUFFER, ACCESS, NULL));
	/* Of a PD that is no more. */
	uint32_t handle = self->pd->handle;

	ASSERT_EQ(0, ibv_dealloc_pd(self->pd));
	EXPECT_ERRNO(EINVAL, reg_at(self->fd, cmd_fd, handle, self->buf, BUFFER, ACCESS, NULL));
}

/* A uverbs file of which nobody has made a context. */
TEST_F(user, file_without_a_context)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", self->context->device->dev_name);
	fd = open(path, O_RDWR);
	ASSERT_LE(0, fd);
	EXPECT_ERRNO(EINVAL, reg_at(self->fd, fd, 0, self->buf, BUFFER, ACCESS, NULL));
}

/* ---- which PD a registration is in --------------------------------------- */

TEST_F(user, two_pds_have_two_registrations)
{
	struct ibv_pd *other = ibv_alloc_pd(self->context);
	struct loop loop, other_loop;
	struct rvc_mr mine, theirs, again;

	ASSERT_NE(NULL, other);
	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mine));
	ASSERT_EQ(0, reg(self->fd, other, self->buf, BUFFER, &theirs));
	EXPECT_NE(mine.lkey, theirs.lkey);
	EXPECT_NE(mine.handle, theirs.handle);
	EXPECT_EQ(2, stats_of(_metadata, self->fd).miss);
	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &again));
	EXPECT_EQ(mine.lkey, again.lkey);
	ASSERT_EQ(0, reg(self->fd, other, self->buf, BUFFER, &again));
	EXPECT_EQ(theirs.lkey, again.lkey);
	/* Each is good where it belongs, and nowhere else. */
	loop_init(_metadata, &loop, self->pd, &self->port);
	loop_init(_metadata, &other_loop, other, &self->port);
	EXPECT_EQ(IBV_WC_SUCCESS, loop_write(_metadata, &loop, &mine, &mine));
	EXPECT_EQ(IBV_WC_SUCCESS, loop_write(_metadata, &other_loop, &theirs, &theirs));
	EXPECT_NE(IBV_WC_SUCCESS, loop_write(_metadata, &loop, &theirs, &theirs));
	EXPECT_NE(IBV_WC_SUCCESS, loop_write(_metadata, &other_loop, &mine, &mine));
}

/* The same handle in two files. */
TEST_F(user, two_files_have_two_registrations)
{
	struct ibv_context *context = open_verbs(_metadata, self->port.dev);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct rvc_mr mine, theirs;

	ASSERT_NE(NULL, pd);
	ASSERT_EQ(self->pd->handle, pd->handle);
	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mine));
	ASSERT_EQ(0, reg(self->fd, pd, self->buf, BUFFER, &theirs));
	EXPECT_NE(mine.lkey, theirs.lkey);
}

/* In KERNEL mode the same range in the kernel's PD is another registration. */
TEST_F(user, kernel_mode_has_both)
{
	int fd = rvt_attach(_metadata, &self->port);
	struct rvc_mr kernel, mine, again;
	struct loop loop;

	ASSERT_EQ(0, rvc_reg(fd, self->buf, BUFFER, RVC_ACCESS_TARGET, &kernel));
	ASSERT_EQ(0, reg(fd, self->pd, self->buf, BUFFER, &mine));
	EXPECT_NE(kernel.lkey, mine.lkey);
	EXPECT_NE(kernel.iova, mine.iova);
	EXPECT_EQ((uintptr_t)self->buf, mine.iova);
	ASSERT_EQ(0, rvc_reg(fd, self->buf, BUFFER, RVC_ACCESS_TARGET, &again));
	EXPECT_EQ(kernel.lkey, again.lkey);
	ASSERT_EQ(0, reg(fd, self->pd, self->buf, BUFFER, &again));
	EXPECT_EQ(mine.lkey, again.lkey);
	loop_init(_metadata, &loop, self->pd, &self->port);
	EXPECT_EQ(IBV_WC_SUCCESS, loop_write(_metadata, &loop, &mine, &mine));
	close(fd);
}

static bool dealloc_goes(struct ibv_pd *pd, int *ret)
{
	*ret = ibv_dealloc_pd(pd);
	return *ret != EBUSY;
}

/* A PD that comes after another, with its handle, is another. */
TEST_F(user, a_pd_with_the_handle_of_another)
{
	uint32_t handle = self->pd->handle;
	struct rvc_mr mr;
	struct loop loop;
	int ret;

	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
	ASSERT_EQ(0, rvc_dereg(self->fd, &mr));
	ASSERT_EQ(0, munmap(self->buf, BUFFER));
	ASSERT_TRUE(RVC_WAIT_FOR(dealloc_goes(self->pd, &ret)));
	ASSERT_EQ(0, ret);
	ASSERT_EQ(self->buf, rvc_alloc_at(self->buf, BUFFER));
	self->pd = ibv_alloc_pd(self->context);
	ASSERT_EQ(handle, self->pd->handle);
	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
	EXPECT_EQ(2, stats_of(_metadata, self->fd).miss);
	loop_init(_metadata, &loop, self->pd, &self->port);
	EXPECT_EQ(IBV_WC_SUCCESS, loop_write(_metadata, &loop, &mr, &mr));
}

/* ---- what a registration is good for ------------------------------------- */

TEST_F(user, data_move)
{
	uint8_t *to = rvt_alloc(_metadata, BUFFER);
	struct rvc_mr source, target;
	struct loop loop;

	rvc_fill(self->buf, BUFFER, 1, 0);
	rvc_fill(to, BUFFER, 2, 0);
	ASSERT_EQ(0, reg_at(self->fd, self->context->cmd_fd, self->pd->handle, self->buf + 100,
			    BUFFER - 1000, 0, &source));
	ASSERT_EQ(0, reg(self->fd, self->pd, to + 777, BUFFER - 1000, &target));
	loop_init(_metadata, &loop, self->pd, &self->port);
	ASSERT_EQ(IBV_WC_SUCCESS, loop_write(_metadata, &loop, &source, &target));
	EXPECT_EQ(-1, rvc_check(to + 777, BUFFER - 1000, 1, 100));
	EXPECT_EQ(-1, rvc_check(to, 777, 2, 0));
	EXPECT_EQ(-1, rvc_check(to + BUFFER - 223, 223, 2, BUFFER - 223));
}

/* Without remote write nobody writes. */
TEST_F(user, access_is_as_asked_for)
{
	struct rvc_mr mr;
	struct loop loop;

	ASSERT_EQ(0, reg_at(self->fd, self->context->cmd_fd, self->pd->handle, self->buf, BUFFER,
			    IB_UVERBS_ACCESS_LOCAL_WRITE, &mr));
	loop_init(_metadata, &loop, self->pd, &self->port);
	EXPECT_NE(IBV_WC_SUCCESS, loop_write(_metadata, &loop, &mr, &mr));
}

/* When the file is closed, its keys are dead and its pages not pinned. */
TEST_F(user, keys_end_with_the_file)
{
	struct rvc_mr mr;
	struct ibv_mr *own;
	struct loop loop;

	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
	own = ibv_reg_mr(self->pd, rvt_alloc(_metadata, BUFFER), BUFFER, ACCESS);
	ASSERT_NE(NULL, own);
	loop_init(_metadata, &loop, self->pd, &self->port);
	ASSERT_EQ(IBV_WC_SUCCESS, loop_write(_metadata, &loop, &mr, &mr));
	ASSERT_EQ(0, close(self->fd));
	self->fd = -1;
	struct rvc_mr from = {
		.iova = (uintptr_t)own->addr, .length = BUFFER, .lkey = own->lkey,
	};

	EXPECT_NE(IBV_WC_SUCCESS, loop_write(_metadata, &loop, &from, &mr));
	EXPECT_EQ(BUFFER / 1024, rvc_proc_number("/proc/self/status", "VmPin"));
}

/* What "rdma resource" tells of one is what it tells of any registration. */
TEST_F(user, is_shown_as_any_registration)
{
	char text[64];
	struct rvc_mr mr;
	struct ibv_mr *own;

	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
	EXPECT_EQ(1, shown_of(self->port.dev, getpid()));
	snprintf(text, sizeof(text), "rkey 0x%x lkey 0x%x .*mrlen %lu .*pid %d ", mr.rkey, mr.lkey,
		 BUFFER, getpid());
	EXPECT_EQ(1, shown(self->port.dev, text))
		TH_LOG("%s; %d", text, system("rdma -d res show mr >&2"));
	own = ibv_reg_mr(self->pd, rvt_alloc(_metadata, BUFFER), BUFFER, ACCESS);
	ASSERT_NE(NULL, own);
	EXPECT_EQ(2, shown_of(self->port.dev, getpid()));
	ASSERT_EQ(0, close(self->fd));
	self->fd = -1;
	EXPECT_EQ(1, shown_of(self->port.dev, getpid()));
}

/* ---- changes of the memory ----------------------------------------------- */

TEST_F(user, unmapped_while_idle)
{
	struct rvc_mr mr;
	int ret;

	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
	ASSERT_EQ(0, rvc_dereg(self->fd, &mr));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->pd));
	ASSERT_EQ(0, munmap(self->buf, BUFFER));
	EXPECT_EQ(0, stats_of(_metadata, self->fd).count);
	EXPECT_EQ(1, stats_of(_metadata, self->fd).remove);
	EXPECT_TRUE(RVC_WAIT_FOR(dealloc_goes(self->pd, &ret)));
	EXPECT_EQ(0, ret);
}

/* Mapped again at the same address, the buffer gets a registration of its new pages. */
TEST_F(user, unmapped_while_in_use)
{
	struct rvc_mr old, new;
	uint8_t *from = rvt_alloc(_metadata, BUFFER);
	struct rvc_mr source;
	struct loop loop;

	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &old));
	ASSERT_EQ(0, munmap(self->buf, BUFFER));
	ASSERT_EQ(self->buf, rvc_alloc_at(self->buf, BUFFER));
	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &new));
	EXPECT_NE(old.lkey, new.lkey);
	rvc_fill(from, BUFFER, 3, 0);
	ASSERT_EQ(0, reg(self->fd, self->pd, from, BUFFER, &source));
	loop_init(_metadata, &loop, self->pd, &self->port);
	ASSERT_EQ(IBV_WC_SUCCESS, loop_write(_metadata, &loop, &source, &new));
	EXPECT_EQ(-1, rvc_check(self->buf, BUFFER, 3, 0));
	/* Who still has the old one may use and return it. */
	EXPECT_EQ(IBV_WC_SUCCESS, loop_write(_metadata, &loop, &source, &old));
	EXPECT_EQ(0, rvc_dereg(self->fd, &old));
	EXPECT_NE(IBV_WC_SUCCESS, loop_write(_metadata, &loop, &source, &old));
}

/* Another process has another memory; the parent's registrations stay. */
TEST_F(user, a_child_cannot_register)
{
	struct rvc_mr mr;
	struct loop loop;

	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
	EXPECT_EQ(EINVAL, RVT_IN_CHILD(-reg(self->fd, self->pd, self->buf, BUFFER, &mr)));
	EXPECT_EQ(EINVAL, RVT_IN_CHILD(-rvc_dereg(self->fd, &mr)));
	loop_init(_metadata, &loop, self->pd, &self->port);
	EXPECT_EQ(IBV_WC_SUCCESS, loop_write(_metadata, &loop, &mr, &mr));
}

/* ---- ends, in every order ------------------------------------------------ */

TEST_F(user, pd_cannot_go_while_something_is_cached)
{
	struct rvc_mr mr;

	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->pd));
	ASSERT_EQ(0, rvc_dereg(self->fd, &mr));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->pd));
	/* It is still good. */
	EXPECT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
	ASSERT_EQ(0, close(self->fd));
	self->fd = -1;
	EXPECT_EQ(0, ibv_dealloc_pd(self->pd));
	EXPECT_EQ(0, ibv_close_device(self->context));
}

/* Whatever type EVICT is of, what it evicts no longer holds the PD. */
TEST_F(user, pd_can_go_after_evict)
{
	uint64_t addr = (uintptr_t)self->buf;
	struct rv_evict_params_out out;
	struct rvc_mr mr;
	int ret;

	for (int type = RV_EVICT_TYPE_SEARCH_EXACT; type <= RV_EVICT_TYPE_AMOUNT; type++) {
		ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
		ASSERT_EQ(0, rvc_dereg(self->fd, &mr));
		ASSERT_EQ(EBUSY, ibv_dealloc_pd(self->pd));
		if (type == RV_EVICT_TYPE_SEARCH_EXACT)
			ret = rvc_evict_exact(self->fd, addr, BUFFER, ACCESS, &out);
		else if (type == RV_EVICT_TYPE_SEARCH_RANGE)
			ret = rvc_evict_range(self->fd, addr, BUFFER, &out);
		else
			ret = rvc_evict_amount(self->fd, BUFFER, 1, &out);
		ASSERT_EQ(0, ret)
			TH_LOG("type %d", type);
		EXPECT_EQ(BUFFER, out.bytes);
		EXPECT_EQ(1, out.count);
		ASSERT_EQ(0, ibv_dealloc_pd(self->pd))
			TH_LOG("type %d", type);
		self->pd = ibv_alloc_pd(self->context);
		ASSERT_NE(NULL, self->pd);
	}
}

/* What is in use stays, and so does its PD. */
TEST_F(user, evict_leaves_a_pd_in_use)
{
	struct rv_evict_params_out out;
	struct rvc_mr mr;

	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
	EXPECT_ERRNO(ENOENT, rvc_evict_amount(self->fd, BUFFER, 1, &out));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->pd));
	EXPECT_EQ(0, rvc_dereg(self->fd, &mr));
}

/* An application that closes the file of verbs first, in use or idle, loses nothing of rv. */
TEST_F(user, verbs_close_first)
{
	struct rvc_mr used, idle;

	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER / 2, &used));
	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf + BUFFER / 2, BUFFER / 2, &idle));
	ASSERT_EQ(0, rvc_dereg(self->fd, &idle));
	ASSERT_EQ(0, ibv_close_device(self->context));
	/* The file is there as long as something is registered in it. */
	EXPECT_EQ(2, shown_of(self->port.dev, getpid()));
	EXPECT_EQ(2, stats_of(_metadata, self->fd).count);
	EXPECT_EQ(0, rvc_dereg(self->fd, &used));
	EXPECT_ERRNO(EFAULT, reg_at(self->fd, self->context->cmd_fd, 0, self->buf, BUFFER / 2,
				    ACCESS, NULL));
	ASSERT_EQ(0, close(self->fd));
	self->fd = -1;
	EXPECT_EQ(0, rvc_proc_number("/proc/self/status", "VmPin"));
	EXPECT_EQ(0, shown_of(self->port.dev, getpid()));
}

/* Then the last registration that goes takes the file along: no PD of ours is left. */
TEST_F(user, verbs_close_first_and_memory_goes)
{
	char command[128];
	struct rvc_mr mr;

	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
	ASSERT_EQ(0, rvc_dereg(self->fd, &mr));
	ASSERT_EQ(0, ibv_close_device(self->context));
	snprintf(command, sizeof(command), "rdma res show pd dev %s | grep -q ' pid %d '",
		 self->port.dev, getpid());
	ASSERT_EQ(0, system(command));
	ASSERT_EQ(0, munmap(self->buf, BUFFER));
	EXPECT_TRUE(RVC_WAIT_FOR(system(command) != 0));
}

/* kill -9 of a process that has all of it, and of one that closed either before. */
static void kill_with(struct __test_metadata *_metadata, FIXTURE_DATA(user) *self, bool close_verbs,
		      bool close_rv)
{
	int ready[2];
	uint32_t lkey;
	pid_t pid;

	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct ibv_context *context = open_verbs(_metadata, self->port.dev);
		struct ibv_pd *pd = ibv_alloc_pd(context);
		int fd = attach_user(_metadata, &self->port);
		struct rvc_mr mr;
		bool good = !reg(fd, pd, self->buf, BUFFER, &mr) && !rvc_dereg(fd, &mr) &&
			    !reg(fd, pd, self->buf, RVC_PAGE, &mr);

		if (close_verbs)
			ibv_close_device(context);
		if (close_rv)
			close(fd);
		if (good && write(ready[1], &mr.lkey, sizeof(lkey)) == sizeof(lkey))
			pause();
		_exit(1);
	}
	close(ready[1]);
	ASSERT_EQ(sizeof(lkey), read(ready[0], &lkey, sizeof(lkey)));
	EXPECT_EQ(close_rv ? 0 : 1, shown_key(self->port.dev, lkey));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(256 + SIGKILL, rvt_wait_child(pid));
	EXPECT_TRUE(RVC_WAIT_FOR(shown_key(self->port.dev, lkey) == 0));
	close(ready[0]);
}

TEST_F(user, killed)
{
	kill_with(_metadata, self, false, false);
}

TEST_F(user, killed_after_verbs_closed)
{
	kill_with(_metadata, self, true, false);
}

TEST_F(user, killed_after_rv_closed)
{
	kill_with(_metadata, self, false, true);
}

/* A child that holds the files keeps the registrations of a parent that ends. */
TEST_F(user, a_child_holds_the_files)
{
	int ready[2], go[2];
	uint32_t lkey;
	char c;
	pid_t parent, child;

	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(go));
	/* So that the grandchild becomes ours. */
	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
	parent = fork();
	ASSERT_LE(0, parent);
	if (!parent) {
		struct ibv_context *context = open_verbs(_metadata, self->port.dev);
		struct ibv_pd *pd = ibv_alloc_pd(context);
		int fd = attach_user(_metadata, &self->port);
		struct rvc_mr mr;

		if (reg(fd, pd, self->buf, BUFFER, &mr))
			_exit(1);
		child = fork();
		if (!child) {
			if (write(ready[1], &mr.lkey, sizeof(lkey)) != sizeof(lkey) ||
			    read(go[0], &c, 1) != 1)
				_exit(1);
			_exit(0);
		}
		_exit(child < 0);
	}
	EXPECT_EQ(0, rvt_wait_child(parent));
	ASSERT_EQ(sizeof(lkey), read(ready[0], &lkey, sizeof(lkey)));
	EXPECT_EQ(1, shown_key(self->port.dev, lkey));
	ASSERT_EQ(1, write(go[1], "g", 1));
	EXPECT_EQ(0, rvt_wait_child(-1));
	EXPECT_TRUE(RVC_WAIT_FOR(shown_key(self->port.dev, lkey) == 0));
}

/* ---- exec ---------------------------------------------------------------- */

/* The other side of the test below: argv is the name, rv's file and verbs' file. */
static int after_exec(char **argv)
{
	void *buf = rvc_alloc(BUFFER);

	return -reg_at(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), buf, BUFFER, ACCESS, NULL);
}

TEST_F(user, not_after_exec)
{
	char fd[16], cmd_fd[16], handle[16];
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		struct ibv_context *context = open_verbs(_metadata, self->port.dev);
		struct ibv_pd *pd = ibv_alloc_pd(context);
		int file = attach_user(_metadata, &self->port);
		struct rvc_mr mr;

		if (reg(file, pd, self->buf, BUFFER, &mr))
			_exit(100);
		fcntl(file, F_SETFD, 0);
		fcntl(context->cmd_fd, F_SETFD, 0);
		snprintf(fd, sizeof(fd), "%d", file);
		snprintf(cmd_fd, sizeof(cmd_fd), "%d", context->cmd_fd);
		snprintf(handle, sizeof(handle), "%u", pd->handle);
		execl("/proc/self/exe", "rv_user", "--after-exec", fd, cmd_fd, handle, NULL);
		_exit(101);
	}
	EXPECT_EQ(EINVAL, rvt_wait_child(pid));
	EXPECT_TRUE(RVC_WAIT_FOR(shown_of(self->port.dev, pid) == 0));
}

/* ---- a device that goes -------------------------------------------------- */

FIXTURE(device)
{
	struct rvc_port port;
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint8_t *buf;
	int fd;
};

/* Whether rv is loaded after the device came, or before. */
FIXTURE_VARIANT(device)
{
	bool before_rv;
};

FIXTURE_VARIANT_ADD(device, after_rv) { .before_rv = false };
FIXTURE_VARIANT_ADD(device, before_rv) { .before_rv = true };

FIXTURE_SETUP(device)
{
	if (!rvt_device_make(_metadata, &self->port))
		SKIP(return, "no dummy network interfaces here");
	if (variant->before_rv)
		ASSERT_EQ(0, rvt_reload(""));
	self->context = open_verbs(_metadata, "rvtest");
	self->pd = ibv_alloc_pd(self->context);
	ASSERT_NE(NULL, self->pd);
	self->fd = attach_user(_metadata, &self->port);
	self->buf = rvt_alloc(_metadata, BUFFER);
}

FIXTURE_TEARDOWN_PARENT(device)
{
	rvt_device_unmake();
}

TEST_F(device, of_another_one)
{
	struct rvc_port port;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct rvc_mr mr;

	rvt_find_port(_metadata, &port);
	context = open_verbs(_metadata, port.dev);
	pd = ibv_alloc_pd(context);
	ASSERT_NE(NULL, pd);
	EXPECT_ERRNO(EINVAL, reg(self->fd, pd, self->buf, BUFFER, &mr));
	EXPECT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
}

/*
 * The order in which a device is taken from its users: rv lets go of its
 * registrations before verbs ends the protection domains they are in. The other
 * way round the kernel would warn of objects that cannot be destroyed.
 */
TEST_F(device, goes_with_registrations_in_use_and_idle)
{
	struct rvc_mr used, idle;
	struct loop loop;

	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER / 2, &used));
	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf + BUFFER / 2, BUFFER / 2, &idle));
	ASSERT_EQ(0, rvc_dereg(self->fd, &idle));
	loop_init(_metadata, &loop, self->pd, &self->port);
	ASSERT_EQ(IBV_WC_SUCCESS, loop_write(_metadata, &loop, &used, &idle));
	ASSERT_EQ(0, system(DEL_DEVICE));
	EXPECT_ERRNO(ENXIO, reg(self->fd, self->pd, self->buf, BUFFER, &used));
	EXPECT_ERRNO(ENXIO, rvc_dereg(self->fd, &used));
	EXPECT_EQ(0, rvc_proc_number("/proc/self/status", "VmPin"));
	close(self->fd);
}

TEST_F(device, goes_after_verbs_closed)
{
	struct rvc_mr mr;

	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
	ASSERT_EQ(0, ibv_close_device(self->context));
	ASSERT_EQ(0, system(DEL_DEVICE));
	EXPECT_ERRNO(ENXIO, rvc_dereg(self->fd, &mr));
	EXPECT_EQ(0, rvc_proc_number("/proc/self/status", "VmPin"));
}

/* The file of a device that has gone names nothing on the one that came. */
TEST_F(device, goes_and_comes_again)
{
	struct ibv_pd *pd;
	struct rvc_mr mr;
	int fd;

	ASSERT_EQ(0, reg(self->fd, self->pd, self->buf, BUFFER, &mr));
	ASSERT_EQ(0, system(DEL_DEVICE));
	ASSERT_EQ(0, system(ADD_DEVICE));
	ASSERT_EQ(0, rvc_port_find(&self->port, "rvtest"));
	fd = attach_user(_metadata, &self->port);
	EXPECT_ERRNO(EINVAL, reg(fd, self->pd, self->buf, BUFFER, &mr));
	pd = ibv_alloc_pd(open_verbs(_metadata, "rvtest"));
	ASSERT_NE(NULL, pd);
	EXPECT_EQ(0, reg(fd, pd, self->buf, BUFFER, &mr));
}

/* Registrations begin and end while the device goes: each works or says so. */
TEST_F(device, goes_under_load)
{
	uint8_t *buf = rvt_alloc(_metadata, 64 * RVC_PAGE);
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		struct ibv_context *context = open_verbs(_metadata, "rvtest");
		struct ibv_pd *pd = ibv_alloc_pd(context);
		int fd = attach_user(_metadata, &self->port);
		unsigned int i = 0;
		struct rvc_mr mr;
		int ret;

		do {
			ret = reg(fd, pd, buf + i++ % 64 * RVC_PAGE, RVC_PAGE, &mr);
			if (!ret && i % 3)
				ret = rvc_dereg(fd, &mr);
			if (i % 16 == 0)
				madvise(buf, 64 * RVC_PAGE, MADV_DONTNEED);
		} while (!ret);
		_exit(ret == -ENXIO ? 0 : 1);
	}
	ASSERT_TRUE(RVC_WAIT_FOR(shown_of("rvtest", pid) > 0));
	ASSERT_EQ(0, system(DEL_DEVICE));
	EXPECT_EQ(0, rvt_wait_child(pid));
}

/* ---- main ---------------------------------------------------------------- */

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "--after-exec"))
		return after_exec(argv);
	rvt_require();
	return test_harness_run(argc, argv);
}
