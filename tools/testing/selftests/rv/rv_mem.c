// SPDX-License-Identifier: GPL-2.0
/*
 * REG_MEM in its three forms and DEREG_MEM: every check that can fail, with its
 * errno; what may be registered and by whom; what stays pinned.
 *
 * What the cache does with registrations is in rv_cache.c.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "rv_test.h"

#define BUFFER_PAGES 16
#define LIMIT (512 * RVC_PAGE)	/* what rxe takes in one registration */

FIXTURE(mem)
{
	struct rvc_port port;
	uint8_t *buf;
	int fd;
	struct rvc_mr mr;
};

FIXTURE_SETUP(mem)
{
	rvt_find_port(_metadata, &self->port);
	self->fd = rvt_attach(_metadata, &self->port);
	self->buf = rvt_alloc(_metadata, BUFFER_PAGES * RVC_PAGE);
}

FIXTURE_TEARDOWN(mem)
{
	close(self->fd);
}

static struct rv_cache_stats_params_out stats_of(struct __test_metadata *_metadata, int fd)
{
	struct rv_cache_stats_params_out stats;

	ASSERT_EQ(0, rvc_cache_stats(fd, &stats));
	return stats;
}

/* ---- REG_MEM, refused ---------------------------------------------------- */

/*
 * One row for each check, in the three forms of the ioctl. After it the same
 * request without the spoiling must succeed.
 */
FIXTURE(reg_refused)
{
	struct rvc_port port;
	struct rv_mem_params good;
	struct rv_mem_params params;
	uint8_t *buf;
	int fd;
};

FIXTURE_VARIANT(reg_refused)
{
	void (*spoil)(struct rv_mem_params_in *in);
	int error;
};

#define REG_REFUSED(name, error_, statement)                               \
	static void spoil_reg_##name(struct rv_mem_params_in *in)          \
	{                                                                  \
		statement;                                                 \
	}                                                                  \
	FIXTURE_VARIANT_ADD(reg_refused, name)                             \
	{                                                                  \
		.spoil = spoil_reg_##name, .error = (error_)               \
	}

/* In a PD of the application, of which there is none: standard input is no uverbs file. */
REG_REFUSED(no_kernel_bit, EFAULT, in->access &= ~IBV_ACCESS_KERNEL);
REG_REFUSED(no_access_bit_at_all, EFAULT, in->access = 0);
REG_REFUSED(remote_write_without_local_write, EINVAL,
	    in->access = IBV_ACCESS_KERNEL | IB_UVERBS_ACCESS_REMOTE_WRITE);
REG_REFUSED(remote_atomic_without_local_write, EINVAL,
	    in->access = IBV_ACCESS_KERNEL | IB_UVERBS_ACCESS_REMOTE_ATOMIC);
REG_REFUSED(gpu_access_bit, EINVAL, in->access |= 0x10000000);
REG_REFUSED(unknown_access_bit_30, EINVAL, in->access |= 0x40000000);
REG_REFUSED(unknown_access_bit_10, EINVAL, in->access |= 0x400);
REG_REFUSED(one_page_above_the_limit, EINVAL, in->length = LIMIT + 1);
REG_REFUSED(the_limit_at_an_odd_address, EINVAL, in->addr += 1; in->length = LIMIT);
REG_REFUSED(length_of_the_address_space, EINVAL, in->length = 1ULL << 47);
REG_REFUSED(length_max, EINVAL, in->length = ~0ULL);
REG_REFUSED(length_0_at_a_page, EFAULT, in->length = 0);
REG_REFUSED(address_0, EFAULT, in->addr = 0);
REG_REFUSED(address_of_the_kernel, EFAULT, in->addr = 0xffff888000000000);
REG_REFUSED(address_not_canonical, EFAULT, in->addr = 0x8000000000000000);
REG_REFUSED(range_that_ends_in_a_gap, EFAULT, in->length = (BUFFER_PAGES + 1) * RVC_PAGE);

FIXTURE_SETUP(reg_refused)
{
	rvt_find_port(_metadata, &self->port);
	self->fd = rvt_attach(_metadata, &self->port);
	/* Behind the buffer there is nothing. */
	self->buf = mmap(NULL, 2 * BUFFER_PAGES * RVC_PAGE, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->buf);
	ASSERT_NE(NULL, rvc_alloc_at(self->buf, BUFFER_PAGES * RVC_PAGE));
	memset(&self->good, 0, sizeof(self->good));
	self->good.in.addr = (uintptr_t)self->buf;
	self->good.in.length = BUFFER_PAGES * RVC_PAGE;
	self->good.in.access = RVC_ACCESS_TARGET;
	self->params = self->good;
	variant->spoil(&self->params.in);
}

