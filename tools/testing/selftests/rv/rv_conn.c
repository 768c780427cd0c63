// SPDX-License-Identifier: GPL-2.0
/*
 * CONN_CREATE, CONN_CONNECT, CONN_CONNECTED, CONN_GET_CONN_COUNT, CONN_GET_STATS
 * and POST_RDMA_WR_IMMED as far as one machine can show them: every check that can
 * fail, with its errno, on connections that wait for a peer or cannot reach one.
 *
 * Connections that come up are in rv_pair.c.
 */
#include <arpa/inet.h>

#include "rv_test.h"

#define NUM_CONN 3

/* A file with a connection for which this side listens. */
FIXTURE(conn)
{
	struct rvc_port port;
	struct rv_attach_params_in attach;
	struct rv_conn_create_params create;
	struct rv_conn_connect_params_in connect;
	struct rvc_conn conn;
	uint32_t peer;
	int fd;
};

FIXTURE_SETUP(conn)
{
	rvt_find_port(_metadata, &self->port);
	rvc_attach_init(&self->attach, &self->port);
	self->attach.num_conn = NUM_CONN;
	self->fd = rvt_attach_with(_metadata, &self->attach);
	self->peer = RVT_PEER_ABOVE(&self->port);
	rvc_create_init(&self->create.in, &self->port, self->peer);
	ASSERT_EQ(0, rvc_conn_create(self->fd, &self->create, &self->conn));
	rvc_create_init(&self->create.in, &self->port, self->peer);
	rvc_connect_init(&self->connect, &self->port, self->peer, self->conn.handle);
}

FIXTURE_TEARDOWN(conn)
{
	close(self->fd);
}

/* ---- CONN_CREATE --------------------------------------------------------- */

FIXTURE(create_refused)
{
	struct rvc_port port;
	struct rv_conn_create_params good;
	struct rv_conn_create_params params;
	struct rvc_conn conn;
	int fd;
};

FIXTURE_VARIANT(create_refused)
{
	void (*spoil)(struct rv_conn_create_params_in *in, const struct rvc_port *port);
};

#define CREATE_REFUSED(name, statement)                                    \
	static void spoil_create_##name(struct rv_conn_create_params_in *in, \
					const struct rvc_port *port)       \
	{                                                                  \
		(void)port;                                                \
		statement;                                                 \
	}                                                                  \
	FIXTURE_VARIANT_ADD(create_refused, name)                          \
	{                                                                  \
		.spoil = spoil_create_##name                               \
	}

CREATE_REFUSED(sgid_index_not_that_of_attach, in->ah.grh.sgid_index ^= 1);
CREATE_REFUSED(port_num_not_that_of_attach, in->ah.port_num++);
CREATE_REFUSED(port_num_0, in->ah.port_num = 0);
CREATE_REFUSED(dgid_is_our_own, memcpy(in->ah.grh.dgid, port->gid, 16));
CREATE_REFUSED(rem_addr_is_our_own, in->ah.is_global = 0; in->rem_addr = port->addr);

FIXTURE_SETUP(create_refused)
{
	rvt_find_port(_metadata, &self->port);
	self->fd = rvt_attach(_metadata, &self->port);
	rvc_create_init(&self->good.in, &self->port, RVT_PEER_ABOVE(&self->port));
	self->params = self->good;
	variant->spoil(&self->params.in, &self->port);
}

FIXTURE_TEARDOWN(create_refused)
{
	close(self->fd);
}

TEST_F(create_refused, einval)
{
	EXPECT_ERRNO(EINVAL, rvc_conn_create(self->fd, &self->params, &self->conn));
	EXPECT_EQ(0, rvc_conn_create(self->fd, &self->good, &self->conn));
}

TEST(create_before_attach)
{
	struct rv_conn_create_params params;
	struct rvc_port port;
	struct rvc_conn conn;

	rvt_find_port(_metadata, &port);
	rvc_create_init(&params.in, &port, RVT_PEER_ABOVE(&port));
	EXPECT_ERRNO(EINVAL, rvc_conn_create(rvt_open(_metadata), &params, &conn));
}

/* With a GID the number of the peer does not matter: it may equal our own. */
TEST_F(conn, create_global_with_our_own_rem_addr)
{
	struct rv_conn_create_params params;
	struct rvc_conn conn;

	rvc_create_init(&params.in, &self->port, self->peer - 1);
	params.in.rem_addr = self->port.addr;
	EXPECT_EQ(0, rvc_conn_create(self->fd, &params, &conn));
}

TEST_F(conn, create_second_time)
{
	struct rvc_conn conn;

	EXPECT_ERRNO(EBUSY, rvc_conn_create(self->fd, &self->create, &conn));
}

