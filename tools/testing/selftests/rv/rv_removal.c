// SPDX-License-Identifier: GPL-2.0
/*
 * A device that is removed in the worst moment, by whoever can remove it: a race with
 * CONN_CREATE, verbs files that are open, the driver's own end, a network namespace that
 * ends. In bounded time, with ENXIO for those who had it, and with nothing left behind.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "rv_device_fixture.h"

static void expect_nothing_left(struct __test_metadata *_metadata)
{
	EXPECT_TRUE(RVC_WAIT_FOR(!system("! rdma res show qp | grep -q 'type RC' &&"
					 "! rdma res show mr | grep -q mrn")));
}

/* How long a command takes, which must succeed. */
static void in_time(struct __test_metadata *_metadata, const char *command, uint64_t bound_ms)
{
	uint64_t start = rvc_now_ms(), took;

	ASSERT_EQ(0, system(command));
	took = rvc_now_ms() - start;
	EXPECT_GE(rvc_bound_ms(bound_ms), took)
		TH_LOG("%s took %llu ms", command, (unsigned long long)took);
}

static void add_device(struct __test_metadata *_metadata, FIXTURE_DATA(device) *self)
{
	ASSERT_EQ(0, system(ADD_DEVICE));
	ASSERT_EQ(0, rvc_port_find(&self->port, "rvtest"));
	rvc_attach_init(&self->in, &self->port);
}

/* ---- a race with CONN_CREATE --------------------------------------------- */

/* They wait for each other, so that some wait while the attachment ends. */
#define CREATORS 8

struct creator {
	const struct rvc_port *port;
	/* The first of its peers. */
	uint32_t first;
	int fd;
	int made;
	int error;
};

/* Peers one after another, until one is refused. */
static void *create_until_error(void *arg)
{
	struct creator *creator = arg;
	struct rv_conn_create_params params;
	struct rvc_conn conn;

	for (uint32_t i = 1; !creator->error; i++) {
		rvc_create_init(&params.in, creator->port, creator->port->addr + creator->first + i);
		creator->error = -rvc_conn_create(creator->fd, &params, &conn);
		if (!creator->error)
			__atomic_store_n(&creator->made, i, __ATOMIC_RELEASE);
	}
	return NULL;
}

/*
 * No handle is made after the end of the attachment: else its connection would have
 * nobody to take it down, and the device could never go.
 */
TEST_F(device, while_connections_are_created)
{
	for (int round = 0; round < 10; round++) {
		struct rvc_port port = self->port;
		struct creator creators[CREATORS];
		pthread_t threads[CREATORS];
		int fd = rvt_attach_with(_metadata, &self->in);

		for (int i = 0; i < CREATORS; i++) {
			creators[i] = (struct creator){ .port = &port, .first = i << 10, .fd = fd };
			ASSERT_EQ(0, pthread_create(&threads[i], NULL, create_until_error,
						    &creators[i]));
		}
		for (int i = 0; i < CREATORS; i++)
			ASSERT_TRUE(RVC_WAIT_FOR(
				__atomic_load_n(&creators[i].made, __ATOMIC_ACQUIRE) > 0));
		in_time(_metadata, DEL_DEVICE, 10000);
		for (int i = 0; i < CREATORS; i++) {
			pthread_join(threads[i], NULL);
			EXPECT_EQ(ENXIO, creators[i].error);
		}
		EXPECT_ERRNO(EINVAL, rvc_conn_connected(fd, 1));
		close(fd);
		expect_nothing_left(_metadata);
		add_device(_metadata, self);
	}
}

/* ---- again and again ----------------------------------------------------- */