FIXTURE_TEARDOWN(reg_refused)
{
	close(self->fd);
}

TEST_F(reg_refused, reg_mem)
{
	EXPECT_ERRNO(variant->error, rvc_ioctl(self->fd, RV_IOCTL_REG_MEM, &self->params));
	EXPECT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_REG_MEM, &self->good));
}

TEST_F(reg_refused, reg_mem_r4)
{
	EXPECT_ERRNO(variant->error, rvc_ioctl(self->fd, RV_IOCTL_REG_MEM_R4, &self->params));
	EXPECT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_REG_MEM_R4, &self->good));
}

TEST_F(reg_refused, reg_mem_r1)
{
	EXPECT_ERRNO(variant->error, rvc_ioctl(self->fd, RV_IOCTL_REG_MEM_R1, &self->params));
	EXPECT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_REG_MEM_R1, &self->good));
}

/* Only failures of the registration itself count, not wrong arguments. */
TEST_F(reg_refused, is_counted_as_failed)
{
	struct rv_cache_stats_params_out stats;

	rvc_ioctl(self->fd, RV_IOCTL_REG_MEM, &self->params);
	stats = stats_of(_metadata, self->fd);
	EXPECT_EQ(variant->error == EFAULT, stats.failed);
	EXPECT_EQ(0, stats.count);
	EXPECT_EQ(0, stats.cache_size);
	EXPECT_EQ(0, stats.miss);
}

/* An address range that wraps around is no range. */
TEST_F(mem, range_that_wraps)
{
	int ret = rvc_reg(self->fd, (void *)-RVC_PAGE, 2 * RVC_PAGE, RVC_ACCESS_TARGET, &self->mr);

	EXPECT_TRUE(ret == -EINVAL || ret == -EFAULT)
		TH_LOG("returned %d", ret);
	ret = rvc_reg(self->fd, (void *)-1UL, 1, RVC_ACCESS_TARGET, &self->mr);
	EXPECT_TRUE(ret == -EINVAL || ret == -EFAULT)
		TH_LOG("returned %d", ret);
}

/* ---- REG_MEM, accepted --------------------------------------------------- */

FIXTURE(form)
{
	struct rvc_port port;
	struct rv_mem_params params;
	uint8_t *buf;
	int fd;
};

FIXTURE_VARIANT(form)
{
	unsigned long cmd;
};

FIXTURE_VARIANT_ADD(form, reg_mem) { .cmd = RV_IOCTL_REG_MEM };
FIXTURE_VARIANT_ADD(form, reg_mem_r4) { .cmd = RV_IOCTL_REG_MEM_R4 };
FIXTURE_VARIANT_ADD(form, reg_mem_r1) { .cmd = RV_IOCTL_REG_MEM_R1 };

FIXTURE_SETUP(form)
{
	rvt_find_port(_metadata, &self->port);
	self->fd = rvt_attach(_metadata, &self->port);
	self->buf = rvt_alloc(_metadata, BUFFER_PAGES * RVC_PAGE);
	memset(&self->params, 0, sizeof(self->params));
	self->params.in.addr = (uintptr_t)self->buf;
	self->params.in.length = BUFFER_PAGES * RVC_PAGE;
	self->params.in.access = RVC_ACCESS_TARGET;
}

FIXTURE_TEARDOWN(form)
{
	close(self->fd);
}

/* Exactly its size is read, and the answer is complete. */
TEST_F(form, reads_its_size)
{
	struct rv_mem_params *arg =
		rvt_at_page_end(_metadata, &self->params, _IOC_SIZE(variant->cmd));

	ASSERT_EQ(0, rvc_ioctl(self->fd, variant->cmd, arg));
	EXPECT_NE(0, arg->out.mr_handle);
	EXPECT_NE(0, arg->out.iova);
	EXPECT_NE(0, arg->out.rkey);
}

TEST_F(form, does_not_read_less)
{
	void *arg = rvt_at_page_end(_metadata, &self->params, _IOC_SIZE(variant->cmd) - 8);

	EXPECT_ERRNO(EFAULT, rvc_ioctl(self->fd, variant->cmd, arg));
}

TEST_F(form, writes_24_bytes)
{
	struct rv_mem_params before;

	memset((char *)&self->params + 28, 0x5a, sizeof(self->params) - 28);
	before = self->params;
	ASSERT_EQ(0, rvc_ioctl(self->fd, variant->cmd, &self->params));
	EXPECT_EQ(0, memcmp((char *)&self->params + 24, (char *)&before + 24,
			    sizeof(before) - 24));
}