/* Handles count from 1; another remote is another connection. */
TEST_F(conn, create_handles)
{
	struct rv_conn_create_params params;
	struct rvc_conn conn;

	EXPECT_EQ(1, self->conn.handle);
	EXPECT_NE(0, self->conn.conn_handle);
	for (unsigned int i = 1; i <= 3; i++) {
		rvc_create_init(&params.in, &self->port, self->peer - i);
		ASSERT_EQ(0, rvc_conn_create(self->fd, &params, &conn));
		EXPECT_EQ(1 + i, conn.handle);
		EXPECT_NE(self->conn.conn_handle, conn.conn_handle);
	}
}

/* Files of a job share the connection; each has its own handle for it. */
TEST_F(conn, create_in_another_file_of_the_job)
{
	int other = rvt_attach_with(_metadata, &self->attach);
	struct rv_conn_create_params params;
	struct rvc_conn conn;

	rvc_create_init(&params.in, &self->port, self->peer - 1);
	ASSERT_EQ(0, rvc_conn_create(other, &params, &conn));
	ASSERT_EQ(0, rvc_conn_create(other, &self->create, &conn));
	EXPECT_EQ(2, conn.handle);
	EXPECT_EQ(self->conn.conn_handle, conn.conn_handle);
}

TEST_F(conn, create_in_another_job)
{
	int other = rvt_attach(_metadata, &self->port);
	struct rvc_conn conn;

	ASSERT_EQ(0, rvc_conn_create(other, &self->create, &conn));
	EXPECT_EQ(1, conn.handle);
	EXPECT_NE(self->conn.conn_handle, conn.conn_handle);
}

TEST_F(conn, create_unwritable_answer)
{
	struct rv_conn_create_params params;
	struct rvc_conn conn;

	rvc_create_init(&params.in, &self->port, self->peer - 1);
	EXPECT_ERRNO(EFAULT, rvc_ioctl(self->fd, RV_IOCTL_CONN_CREATE,
				       rvt_read_only(_metadata, &params, sizeof(params))));
	/* Undone: not EBUSY, and the handle was not used up. */
	ASSERT_EQ(0, rvc_conn_create(self->fd, &params, &conn));
	EXPECT_EQ(2, conn.handle);
}

/* The context has no use, the holes have none either. */
TEST_F(conn, create_ignores_context_and_holes)
{
	struct rv_conn_create_params params;
	struct rvc_conn conn;

	rvc_create_init(&params.in, &self->port, self->peer - 1);
	params.in.context = ~0ULL;
	params.in.hole0 = ~0U;
	params.in.ah.reserved = 0xff;
	params.in.ah.grh.reserved = 0xff;
	EXPECT_EQ(0, rvc_conn_create(self->fd, &params, &conn));
}

/* A second file must describe the way to the same remote in the same words. */
FIXTURE(create_differs)
{
	struct rvc_port port;
	struct rv_conn_create_params good;
	struct rv_conn_create_params params;
	struct rvc_conn conn;
	int fd;
	int other;
};

FIXTURE_VARIANT(create_differs)
{
	void (*change)(struct rv_conn_create_params_in *in);
};

#define CREATE_DIFFERS(name, statement)                                    \
	static void change_create_##name(struct rv_conn_create_params_in *in) \
	{                                                                  \
		statement;                                                 \
	}                                                                  \
	FIXTURE_VARIANT_ADD(create_differs, name)                          \
	{                                                                  \
		.change = change_create_##name                             \
	}

CREATE_DIFFERS(dlid, in->ah.dlid++);
CREATE_DIFFERS(src_path_bits, in->ah.src_path_bits++);
CREATE_DIFFERS(sl, in->ah.sl++);
CREATE_DIFFERS(traffic_class, in->ah.grh.traffic_class++);
CREATE_DIFFERS(flow_label, in->ah.grh.flow_label++);
CREATE_DIFFERS(static_rate, in->ah.static_rate--);
CREATE_DIFFERS(hop_limit, in->ah.grh.hop_limit--);

FIXTURE_SETUP(create_differs)
{
	struct rv_attach_params_in in;

	rvt_find_port(_metadata, &self->port);
	rvc_attach_init(&in, &self->port);
	self->fd = rvt_attach_with(_metadata, &in);
	self->other = rvt_attach_with(_metadata, &in);
	rvc_create_init(&self->good.in, &self->port, RVT_PEER_ABOVE(&self->port));
	self->params = self->good;
	variant->change(&self->params.in);
}

FIXTURE_TEARDOWN(create_differs)
{
	close(self->fd);
	close(self->other);
}

TEST_F(create_differs, eexist)
{
	struct rv_conn_create_params first = self->good;

	ASSERT_EQ(0, rvc_conn_create(self->fd, &first, &self->conn));
	EXPECT_ERRNO(EEXIST, rvc_conn_create(self->other, &self->params, &self->conn));
	EXPECT_EQ(0, rvc_conn_create(self->other, &self->good, &self->conn));
}