TEST_F(device, twenty_times)
{
	uint8_t *buf = self->buf;

	for (int round = 0; round < 20; round++) {
		struct rv_conn_create_params create;
		struct rvc_conn conn;
		struct rvc_mr mr;
		int fd = rvt_attach_with(_metadata, &self->in);

		rvc_create_init(&create.in, &self->port, RVT_PEER_ABOVE(&self->port));
		ASSERT_EQ(0, rvc_conn_create(fd, &create, &conn));
		ASSERT_EQ(0, rvc_reg(fd, buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
		in_time(_metadata, DEL_DEVICE, 10000);
		EXPECT_ERRNO(ENXIO, rvc_reg(fd, buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
		close(fd);
		add_device(_metadata, self);
	}
	expect_nothing_left(_metadata);
}

/* A file that an ATTACH left on no list for want of an index is on none. */
TEST_F(device, after_an_attach_without_an_index)
{
	struct rv_attach_params params;
	int fd, other;

	self->in.index_bits = 0;
	fd = rvt_attach_with(_metadata, &self->in);
	other = rvt_open(_metadata);
	params.in = self->in;
	EXPECT_ERRNO(ENOMEM, rvc_attach(other, &params));
	in_time(_metadata, DEL_DEVICE, 10000);
	EXPECT_ERRNO(EBUSY, rvc_attach(fd, &params));
	/* It never was attached, so it still may be. */
	params.in = self->in;
	EXPECT_ERRNO(ENODEV, rvc_attach(other, &params));
	add_device(_metadata, self);
	params.in = self->in;
	EXPECT_EQ(0, rvc_attach(other, &params));
}

/* ---- who removes it ------------------------------------------------------ */

/*
 * With verbs files of others open (spdk/spdk#1184): they are told by a fatal event and do
 * not hold up the removal, and neither does ours.
 */
TEST_F(device, with_a_verbs_file_open)
{
	int fd = rvt_attach_with(_metadata, &self->in);
	struct rvc_mr mr;

	ASSERT_EQ(0, rvc_reg(fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	ASSERT_EQ(0, system("stdbuf -oL ibv_asyncwatch -d rvtest >/tmp/rvtest.watch 2>&1 &"));
	ASSERT_TRUE(RVC_WAIT_FOR(!system("grep -q 'async event FD' /tmp/rvtest.watch")));
	in_time(_metadata, DEL_DEVICE, 10000);
	EXPECT_TRUE(RVC_WAIT_FOR(!system("grep -qi fatal /tmp/rvtest.watch")));
	EXPECT_ERRNO(ENXIO, rvc_dereg(fd, &mr));
	EXPECT_EQ(0, system("pkill -x ibv_asyncwatch"));
}

/* The driver is unloaded under it: rv does not hold it, and the files lose their device. */
TEST_F(device, driver_is_unloaded)
{
	int fd = rvt_attach_with(_metadata, &self->in);
	struct rvc_port port;
	struct rvc_mr mr;

	ASSERT_EQ(0, rvc_reg(fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	in_time(_metadata, "rmmod rdma_rxe", 20000);
	EXPECT_ERRNO(ENXIO, rvc_dereg(fd, &mr));
	EXPECT_EQ(0, rvc_proc_number("/proc/self/status", "VmPin"));
	/* And comes again, with both devices. */
	ASSERT_EQ(0, system("modprobe rdma_rxe && rdma link add ${RV_DEV:-rxe0} type rxe"
			    " netdev ${RV_NETDEV:-eth0}"));
	ASSERT_EQ(0, rvc_port_find(&port, rvc_dev_name()));
	close(rvt_attach(_metadata, &port));
	add_device(_metadata, self);
	close(rvt_attach_with(_metadata, &self->in));
}

/* A network namespace ends with an interface and its device in it. */
TEST_F(device, namespace_ends)
{
	struct rvc_mr mr;
	int fd;

	ASSERT_EQ(0, system(DEL_DEVICE));
	ASSERT_EQ(0, system("ip netns add rvtest && ip link set rvtest0 netns rvtest &&"
			    "ip -n rvtest link set rvtest0 up &&"
			    "ip -n rvtest addr add 10.99.0.1/24 dev rvtest0"));
	if (system("ip netns exec rvtest " ADD_DEVICE)) {
		ASSERT_EQ(0, system("ip netns del rvtest"));
		SKIP(return, "this rdma_rxe makes no devices in namespaces");
	}
	ASSERT_EQ(0, rvc_port_find(&self->port, "rvtest"));
	rvc_attach_init(&self->in, &self->port);
	fd = rvt_attach_with(_metadata, &self->in);
	ASSERT_EQ(0, rvc_reg(fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	ASSERT_EQ(0, system("ip netns del rvtest"));
	EXPECT_TRUE(RVC_WAIT_FOR(rvc_reg(fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr) ==
				 -ENXIO));
	EXPECT_TRUE(RVC_WAIT_FOR(!rvc_proc_number("/proc/self/status", "VmPin")));
}

/*
 * With "rdma system set netns exclusive" a device is there for its own namespace alone: a
 * process in another one does not find it.
 */
TEST_F(device, namespace_without_the_device)
{
	if (system("rdma system set netns exclusive"))
		SKIP(return, "namespaces cannot be made exclusive here");
	EXPECT_EQ(ENODEV, RVT_IN_CHILD(({
			  struct rv_attach_params params = { .in = self->in };
			  int fd = rvt_open(_metadata);

			  unshare(CLONE_NEWNET) ? 255 : -rvc_attach(fd, &params);
		  })));
	close(rvt_attach_with(_metadata, &self->in));
	EXPECT_TRUE(RVC_WAIT_FOR(!system("rdma system set netns shared")));
}

/* ---- small things -------------------------------------------------------- */

/* Kernel addresses have their upper bits set. */
TEST_F(device, handles_are_small_numbers)
{
	struct rv_conn_create_params create;
	struct rvc_conn conn;
	struct rvc_mr mr;
	int fd = rvt_attach_with(_metadata, &self->in);

	rvc_create_init(&create.in, &self->port, RVT_PEER_ABOVE(&self->port));
	ASSERT_EQ(0, rvc_conn_create(fd, &create, &conn));
	ASSERT_EQ(0, rvc_reg(fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	EXPECT_NE(0, conn.conn_handle);
	EXPECT_NE(0, mr.handle);
	EXPECT_NE(0, mr.iova);
	EXPECT_EQ(0, conn.conn_handle >> 47);
	EXPECT_EQ(0, mr.handle >> 47);
	EXPECT_EQ(0, mr.iova >> 63);
}

/* 4294968 s are 704 ms more than 2^32 ms: in 32 bits shorter than the heartbeat. */
TEST_F(device, reconnect_timeout_does_not_wrap)
{
	struct rv_attach_params params = { .in = self->in };

	params.in.reconnect_timeout = 4294968;
	params.in.hb_interval = 1000;
	EXPECT_EQ(0, rvc_attach(rvt_open(_metadata), &params));
	EXPECT_EQ(4294968, params.out.reconnect_timeout);
}

RVT_MAIN