/*
 * The PD, the file of the PD, the driver's data and the GPU members mean nothing
 * to a registration on the kernel PD. PSM3 gives them all the same.
 */
TEST_F(form, ignores_what_is_for_others)
{
	self->params.in.ibv_pd_handle = 77;
	self->params.in.cmd_fd_int = ~0U;
	self->params.in.pad = 1;
	self->params.in.ulen = 8;
	self->params.in.udata = RVT_BAD_POINTER;
	self->params.in.pad2 = 2;
	self->params.in.pad3 = 3;
	EXPECT_EQ(0, rvc_ioctl(self->fd, variant->cmd, &self->params));
}

/* The entry was made before the answer could not be written: it stays, idle. */
TEST_F(form, unwritable_answer)
{
	struct rv_cache_stats_params_out stats;

	EXPECT_ERRNO(EFAULT,
		     rvc_ioctl(self->fd, variant->cmd,
			       rvt_read_only(_metadata, &self->params, _IOC_SIZE(variant->cmd))));
	stats = stats_of(_metadata, self->fd);
	EXPECT_EQ(1, stats.count);
	EXPECT_EQ(0, stats.inuse);
	EXPECT_EQ(1, stats.miss);
	EXPECT_EQ(0, stats.failed);
	ASSERT_EQ(0, rvc_ioctl(self->fd, variant->cmd, &self->params));
	EXPECT_EQ(1, stats_of(_metadata, self->fd).hit);
}

/* One registration, whichever form asked first. */
TEST_F(form, shares_the_cache_with_the_others)
{
	struct rvc_mr mr;

	ASSERT_EQ(0, rvc_ioctl(self->fd, variant->cmd, &self->params));
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf, BUFFER_PAGES * RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	EXPECT_EQ(self->params.out.mr_handle, mr.handle);
	EXPECT_EQ(self->params.out.iova, mr.iova);
	EXPECT_EQ(self->params.out.lkey, mr.lkey);
	EXPECT_EQ(self->params.out.rkey, mr.rkey);
}

TEST_F(mem, largest_registration)
{
	uint8_t *buf = rvt_alloc(_metadata, LIMIT);

	EXPECT_EQ(0, rvc_reg(self->fd, buf, LIMIT, RVC_ACCESS_TARGET, &self->mr));
	EXPECT_EQ(0, rvc_dereg(self->fd, &self->mr));
}

/* Rounded to pages, which is what the limit and the cache count in. */
TEST_F(mem, largest_registration_at_an_odd_address)
{
	uint8_t *buf = rvt_alloc(_metadata, LIMIT);

	EXPECT_EQ(0, rvc_reg(self->fd, buf + 1, LIMIT - 1, RVC_ACCESS_TARGET, &self->mr));
	EXPECT_EQ(LIMIT, stats_of(_metadata, self->fd).cache_size);
}

TEST_F(mem, one_byte)
{
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf + 4095, 1, RVC_ACCESS_TARGET, &self->mr));
	EXPECT_EQ(RVC_PAGE, stats_of(_metadata, self->fd).cache_size);
}

/* Two bytes can lie in two pages. */
TEST_F(mem, two_bytes_across_pages)
{
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf + 4095, 2, RVC_ACCESS_TARGET, &self->mr));
	EXPECT_EQ(2 * RVC_PAGE, stats_of(_metadata, self->fd).cache_size);
}

TEST_F(mem, length_0_inside_a_page)
{
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf + 100, 0, RVC_ACCESS_TARGET, &self->mr));
	EXPECT_EQ(RVC_PAGE, stats_of(_metadata, self->fd).cache_size);
}

TEST_F(mem, every_sane_access)
{
	static const uint32_t access[] = {
		0,
		IB_UVERBS_ACCESS_LOCAL_WRITE,
		IB_UVERBS_ACCESS_REMOTE_READ,
		IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE,
		IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_READ,
		IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE |
			IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_ATOMIC,
	};

	for (size_t i = 0; i < ARRAY_SIZE(access); i++) {
		EXPECT_EQ(0, rvc_reg(self->fd, self->buf, RVC_PAGE, access[i] | IBV_ACCESS_KERNEL,
				     &self->mr))
			TH_LOG("access %#x", access[i]);
	}
}