/* When the first file has left, nothing is to be compared with. */
TEST_F(create_differs, accepted_when_the_first_has_left)
{
	struct rv_conn_create_params first = self->good;

	ASSERT_EQ(0, rvc_conn_create(self->fd, &first, &self->conn));
	close(self->fd);
	EXPECT_EQ(0, rvc_conn_create(self->other, &self->params, &self->conn));
}

/* ---- CONN_CONNECT -------------------------------------------------------- */

/* A row says whether the handle is still there after the refusal. */
FIXTURE(connect_refused)
{
	struct rvc_port port;
	struct rv_conn_create_params create;
	struct rv_conn_connect_params_in good;
	struct rv_conn_connect_params_in params;
	struct rvc_conn conn;
	int fd;
};

FIXTURE_VARIANT(connect_refused)
{
	void (*spoil)(struct rv_conn_connect_params_in *in);
	bool handle_kept;
};

#define CONNECT_REFUSED(name, handle_kept_, statement)                     \
	static void spoil_connect_##name(struct rv_conn_connect_params_in *in) \
	{                                                                  \
		statement;                                                 \
	}                                                                  \
	FIXTURE_VARIANT_ADD(connect_refused, name)                         \
	{                                                                  \
		.spoil = spoil_connect_##name, .handle_kept = (handle_kept_) \
	}

CONNECT_REFUSED(sgid_not_ours, true, in->path.sgid[15] ^= 0x80);
CONNECT_REFUSED(handle_0, true, in->handle = 0);
CONNECT_REFUSED(handle_unknown, true, in->handle = 2);
CONNECT_REFUSED(handle_beyond_32_bits, true, in->handle += 1ULL << 32);
CONNECT_REFUSED(dlid, false, in->path.dlid = htons(RVC_DLID + 1));
CONNECT_REFUSED(dgid, false, in->path.dgid[15] ^= 1);
CONNECT_REFUSED(sl, false, in->path.sl++);
CONNECT_REFUSED(traffic_class, false, in->path.traffic_class++);
CONNECT_REFUSED(flow_label, false, in->path.flow_label = htonl(1));
CONNECT_REFUSED(hop_limit, false, in->path.hop_limit--);
CONNECT_REFUSED(rate, false, in->path.rate--);

FIXTURE_SETUP(connect_refused)
{
	uint32_t peer;

	rvt_find_port(_metadata, &self->port);
	self->fd = rvt_attach(_metadata, &self->port);
	peer = RVT_PEER_ABOVE(&self->port);
	rvc_create_init(&self->create.in, &self->port, peer);
	ASSERT_EQ(0, rvc_conn_create(self->fd, &self->create, &self->conn));
	rvc_create_init(&self->create.in, &self->port, peer);
	rvc_connect_init(&self->good, &self->port, peer, self->conn.handle);
	self->params = self->good;
	variant->spoil(&self->params);
}

FIXTURE_TEARDOWN(connect_refused)
{
	close(self->fd);
}

TEST_F(connect_refused, einval)
{
	EXPECT_ERRNO(EINVAL, rvc_conn_connect(self->fd, &self->params));
	EXPECT_EQ(variant->handle_kept ? 0 : -EINVAL,
		  rvc_conn_connected(self->fd, self->conn.handle));
	EXPECT_EQ(variant->handle_kept ? 0 : -EINVAL, rvc_conn_connect(self->fd, &self->good));
}

/* Where the handle went, the connection went with it and can be made again. */
TEST_F(connect_refused, can_be_created_again)
{
	EXPECT_ERRNO(EINVAL, rvc_conn_connect(self->fd, &self->params));
	EXPECT_EQ(variant->handle_kept ? -EBUSY : 0,
		  rvc_conn_create(self->fd, &self->create, &self->conn));
}

TEST_F(conn, connect_returns_at_once)
{
	EXPECT_EQ(0, rvc_conn_connect(self->fd, &self->connect));
	EXPECT_EQ(0, rvc_conn_connected(self->fd, self->conn.handle));
}

TEST_F(conn, connect_second_time)
{
	EXPECT_EQ(0, rvc_conn_connect(self->fd, &self->connect));
	EXPECT_EQ(0, rvc_conn_connect(self->fd, &self->connect));
	EXPECT_EQ(0, rvc_conn_connected(self->fd, self->conn.handle));
}

/* Bytes that the path is not compared by. */
TEST_F(conn, connect_second_time_with_other_words)
{
	ASSERT_EQ(0, rvc_conn_connect(self->fd, &self->connect));
	self->connect.path.raw_traffic = 1;
	self->connect.path.reversible = 0;
	self->connect.path.numb_path = 2;
	self->connect.path.preference = 1;
	EXPECT_EQ(0, rvc_conn_connect(self->fd, &self->connect));
}