/* Handles and keys of registrations that live side by side are all different. */
TEST_F(mem, handles_and_keys_differ)
{
	struct rvc_mr mr[BUFFER_PAGES];

	for (int i = 0; i < BUFFER_PAGES; i++) {
		ASSERT_EQ(0, rvc_reg(self->fd, self->buf + i * RVC_PAGE, RVC_PAGE,
				     RVC_ACCESS_TARGET, &mr[i]));
		EXPECT_NE(0, mr[i].handle);
		EXPECT_NE(0, mr[i].iova);
		for (int j = 0; j < i; j++) {
			EXPECT_NE(mr[j].handle, mr[i].handle);
			EXPECT_NE(mr[j].rkey, mr[i].rkey);
		}
	}
}

/* ---- B13: memory that the process itself may not write ------------------- */

TEST_F(mem, read_only_memory_cannot_be_written)
{
	struct rv_cache_stats_params_out stats;

	ASSERT_EQ(0, mprotect(self->buf, RVC_PAGE, PROT_READ));
	EXPECT_ERRNO(EFAULT, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &self->mr));
	EXPECT_ERRNO(EFAULT, rvc_reg(self->fd, self->buf, 2 * RVC_PAGE, RVC_ACCESS_TARGET,
				     &self->mr));
	EXPECT_ERRNO(EFAULT, rvc_reg(self->fd, self->buf, RVC_PAGE,
				     IBV_ACCESS_KERNEL | IB_UVERBS_ACCESS_LOCAL_WRITE, &self->mr));
	stats = stats_of(_metadata, self->fd);
	EXPECT_EQ(3, stats.failed);
	EXPECT_EQ(0, stats.count);
}

TEST_F(mem, read_only_memory_can_be_read)
{
	ASSERT_EQ(0, mprotect(self->buf, RVC_PAGE, PROT_READ));
	EXPECT_EQ(0, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_SOURCE, &self->mr));
}

/* A file opened for reading: writing would change it for everybody. */
TEST_F(mem, file_opened_for_reading)
{
	char path[64];
	void *map;
	int file, read_only;

	file = memfd_create("rv", 0);
	ASSERT_LE(0, file);
	ASSERT_EQ(0, ftruncate(file, 2 * RVC_PAGE));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	read_only = open(path, O_RDONLY);
	ASSERT_LE(0, read_only);
	map = mmap(NULL, 2 * RVC_PAGE, PROT_READ, MAP_SHARED, read_only, 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_ERRNO(EFAULT, rvc_reg(self->fd, map, 2 * RVC_PAGE, RVC_ACCESS_TARGET, &self->mr));
	EXPECT_EQ(0, rvc_reg(self->fd, map, 2 * RVC_PAGE, RVC_ACCESS_SOURCE, &self->mr));
}

/* Write access taken away later counts too: the old registration is not handed out. */
TEST_F(mem, protected_after_it_was_registered)
{
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &self->mr));
	ASSERT_EQ(0, rvc_dereg(self->fd, &self->mr));
	ASSERT_EQ(0, mprotect(self->buf, RVC_PAGE, PROT_READ));
	EXPECT_ERRNO(EFAULT, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &self->mr));
	ASSERT_EQ(0, mprotect(self->buf, RVC_PAGE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(0, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &self->mr));
}

/* ---- pinned memory ------------------------------------------------------- */

static long pinned_kb(void)
{
	return rvc_proc_number("/proc/self/status", "VmPin");
}

TEST_F(mem, pinned_memory_is_counted)
{
	ASSERT_EQ(0, pinned_kb());
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf, 4 * RVC_PAGE, RVC_ACCESS_TARGET, &self->mr));
	EXPECT_EQ(16, pinned_kb());
	/* A hit pins nothing more, and an idle entry stays pinned. */
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf, 4 * RVC_PAGE, RVC_ACCESS_TARGET, &self->mr));
	EXPECT_EQ(16, pinned_kb());
	ASSERT_EQ(0, rvc_dereg(self->fd, &self->mr));
	ASSERT_EQ(0, rvc_dereg(self->fd, &self->mr));
	EXPECT_EQ(16, pinned_kb());
}

TEST_F(mem, close_unpins_everything)
{
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf, 4 * RVC_PAGE, RVC_ACCESS_TARGET, &self->mr));
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf + 8 * RVC_PAGE, RVC_PAGE, RVC_ACCESS_SOURCE,
			     &self->mr));
	ASSERT_EQ(0, rvc_dereg(self->fd, &self->mr));
	ASSERT_EQ(20, pinned_kb());
	close(self->fd);
	self->fd = -1;
	EXPECT_TRUE(RVC_WAIT_FOR(pinned_kb() == 0));
}

/* An idle registration lets go when its memory is unmapped. */
TEST_F(mem, unmapping_unpins_idle_memory)
{
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf, 4 * RVC_PAGE, RVC_ACCESS_TARGET, &self->mr));
	ASSERT_EQ(0, rvc_dereg(self->fd, &self->mr));
	ASSERT_EQ(0, munmap(self->buf + RVC_PAGE, RVC_PAGE));
	EXPECT_TRUE(RVC_WAIT_FOR(pinned_kb() == 0));
}

/* One in use lets go with its last release. */
TEST_F(mem, last_release_unpins_unmapped_memory)
{
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf, 4 * RVC_PAGE, RVC_ACCESS_TARGET, &self->mr));
	ASSERT_EQ(0, munmap(self->buf, 4 * RVC_PAGE));
	EXPECT_EQ(16, pinned_kb());
	ASSERT_EQ(0, rvc_dereg(self->fd, &self->mr));
	EXPECT_TRUE(RVC_WAIT_FOR(pinned_kb() == 0));
}

TEST_F(mem, refused_registration_pins_nothing)
{
	ASSERT_EQ(0, munmap(self->buf + 8 * RVC_PAGE, RVC_PAGE));
	ASSERT_ERRNO(EFAULT, rvc_reg(self->fd, self->buf, BUFFER_PAGES * RVC_PAGE,
				     RVC_ACCESS_TARGET, &self->mr));
	EXPECT_EQ(0, pinned_kb());
}

/*
 * RLIMIT_MEMLOCK binds everybody but root. The child gets rid of its privileges
 * before it attaches, and answers with the errno of a registration.
 */
static int reg_as_nobody(const struct rvc_port *port, rlim_t limit, uint64_t length)
{
	struct rlimit rlimit = { limit, limit };
	struct rv_attach_params params;
	struct rvc_mr mr;
	void *buf;
	int fd;

	/* The mode of the node is another matter, so it is opened as root. */
	fd = rvc_open();
	if (setrlimit(RLIMIT_MEMLOCK, &rlimit) || setgid(65534) || setuid(65534))
		return 250;
	buf = rvc_alloc(length);
	if (fd < 0 || !buf || rvc_capability(fd, 1, 6))
		return 251;
	rvc_attach_init(&params.in, port);
	if (rvc_attach(fd, &params))
		return 252;
	return -rvc_reg(fd, buf, length, RVC_ACCESS_TARGET, &mr);
}

TEST_F(mem, below_the_memlock_limit)
{
	EXPECT_EQ(0, RVT_IN_CHILD(reg_as_nobody(&self->port, 64 * 1024, 64 * 1024)));
}

TEST_F(mem, above_the_memlock_limit)
{
	EXPECT_EQ(ENOMEM, RVT_IN_CHILD(reg_as_nobody(&self->port, 64 * 1024, 68 * 1024)));
}

TEST_F(mem, memlock_limit_zero)
{
	EXPECT_EQ(EPERM, RVT_IN_CHILD(reg_as_nobody(&self->port, 0, RVC_PAGE)));
}

TEST_F(mem, memlock_limit_infinite)
{
	EXPECT_EQ(0, RVT_IN_CHILD(reg_as_nobody(&self->port, RLIM_INFINITY, LIMIT)));
}

/* ---- who may register ---------------------------------------------------- */

TEST(reg_before_attach)
{
	int fd = rvt_open(_metadata);
	struct rvc_mr mr = { .handle = 1 };

	EXPECT_ERRNO(EINVAL, rvc_reg(fd, rvt_alloc(_metadata, RVC_PAGE), RVC_PAGE,
				     RVC_ACCESS_TARGET, &mr));
	EXPECT_ERRNO(EINVAL, rvc_dereg(fd, &mr));
}

static void *reg_in_thread(void *arg)
{
	FIXTURE_DATA(mem) *self = arg;

	if (rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &self->mr) ||
	    rvc_dereg(self->fd, &self->mr))
		return NULL;
	return self;
}

TEST_F(mem, another_thread)
{
	pthread_t thread;
	void *done;

	ASSERT_EQ(0, pthread_create(&thread, NULL, reg_in_thread, self));
	pthread_join(thread, &done);
	EXPECT_EQ((void *)self, done);
}

/* The child has another address space: nothing may be registered for it. */
TEST_F(mem, forked_child_cannot_register)
{
	struct rvc_mr mr;

	EXPECT_EQ(EINVAL, RVT_IN_CHILD(-rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET,
						&mr)));
	EXPECT_EQ(EINVAL, RVT_IN_CHILD(-rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_SOURCE,
						&mr)));
	/* The parent still can. */
	EXPECT_EQ(0, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
}