/* The second CONNECT must give the path of the first. */
FIXTURE(connect_differs)
{
	struct rvc_port port;
	struct rv_conn_create_params create[2];
	struct rv_conn_connect_params_in good;
	struct rv_conn_connect_params_in params;
	struct rvc_conn conn[2];
	int fd[2];
};

FIXTURE_VARIANT(connect_differs)
{
	void (*change)(struct ib_user_path_rec *path);
};

#define CONNECT_DIFFERS(name, statement)                                   \
	static void change_connect_##name(struct ib_user_path_rec *path)   \
	{                                                                  \
		statement;                                                 \
	}                                                                  \
	FIXTURE_VARIANT_ADD(connect_differs, name)                         \
	{                                                                  \
		.change = change_connect_##name                            \
	}

CONNECT_DIFFERS(slid, path->slid = htons(RVC_DLID + 1));
CONNECT_DIFFERS(pkey, path->pkey = htons(0x8001));
CONNECT_DIFFERS(mtu, path->mtu++);
CONNECT_DIFFERS(packet_life_time, path->packet_life_time++);

FIXTURE_SETUP(connect_differs)
{
	struct rv_attach_params_in in;
	uint32_t peer;

	rvt_find_port(_metadata, &self->port);
	rvc_attach_init(&in, &self->port);
	peer = RVT_PEER_ABOVE(&self->port);
	for (int i = 0; i < 2; i++) {
		self->fd[i] = rvt_attach_with(_metadata, &in);
		rvc_create_init(&self->create[i].in, &self->port, peer);
		ASSERT_EQ(0, rvc_conn_create(self->fd[i], &self->create[i], &self->conn[i]));
		rvc_create_init(&self->create[i].in, &self->port, peer);
	}
	rvc_connect_init(&self->good, &self->port, peer, self->conn[0].handle);
	self->params = self->good;
	variant->change(&self->params.path);
}

FIXTURE_TEARDOWN(connect_differs)
{
	close(self->fd[0]);
	close(self->fd[1]);
}

TEST_F(connect_differs, in_the_same_file)
{
	ASSERT_EQ(0, rvc_conn_connect(self->fd[0], &self->good));
	EXPECT_ERRNO(EEXIST, rvc_conn_connect(self->fd[0], &self->params));
	/* The handle is gone, and the connection can be made again. */
	EXPECT_ERRNO(EINVAL, rvc_conn_connected(self->fd[0], self->conn[0].handle));
	EXPECT_EQ(0, rvc_conn_create(self->fd[0], &self->create[0], &self->conn[0]));
}

TEST_F(connect_differs, in_another_file)
{
	ASSERT_EQ(0, rvc_conn_connect(self->fd[0], &self->good));
	EXPECT_ERRNO(EEXIST, rvc_conn_connect(self->fd[1], &self->params));
	EXPECT_ERRNO(EINVAL, rvc_conn_connected(self->fd[1], self->conn[1].handle));
	/* The first file keeps what it has. */
	EXPECT_EQ(0, rvc_conn_connected(self->fd[0], self->conn[0].handle));
	EXPECT_EQ(0, rvc_conn_connect(self->fd[0], &self->good));
}

/*
 * With dlid 0, which RoCE allows, a stored path does not count as one: every
 * CONNECT stores its own.
 */
TEST_F(conn, connect_with_dlid_0_may_differ)
{
	struct rv_conn_create_params params;
	struct rv_conn_connect_params_in in;
	struct rvc_conn conn;

	rvc_create_init(&params.in, &self->port, self->peer - 1);
	params.in.ah.dlid = 0;
	ASSERT_EQ(0, rvc_conn_create(self->fd, &params, &conn));
	rvc_connect_init(&in, &self->port, self->peer - 1, conn.handle);
	in.path.dlid = 0;
	EXPECT_EQ(0, rvc_conn_connect(self->fd, &in));
	in.path.mtu++;
	EXPECT_EQ(0, rvc_conn_connect(self->fd, &in));
}

/* ---- CONN_CONNECTED, CONN_GET_CONN_COUNT, CONN_GET_STATS ----------------- */

TEST_F(conn, unknown_handles)
{
	static const uint64_t handles[] = { 2, 77, 1ULL << 32, (1ULL << 32) + 1, ~0ULL };
	struct rv_conn_get_stats_params_out stats;
	uint32_t count;

	for (size_t i = 0; i < ARRAY_SIZE(handles); i++) {
		EXPECT_ERRNO(EINVAL, rvc_conn_connected(self->fd, handles[i]));
		EXPECT_ERRNO(EINVAL, rvc_conn_count(self->fd, handles[i], 0, &count));
		EXPECT_ERRNO(EINVAL, rvc_conn_stats(self->fd, handles[i], 0, &stats));
	}
	/* Handle 0 means all connections to GET_STATS, and none to the others. */
	EXPECT_ERRNO(EINVAL, rvc_conn_connected(self->fd, 0));
	EXPECT_ERRNO(EINVAL, rvc_conn_count(self->fd, 0, 0, &count));
}

/* A handle is worth nothing in another file. */
TEST_F(conn, handle_of_another_file)
{
	int other = rvt_attach_with(_metadata, &self->attach);
	uint32_t count;

	EXPECT_ERRNO(EINVAL, rvc_conn_connected(other, self->conn.handle));
	EXPECT_ERRNO(EINVAL, rvc_conn_count(other, self->conn.handle, 0, &count));
	EXPECT_ERRNO(EINVAL, rvc_conn_connected(other, self->conn.conn_handle));
}

TEST_F(conn, count_before_the_first_connection)
{
	uint32_t count = 77;

	for (int i = 0; i < NUM_CONN; i++) {
		EXPECT_EQ(0, rvc_conn_count(self->fd, self->conn.handle, i, &count));
		EXPECT_EQ(0, count);
	}
}

TEST_F(conn, count_of_an_index_that_is_not_there)
{
	uint32_t count;

	EXPECT_ERRNO(EINVAL, rvc_conn_count(self->fd, self->conn.handle, NUM_CONN, &count));
	EXPECT_ERRNO(EINVAL, rvc_conn_count(self->fd, self->conn.handle, 16, &count));
	EXPECT_ERRNO(EINVAL, rvc_conn_count(self->fd, self->conn.handle, 255, &count));
}

TEST_F(conn, count_writes_4_bytes)
{
	struct rv_conn_get_conn_count_params params;

	memset(&params, 0x5a, sizeof(params));
	params.in.handle = self->conn.handle;
	params.in.index = 0;
	ASSERT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_CONN_GET_CONN_COUNT, &params));
	EXPECT_EQ(0, params.out.count);
	EXPECT_EQ(self->conn.handle >> 32, params.in.handle >> 32);
	EXPECT_EQ(0x5a, params.in.hole0[0]);
}

TEST_F(conn, count_unwritable_answer)
{
	struct rv_conn_get_conn_count_params params = { .in.handle = self->conn.handle };

	EXPECT_ERRNO(EFAULT, rvc_ioctl(self->fd, RV_IOCTL_CONN_GET_CONN_COUNT,
				       rvt_read_only(_metadata, &params, sizeof(params))));
}

TEST_F(conn, stats_of_one_queue_pair)
{
	struct rv_conn_get_stats_params_out stats;

	for (int i = 0; i < NUM_CONN; i++) {
		ASSERT_EQ(0, rvc_conn_stats(self->fd, self->conn.handle, i, &stats));
		EXPECT_EQ(i, stats.index);
		EXPECT_EQ(RV_CONN_STAT_FLAG_SERVER, stats.flags);
	}
}

TEST_F(conn, stats_of_an_index_that_is_not_there)
{
	struct rv_conn_get_stats_params_out stats;

	EXPECT_ERRNO(EINVAL, rvc_conn_stats(self->fd, self->conn.handle, NUM_CONN, &stats));
	EXPECT_ERRNO(EINVAL, rvc_conn_stats(self->fd, self->conn.handle, 254, &stats));
}

TEST_F(conn, stats_of_one_connection)
{
	struct rv_conn_get_stats_params_out stats;

	ASSERT_EQ(0, rvc_conn_stats(self->fd, self->conn.handle, 255, &stats));
	EXPECT_EQ(255, stats.index);
	EXPECT_EQ(NUM_CONN, stats.num_conn);
	EXPECT_EQ(RV_CONN_STAT_FLAG_SERVER, stats.flags);
}

/* Handle 0: all connections of the file; the index is not looked at. */
TEST_F(conn, stats_of_all_connections)
{
	struct rv_conn_get_stats_params_out stats;
	struct rv_conn_create_params params;
	struct rvc_conn conn;

	rvc_create_init(&params.in, &self->port, RVT_PEER_BELOW);
	ASSERT_EQ(0, rvc_conn_create(self->fd, &params, &conn));
	ASSERT_EQ(0, rvc_conn_stats(self->fd, 0, 77, &stats));
	EXPECT_EQ(255, stats.index);
	EXPECT_EQ(2 * NUM_CONN, stats.num_conn);
	EXPECT_EQ(RV_CONN_STAT_FLAG_SERVER | RV_CONN_STAT_FLAG_CLIENT, stats.flags);
}