TEST_F(mem, forked_child_cannot_deregister)
{
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &self->mr));
	EXPECT_EQ(EINVAL, RVT_IN_CHILD(-rvc_dereg(self->fd, &self->mr)));
	EXPECT_EQ(1, stats_of(_metadata, self->fd).inuse);
	EXPECT_EQ(0, rvc_dereg(self->fd, &self->mr));
}

TEST_F(mem, forked_child_may_look_at_counters)
{
	struct rv_cache_stats_params_out stats;

	ASSERT_EQ(0, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &self->mr));
	EXPECT_EQ(1, RVT_IN_CHILD(rvc_cache_stats(self->fd, &stats) ? 255 : (int)stats.count));
}

/* Attaching in the child binds the file to the child. */
TEST_F(mem, parent_cannot_register_with_the_file_of_a_child)
{
	struct rv_attach_params params;
	struct rvc_mr mr;
	int fd = rvt_open(_metadata);

	rvc_attach_init(&params.in, &self->port);
	ASSERT_EQ(0, RVT_IN_CHILD(-rvc_attach(fd, &params)));
	EXPECT_ERRNO(EINVAL, rvc_reg(fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
}

static int send_fd(int socket, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = "f", .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	return sendmsg(socket, &msg, 0) == 1 ? 0 : -errno;
}

static int receive_fd(int socket)
{
	char control[CMSG_SPACE(sizeof(int))], c;
	struct iovec iov = { .iov_base = &c, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int fd;

	if (recvmsg(socket, &msg, 0) != 1 || !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return fd;
}

/* A file passed over a socket: its new owner may not register with it. */
TEST(passed_file)
{
	int sockets[2], fd;
	struct rvc_port port;
	struct rvc_mr mr;
	pid_t child;

	rvt_find_port(_metadata, &port);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	child = fork();
	if (!child) {
		fd = receive_fd(sockets[1]);
		_exit(fd < 0 ? 250 : -rvc_reg(fd, rvc_alloc(RVC_PAGE), RVC_PAGE, RVC_ACCESS_TARGET,
					      &mr));
	}
	fd = rvt_attach(_metadata, &port);
	ASSERT_EQ(0, send_fd(sockets[0], fd));
	EXPECT_EQ(EINVAL, rvt_wait_child(child));
}

/* The new program has the process id of the old one, but not its memory. */
TEST_F(mem, program_after_exec)
{
	char number[16];
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		struct rv_attach_params params;
		int fd = rvc_open();

		rvc_attach_init(&params.in, &self->port);
		if (fd < 0 || rvc_capability(fd, 1, 6) || rvc_attach(fd, &params) ||
		    fcntl(fd, F_SETFD, 0))
			_exit(250);
		snprintf(number, sizeof(number), "%d", fd);
		execl("/proc/self/exe", "rv_mem", "--reg-with", number, NULL);
		_exit(251);
	}
	EXPECT_EQ(EINVAL, rvt_wait_child(child));
}

/* ---- DEREG_MEM ----------------------------------------------------------- */

/* The registration that the rows below spoil covers pages 4 to 7. */
FIXTURE(dereg_refused)
{
	struct rvc_port port;
	uint8_t *buf;
	int fd;
	struct rvc_mr mr;
	struct rvc_mr spoiled;
};

FIXTURE_VARIANT(dereg_refused)
{
	void (*spoil)(struct rvc_mr *mr);
};

#define DEREG_REFUSED(name, statement)                                     \
	static void spoil_dereg_##name(struct rvc_mr *mr)                  \
	{                                                                  \
		statement;                                                 \
	}                                                                  \
	FIXTURE_VARIANT_ADD(dereg_refused, name)                           \
	{                                                                  \
		.spoil = spoil_dereg_##name                                \
	}

DEREG_REFUSED(handle_0, mr->handle = 0);
DEREG_REFUSED(handle_another, mr->handle ^= 1);
DEREG_REFUSED(handle_max, mr->handle = ~0ULL);
DEREG_REFUSED(access_less, mr->access &= ~IB_UVERBS_ACCESS_REMOTE_WRITE);
DEREG_REFUSED(access_more, mr->access |= IB_UVERBS_ACCESS_REMOTE_READ);
DEREG_REFUSED(access_without_kernel_bit, mr->access &= ~IBV_ACCESS_KERNEL);
DEREG_REFUSED(starts_one_byte_before, mr->addr--);
DEREG_REFUSED(ends_one_byte_behind, mr->length++);
DEREG_REFUSED(elsewhere, mr->addr -= 4 * RVC_PAGE);
DEREG_REFUSED(length_that_wraps, mr->length = -mr->addr);
DEREG_REFUSED(length_max, mr->length = ~0ULL);

FIXTURE_SETUP(dereg_refused)
{
	rvt_find_port(_metadata, &self->port);
	self->fd = rvt_attach(_metadata, &self->port);
	self->buf = rvt_alloc(_metadata, BUFFER_PAGES * RVC_PAGE);
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf + 4 * RVC_PAGE, 4 * RVC_PAGE, RVC_ACCESS_TARGET,
			     &self->mr));
	self->spoiled = self->mr;
	variant->spoil(&self->spoiled);
}

FIXTURE_TEARDOWN(dereg_refused)
{
	close(self->fd);
}

TEST_F(dereg_refused, einval)
{
	EXPECT_ERRNO(EINVAL, rvc_dereg(self->fd, &self->spoiled));
	/* Nothing was released. */
	EXPECT_EQ(1, stats_of(_metadata, self->fd).inuse);
	EXPECT_EQ(0, rvc_dereg(self->fd, &self->mr));
	EXPECT_EQ(0, stats_of(_metadata, self->fd).inuse);
}

TEST_F(mem, dereg_twice)
{
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &self->mr));
	EXPECT_EQ(0, rvc_dereg(self->fd, &self->mr));
	EXPECT_ERRNO(EINVAL, rvc_dereg(self->fd, &self->mr));
}

TEST_F(mem, dereg_as_often_as_registered)
{
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &self->mr));
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(1, stats_of(_metadata, self->fd).inuse);
		EXPECT_EQ(0, rvc_dereg(self->fd, &self->mr));
	}
	EXPECT_EQ(0, stats_of(_metadata, self->fd).inuse);
	EXPECT_ERRNO(EINVAL, rvc_dereg(self->fd, &self->mr));
}

/* Any part of the range names the registration. */
TEST_F(mem, dereg_by_a_part_of_the_range)
{
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf, 4 * RVC_PAGE, RVC_ACCESS_TARGET, &self->mr));
	self->mr.addr += 2 * RVC_PAGE + 17;
	self->mr.length = 1;
	EXPECT_EQ(0, rvc_dereg(self->fd, &self->mr));
}

/* As it was registered, not rounded; the entry is larger than that. */
TEST_F(mem, dereg_of_an_odd_range)
{
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf + 17, 5000, RVC_ACCESS_TARGET, &self->mr));
	EXPECT_EQ(0, rvc_dereg(self->fd, &self->mr));
}

/* Handles are those of one file. */
TEST_F(mem, dereg_in_another_file)
{
	int other = rvt_attach(_metadata, &self->port);
	struct rvc_mr mr;

	ASSERT_EQ(0, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &self->mr));
	EXPECT_ERRNO(EINVAL, rvc_dereg(other, &self->mr));
	/* Even where the other file has the same range registered once. */
	ASSERT_EQ(0, rvc_reg(other, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	ASSERT_EQ(0, rvc_dereg(other, &mr));
	EXPECT_ERRNO(EINVAL, rvc_dereg(other, &mr));
	EXPECT_EQ(0, rvc_dereg(self->fd, &self->mr));
}

/* ---- counters ------------------------------------------------------------ */

/* No state of the file is an error, and every byte is written. */
TEST(counters_before_attach)
{
	struct rv_cache_stats_params_out cache, no_cache = { 0 };
	struct rv_event_stats_params_out event, no_event = { 0 };
	int fd = rvt_open(_metadata);

	ASSERT_EQ(0, rvc_cache_stats(fd, &cache));
	ASSERT_EQ(0, rvc_event_stats(fd, &event));
	EXPECT_EQ(0, memcmp(&cache, &no_cache, sizeof(cache)));
	EXPECT_EQ(0, memcmp(&event, &no_event, sizeof(event)));
}

TEST_F(mem, counters_of_an_unused_file)
{
	struct rv_cache_stats_params_out stats = stats_of(_metadata, self->fd);
	struct rv_cache_stats_params_out want = { .limit_cache_size = 256 };

	EXPECT_EQ(0, memcmp(&stats, &want, sizeof(stats)));
}

TEST_F(mem, counters_of_a_file_without_ring)
{
	struct rv_event_stats_params_out event, want = { 0 };
	struct rv_attach_params_in in;

	rvc_attach_init(&in, &self->port);
	in.cq_entries = 0;
	ASSERT_EQ(0, rvc_event_stats(rvt_attach_with(_metadata, &in), &event));
	EXPECT_EQ(0, memcmp(&event, &want, sizeof(event)));
}

TEST_F(mem, unwritable_counters)
{
	static const uint8_t zeros[256];

	EXPECT_ERRNO(EFAULT, rvc_ioctl(self->fd, RV_IOCTL_GET_CACHE_STATS,
				       rvt_read_only(_metadata, zeros, 112)));
	EXPECT_ERRNO(EFAULT, rvc_ioctl(self->fd, RV_IOCTL_GET_EVENT_STATS,
				       rvt_read_only(_metadata, zeros, 48)));
}

/* ---- registration against signals and unmapping -------------------------- */

static void on_alarm(int signal)
{
	(void)signal;
}

/*
 * A signal may interrupt a registration, never spoil one: what was interrupted
 * left nothing, and those that follow work.
 */
TEST_F(mem, signals_during_registration)
{
	struct itimerval often = { .it_interval.tv_usec = 2000, .it_value.tv_usec = 2000 };
	struct itimerval never = { 0 };
	struct rv_cache_stats_params_out stats;
	int good = 0, interrupted = 0;
	uint8_t *buf;

	signal(SIGALRM, on_alarm);
	buf = rvt_alloc(_metadata, 64 * RVC_PAGE);
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &often, NULL));
	for (int i = 0; i < 300; i++) {
		int ret = rvc_reg(self->fd, buf, 64 * RVC_PAGE, RVC_ACCESS_TARGET, &self->mr);

		if (!ret)
			good++;
		else if (ret == -EINTR)
			interrupted++;
		ASSERT_TRUE(!ret || ret == -EINTR)
			TH_LOG("registration %d: %s", i, strerror(-ret));
		if (!ret)
			ASSERT_EQ(0, rvc_dereg(self->fd, &self->mr));
		/* So that the next one is not a hit. */
		ASSERT_NE(NULL, rvc_alloc_at(buf, 64 * RVC_PAGE));
	}
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &never, NULL));
	stats = stats_of(_metadata, self->fd);
	EXPECT_EQ(0, stats.inuse);
	EXPECT_EQ(0, stats.count);
	EXPECT_EQ(good, stats.miss);
	EXPECT_EQ(good, stats.remove);
	EXPECT_TRUE(RVC_WAIT_FOR(pinned_kb() == 0));
	TH_LOG("%d good, %d interrupted", good, interrupted);
	EXPECT_EQ(0, rvc_reg(self->fd, buf, 64 * RVC_PAGE, RVC_ACCESS_TARGET, &self->mr));
}