/* "All of them were connected" is true of none. */
TEST_F(conn, stats_of_no_connection)
{
	struct rv_conn_get_stats_params_out want, stats;

	memset(&want, 0, sizeof(want));
	want.index = RV_CONN_STAT_AGGREGATE;
	want.flags = RV_CONN_STAT_FLAG_WAS_CONNECTED;
	ASSERT_EQ(0, rvc_conn_stats(rvt_attach(_metadata, &self->port), 0, 0, &stats));
	EXPECT_EQ(0, memcmp(&want, &stats, sizeof(stats)));
}

TEST_F(conn, stats_have_no_holes)
{
	struct rv_conn_get_stats_params_out stats;

	ASSERT_EQ(0, rvc_conn_stats(self->fd, self->conn.handle, 0, &stats));
	EXPECT_EQ(0, stats.hole0[0] | stats.hole0[1]);
	EXPECT_EQ(0, stats.hole1);
	EXPECT_EQ(0, stats.hole2);
}

TEST_F(conn, stats_unwritable_answer)
{
	struct rv_conn_get_stats_params params = { .in.handle = self->conn.handle };

	EXPECT_ERRNO(EFAULT, rvc_ioctl(self->fd, RV_IOCTL_CONN_GET_STATS,
				       rvt_read_only(_metadata, &params, sizeof(params))));
}

/* The lower GID listens, whatever the numbers of the addresses say. */
TEST_F(conn, roles)
{
	struct rv_conn_get_stats_params_out stats;
	struct rv_conn_create_params params;
	struct rvc_conn conn;

	rvc_create_init(&params.in, &self->port, RVT_PEER_BELOW);
	params.in.rem_addr = ~0U;
	ASSERT_EQ(0, rvc_conn_create(self->fd, &params, &conn));
	ASSERT_EQ(0, rvc_conn_stats(self->fd, conn.handle, 0, &stats));
	EXPECT_EQ(RV_CONN_STAT_FLAG_CLIENT, stats.flags);
	rvc_create_init(&params.in, &self->port, self->peer - 1);
	params.in.rem_addr = 0;
	ASSERT_EQ(0, rvc_conn_create(self->fd, &params, &conn));
	ASSERT_EQ(0, rvc_conn_stats(self->fd, conn.handle, 0, &stats));
	EXPECT_EQ(RV_CONN_STAT_FLAG_SERVER, stats.flags);
}

/* ---- a peer that cannot be reached --------------------------------------- */

/*
 * A GID below ours that is no IPv4 address: this side connects, and finds at once
 * that there is no way from its own address to that one.
 */
static const uint8_t another_family[16] = { [15] = 2 };

static void create_dead_init(struct rv_conn_create_params_in *in, const struct rvc_port *port)
{
	rvc_create_init(in, port, 2);
	memcpy(in->ah.grh.dgid, another_family, 16);
}

/* A file with a connection in its final state, and a registration. */
FIXTURE(dead)
{
	struct rvc_port port;
	struct rv_attach_params_in attach;
	struct rv_conn_create_params create;
	struct rvc_conn conn;
	struct rvc_mr mr;
	uint8_t *buf;
	int fd;
};

FIXTURE_SETUP(dead)
{
	struct rv_conn_connect_params_in connect;

	rvt_find_port(_metadata, &self->port);
	rvc_attach_init(&self->attach, &self->port);
	self->fd = rvt_attach_with(_metadata, &self->attach);
	create_dead_init(&self->create.in, &self->port);
	ASSERT_EQ(0, rvc_conn_create(self->fd, &self->create, &self->conn));
	create_dead_init(&self->create.in, &self->port);
	rvc_connect_init(&connect, &self->port, 2, self->conn.handle);
	memcpy(connect.path.dgid, another_family, 16);
	ASSERT_EQ(0, rvc_conn_connect(self->fd, &connect));
	ASSERT_TRUE(RVC_WAIT_FOR(rvc_conn_connected(self->fd, self->conn.handle) != 0));
	self->buf = rvt_alloc(_metadata, 16 * RVC_PAGE);
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf + 4 * RVC_PAGE, 4 * RVC_PAGE, RVC_ACCESS_TARGET,
			     &self->mr));
}

FIXTURE_TEARDOWN(dead)
{
	close(self->fd);
}

TEST_F(dead, connected_says_eio)
{
	EXPECT_ERRNO(EIO, rvc_conn_connected(self->fd, self->conn.handle));
}

TEST_F(dead, count_says_eio)
{
	uint32_t count;

	EXPECT_ERRNO(EIO, rvc_conn_count(self->fd, self->conn.handle, 0, &count));
}

TEST_F(dead, stats_say_that_it_never_was_up)
{
	struct rv_conn_get_stats_params_out stats;

	ASSERT_EQ(0, rvc_conn_stats(self->fd, self->conn.handle, 0, &stats));
	EXPECT_EQ(RV_CONN_STAT_FLAG_CLIENT, stats.flags);
	EXPECT_LE(stats.resolve_fail, stats.resolve);
	EXPECT_EQ(0, stats.req_sent);
	EXPECT_EQ(0, stats.connected_time);
}

/* Another file gets a fresh connection, not the dead one. */
TEST_F(dead, is_replaced_for_the_next_file)
{
	int other = rvt_attach_with(_metadata, &self->attach);
	struct rvc_conn conn;

	ASSERT_EQ(0, rvc_conn_create(other, &self->create, &conn));
	EXPECT_NE(self->conn.conn_handle, conn.conn_handle);
	EXPECT_EQ(0, rvc_conn_connected(other, conn.handle));
	EXPECT_ERRNO(EIO, rvc_conn_connected(self->fd, self->conn.handle));
}

/* ---- POST_RDMA_WR_IMMED -------------------------------------------------- */

/*
 * On a dead connection a request without fault gives EIO, the last check of all.
 * So a row that gives EINVAL was refused for what it spoils.
 */
TEST_F(dead, post_says_eio)
{
	struct rv_post_write_params params;

	rvc_post_init(&params.in, self->conn.handle, &self->mr, 0x1000, 1);
	EXPECT_ERRNO(EIO, rvc_post(self->fd, &params));
}

FIXTURE(post_refused)
{
	FIXTURE_DATA(dead) dead;
};

FIXTURE_VARIANT(post_refused)
{
	void (*spoil)(struct rv_post_write_params_in *in);
};

#define POST_REFUSED(name, statement)                                      \
	static void spoil_post_##name(struct rv_post_write_params_in *in)  \
	{                                                                  \
		statement;                                                 \
	}                                                                  \
	FIXTURE_VARIANT_ADD(post_refused, name)                            \
	{                                                                  \
		.spoil = spoil_post_##name                                 \
	}

POST_REFUSED(handle_0, in->handle = 0);
POST_REFUSED(handle_unknown, in->handle = 2);
POST_REFUSED(mr_addr_before_the_registration, in->loc_mr_addr--);
POST_REFUSED(mr_length_above_the_registration, in->loc_mr_length++);
POST_REFUSED(mr_length_that_wraps, in->loc_mr_length = -in->loc_mr_addr);
POST_REFUSED(mr_elsewhere, in->loc_mr_addr -= 4 * RVC_PAGE);
POST_REFUSED(mr_access_less, in->loc_mr_access &= ~IB_UVERBS_ACCESS_REMOTE_WRITE);
POST_REFUSED(mr_access_more, in->loc_mr_access |= IB_UVERBS_ACCESS_REMOTE_READ);
POST_REFUSED(mr_access_without_kernel_bit, in->loc_mr_access &= ~IBV_ACCESS_KERNEL);
POST_REFUSED(loc_addr_before_the_registration, in->loc_addr--);
POST_REFUSED(loc_addr_behind_the_registration, in->loc_addr += in->length; in->length = 1);
POST_REFUSED(length_beyond_the_registration, in->length++);
POST_REFUSED(length_above_32_bits, in->length += 1ULL << 32);
POST_REFUSED(length_that_wraps, in->length = -in->loc_addr);
POST_REFUSED(length_max, in->length = ~0ULL);

FIXTURE_SETUP(post_refused)
{
	dead_setup(_metadata, &self->dead, NULL);
}

FIXTURE_TEARDOWN(post_refused)
{
	close(self->dead.fd);
}

TEST_F(post_refused, einval)
{
	struct rv_post_write_params good, params;

	rvc_post_init(&good.in, self->dead.conn.handle, &self->dead.mr, 0x1000, 1);
	params = good;
	variant->spoil(&params.in);
	EXPECT_ERRNO(EINVAL, rvc_post(self->dead.fd, &params));
	EXPECT_ERRNO(EIO, rvc_post(self->dead.fd, &good));
}

/* What the next steps would answer is not written when one fails. */
TEST_F(post_refused, answer_is_not_written)
{
	struct rv_post_write_params params, before;

	rvc_post_init(&params.in, self->dead.conn.handle, &self->dead.mr, 0x1000, 1);
	variant->spoil(&params.in);
	before = params;
	rvc_post(self->dead.fd, &params);
	EXPECT_EQ(0, memcmp(&before, &params, sizeof(params)));
}