struct remapper {
	uint8_t *buf;
	bool stop;
};

static void *remap_again_and_again(void *arg)
{
	struct remapper *remapper = arg;

	while (!__atomic_load_n(&remapper->stop, __ATOMIC_RELAXED))
		if (!rvc_alloc_at(remapper->buf, 8 * RVC_PAGE))
			return arg;
	return NULL;
}

/*
 * Another thread replaces the memory while it is being registered. Whatever the
 * outcome of each, at the end nothing is left in the cache or pinned.
 */
TEST_F(mem, unmapped_during_registration)
{
	struct remapper remapper = { .buf = self->buf };
	struct rv_cache_stats_params_out stats;
	pthread_t thread;
	int good = 0;
	void *failed;

	ASSERT_EQ(0, pthread_create(&thread, NULL, remap_again_and_again, &remapper));
	for (int i = 0; i < 500; i++) {
		int ret = rvc_reg(self->fd, self->buf, 8 * RVC_PAGE, RVC_ACCESS_TARGET, &self->mr);

		/* In the gap between unmap and map, or raced too often. */
		ASSERT_TRUE(!ret || ret == -EFAULT || ret == -EBUSY || ret == -EAGAIN)
			TH_LOG("registration %d: %s", i, strerror(-ret));
		if (ret)
			continue;
		good++;
		ASSERT_EQ(0, rvc_dereg(self->fd, &self->mr));
	}
	__atomic_store_n(&remapper.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, &failed);
	ASSERT_EQ(NULL, failed);
	EXPECT_LT(0, good);
	ASSERT_EQ(0, munmap(self->buf, 8 * RVC_PAGE));
	stats = stats_of(_metadata, self->fd);
	EXPECT_EQ(0, stats.count);
	EXPECT_EQ(0, stats.cache_size);
	EXPECT_EQ(0, stats.inuse);
	EXPECT_EQ(good, stats.hit + stats.miss);
	EXPECT_TRUE(RVC_WAIT_FOR(pinned_kb() == 0));
}

/* What program_after_exec starts. */
static int reg_with(int fd)
{
	struct rvc_mr mr;

	return -rvc_reg(fd, rvc_alloc(RVC_PAGE), RVC_PAGE, RVC_ACCESS_TARGET, &mr);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--reg-with"))
		return reg_with(atoi(argv[2]));
	rvt_require();
	return test_harness_run(argc, argv);
}