/* The whole registration, its last byte, nothing at its end: all in range. */
TEST_F(dead, post_of_any_part_of_a_registration)
{
	struct rv_post_write_params params;

	rvc_post_init(&params.in, self->conn.handle, &self->mr, 0x1000, 1);
	params.in.loc_addr += self->mr.length - 1;
	params.in.length = 1;
	EXPECT_ERRNO(EIO, rvc_post(self->fd, &params));
	rvc_post_init(&params.in, self->conn.handle, &self->mr, 0x1000, 1);
	params.in.length = 0;
	EXPECT_ERRNO(EIO, rvc_post(self->fd, &params));
	rvc_post_init(&params.in, self->conn.handle, &self->mr, 0x1000, 1);
	params.in.loc_mr_addr += 100;
	params.in.loc_mr_length = 1;
	EXPECT_ERRNO(EIO, rvc_post(self->fd, &params));
}

/* Not up yet, and never was: the application did not wait for it. */
TEST_F(conn, post_before_it_is_connected)
{
	struct rv_post_write_params params;
	struct rvc_mr mr;

	ASSERT_EQ(0, rvc_reg(self->fd, rvt_alloc(_metadata, RVC_PAGE), RVC_PAGE,
			     RVC_ACCESS_TARGET, &mr));
	rvc_post_init(&params.in, self->conn.handle, &mr, 0x1000, 1);
	EXPECT_ERRNO(EINVAL, rvc_post(self->fd, &params));
}

/* What a refused POST took, it gave back. */
TEST_F(dead, refused_posts_hold_nothing)
{
	struct rv_cache_stats_params_out stats;
	struct rv_conn_get_stats_params_out conn;
	struct rv_post_write_params params;

	for (int i = 0; i < 200; i++) {
		rvc_post_init(&params.in, self->conn.handle, &self->mr, 0x1000, 1);
		ASSERT_ERRNO(EIO, rvc_post(self->fd, &params));
	}
	ASSERT_EQ(0, rvc_conn_stats(self->fd, self->conn.handle, 0, &conn));
	EXPECT_EQ(0, conn.outstand_send_write);
	EXPECT_EQ(0, conn.post_write);
	ASSERT_EQ(0, rvc_dereg(self->fd, &self->mr));
	ASSERT_EQ(0, rvc_cache_stats(self->fd, &stats));
	EXPECT_EQ(0, stats.inuse);
}

/* Writes belong to the process that attached, like registrations. */
TEST_F(dead, forked_child_cannot_post)
{
	struct rv_post_write_params params;

	rvc_post_init(&params.in, self->conn.handle, &self->mr, 0x1000, 1);
	EXPECT_EQ(EINVAL, RVT_IN_CHILD(-rvc_post(self->fd, &params)));
}

TEST(post_before_attach)
{
	struct rv_post_write_params params = { .in.handle = 1 };

	EXPECT_ERRNO(EINVAL, rvc_post(rvt_open(_metadata), &params));
}

/* The other ioctls of connections are open to a forked child. */
TEST_F(conn, forked_child_may_connect)
{
	EXPECT_EQ(0, RVT_IN_CHILD(-rvc_conn_connect(self->fd, &self->connect)));
	EXPECT_EQ(0, RVT_IN_CHILD(-rvc_conn_connected(self->fd, self->conn.handle)));
	EXPECT_EQ(0, rvc_conn_connected(self->fd, self->conn.handle));
}

/* ---- many ---------------------------------------------------------------- */

TEST_F(conn, many_connections)
{
	struct rv_conn_get_stats_params_out stats;
	struct rv_conn_create_params params;
	struct rvc_conn conn;

	for (unsigned int i = 1; i <= 30; i++) {
		rvc_create_init(&params.in, &self->port, self->peer - i);
		ASSERT_EQ(0, rvc_conn_create(self->fd, &params, &conn));
	}
	ASSERT_EQ(0, rvc_conn_stats(self->fd, 0, 0, &stats));
	EXPECT_EQ(31 * NUM_CONN, stats.num_conn);
}

/* Closing while the address of the peer is still being looked for. */
TEST_F(conn, close_while_resolving)
{
	struct rv_conn_connect_params_in in;
	struct rv_conn_create_params params;
	struct rvc_conn conn;
	/* A neighbour below us that nobody is: resolution waits for an answer. */
	uint32_t peer = self->port.addr & ~0xffU;
	int fd;

	for (int i = 0; i < 20; i++) {
		fd = rvt_attach_with(_metadata, &self->attach);
		rvc_create_init(&params.in, &self->port, peer);
		ASSERT_EQ(0, rvc_conn_create(fd, &params, &conn));
		rvc_connect_init(&in, &self->port, peer, conn.handle);
		ASSERT_EQ(0, rvc_conn_connect(fd, &in));
		close(fd);
	}
	/* The job is still what it was. */
	EXPECT_EQ(0, rvc_conn_connected(self->fd, self->conn.handle));
}

RVT_MAIN
