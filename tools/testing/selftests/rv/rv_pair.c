// SPDX-License-Identifier: GPL-2.0
/*
 * Two hosts with a connection between them: how it comes up, events, data of all
 * sizes, processes that share it. See lib/rv_end.h for the command line.
 */
#include "rv_pair_fixture.h"

TEST_F(pair, counts_of_a_fresh_connection)
{
	EXPECT_EQ(1, actor_conn_count(&self->from.actor, self->from.fd, self->from.conn.handle, 0));
	EXPECT_EQ(1, actor_conn_count(&self->to.actor, self->to.fd, self->to.conn.handle, 0));
}

TEST_F(pair, statistics_of_a_fresh_connection)
{
	struct rv_conn_get_stats_params_out server, client;
	bool from_listens = self->from.port.addr < self->to.port.addr;
	struct end *a = from_listens ? &self->from : &self->to;
	struct end *b = from_listens ? &self->to : &self->from;

	ASSERT_EQ(0, actor_conn_stats(&a->actor, a->fd, a->conn.handle, &server));
	ASSERT_EQ(0, actor_conn_stats(&b->actor, b->fd, b->conn.handle, &client));
	EXPECT_EQ(RV_CONN_STAT_FLAG_SERVER | RV_CONN_STAT_FLAG_WAS_CONNECTED, server.flags);
	EXPECT_EQ(RV_CONN_STAT_FLAG_CLIENT | RV_CONN_STAT_FLAG_WAS_CONNECTED, client.flags);
	EXPECT_EQ(1, client.req_sent);
	EXPECT_EQ(1, server.req_recv);
	EXPECT_EQ(1, server.rep_sent);
	EXPECT_EQ(1, client.rep_recv);
	EXPECT_EQ(1, client.rtu_sent);
	EXPECT_EQ(1, client.resolve);
	EXPECT_EQ(0, server.rej_sent + client.rej_recv + server.conn_recovery);
	EXPECT_LT(0, client.connect_time);
}

/* ---- events -------------------------------------------------------------- */

/* Every byte of both events. */
TEST_F(pair, events_of_a_write)
{
	struct buffer source = reg_buffer(_metadata, &self->from, 3 * RVC_PAGE);
	struct buffer target = reg_buffer(_metadata, &self->to, 3 * RVC_PAGE);
	struct rv_post_write_params params;
	struct rv_event want, event;

	write_init(&params, &self->from, &source, &self->to, &target, 0x00345678);
	params.in.wr_id = 0x1122334455667788;
	params.in.length = 12000;
	ASSERT_EQ(0, post(&self->from, &params));
	EXPECT_EQ(0, params.out.sconn_index);
	EXPECT_EQ(0, params.out.hole0[0] | params.out.hole0[1] | params.out.hole0[2]);
	EXPECT_EQ(1, params.out.conn_count);

	memset(&want, 0, sizeof(want));
	want.event_type = RV_WC_RDMA_WRITE;
	want.wc.wr_id = 0x1122334455667788;
	want.wc.conn_handle = self->from.conn.conn_handle;
	want.wc.byte_len = 12000;
	event = next_event(_metadata, &self->from);
	EXPECT_EQ(0, memcmp(&want, &event, sizeof(event)));

	memset(&want, 0, sizeof(want));
	want.event_type = RV_WC_RECV_RDMA_WITH_IMM;
	want.wc.imm_data = immediate(&self->to, 0x00345678);
	want.wc.conn_handle = self->to.conn.conn_handle;
	want.wc.byte_len = 12000;
	event = next_event(_metadata, &self->to);
	EXPECT_EQ(0, memcmp(&want, &event, sizeof(event)));
	expect_no_event(_metadata, &self->from);
	expect_no_event(_metadata, &self->to);
}

/* No data, but both events. */
TEST_F(pair, write_of_nothing)
{
	struct buffer source = reg_buffer(_metadata, &self->from, RVC_PAGE);
	struct buffer target = reg_buffer(_metadata, &self->to, RVC_PAGE);
	struct rv_post_write_params params;

	write_init(&params, &self->from, &source, &self->to, &target, 7);
	params.in.length = 0;
	ASSERT_EQ(0, post(&self->from, &params));
	EXPECT_EQ(0, next_event(_metadata, &self->from).wc.byte_len);
	EXPECT_EQ(immediate(&self->to, 7), next_event(_metadata, &self->to).wc.imm_data);
	EXPECT_EQ(-1, actor_check(&self->to.actor, target.addr, 0, 0, 0));
}

/* Over one queue pair, in the order of the calls, at both ends. */
TEST_F(pair, order)
{
	struct buffer source = reg_buffer(_metadata, &self->from, RVC_PAGE);
	struct buffer target = reg_buffer(_metadata, &self->to, RVC_PAGE);
	struct rv_post_write_params params;
	struct rv_event sent[50], received[50];

	for (unsigned int i = 0; i < 50; i++) {
		write_init(&params, &self->from, &source, &self->to, &target, i);
		params.in.length = 1 + i;
		ASSERT_EQ(0, post(&self->from, &params));
	}
	ASSERT_EQ(50, actor_ring_poll(&self->from.actor, self->from.fd, sent, 50,
				      RVC_PATIENCE_MS));
	ASSERT_EQ(50, actor_ring_poll(&self->to.actor, self->to.fd, received, 50,
				      RVC_PATIENCE_MS));
	for (unsigned int i = 0; i < 50; i++) {
		EXPECT_EQ(0x1000 + i, sent[i].wc.wr_id);
		EXPECT_EQ(1 + i, sent[i].wc.byte_len);
		EXPECT_EQ(immediate(&self->to, i), received[i].wc.imm_data);
		EXPECT_EQ(1 + i, received[i].wc.byte_len);
	}
}

/* Writes both ways at once, more of them than there are receives. */
TEST_F(pair, both_ways)
{
	struct actor_stream stream = { .count = 500, .window = 32 };
	struct actor_stream_result result[2];
	struct rv_conn_get_stats_params_out stats[2];
	struct buffer buffer[2];
	struct end *end[2] = { &self->from, &self->to };
	struct rv_post_write_params params;

	for (int i = 0; i < 2; i++)
		buffer[i] = reg_buffer(_metadata, end[i], 4 * RVC_PAGE);
	for (int i = 0; i < 2; i++) {
		write_init(&params, end[i], &buffer[i], end[!i], &buffer[!i], 0);
		stream.post = params.in;
		stream.fd = end[i]->fd;
		ASSERT_EQ(0, actor_stream_begin(&end[i]->actor, &stream));
	}
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, actor_stream_end(&end[i]->actor, &result[i]));
		EXPECT_EQ(500, result[i].good);
		EXPECT_EQ(0, result[i].bad);
	}
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, actor_conn_stats(&end[i]->actor, end[i]->fd, end[i]->conn.handle,
					      &stats[i]));
		EXPECT_EQ(500, stats[i].post_write);
		EXPECT_EQ(500 * 4 * RVC_PAGE, stats[i].post_write_bytes);
		EXPECT_EQ(500, stats[i].send_write_cqe);
		EXPECT_EQ(0, stats[i].send_write_cqe_fail);
		EXPECT_EQ(500, stats[i].recv_write_cqe);
		EXPECT_EQ(500 * 4 * RVC_PAGE, stats[i].recv_write_bytes);
		EXPECT_EQ(0, stats[i].outstand_send_write);
		EXPECT_EQ(0, stats[i].recv_cqe_fail);
	}
}

TEST_F(pair, event_counters)
{
	struct buffer source = reg_buffer(_metadata, &self->from, RVC_PAGE);
	struct buffer target = reg_buffer(_metadata, &self->to, RVC_PAGE);
	struct rv_event_stats_params_out sent, received;

	for (int i = 0; i < 3; i++)
		write_once(_metadata, &self->from, &source, &self->to, &target);
	ASSERT_EQ(0, actor_ioctl(&self->from.actor, self->from.fd, RV_IOCTL_GET_EVENT_STATS,
				 &sent));
	ASSERT_EQ(0, actor_ioctl(&self->to.actor, self->to.fd, RV_IOCTL_GET_EVENT_STATS,
				 &received));
	EXPECT_EQ(3, sent.send_write_cqe);
	EXPECT_EQ(3 * RVC_PAGE, sent.send_write_bytes);
	EXPECT_EQ(0, sent.send_write_cqe_fail | sent.recv_write_cqe | sent.recv_write_bytes);
	EXPECT_EQ(3, received.recv_write_cqe);
	EXPECT_EQ(3 * RVC_PAGE, received.recv_write_bytes);
	EXPECT_EQ(0, received.recv_write_cqe_fail | received.send_write_cqe |
		     received.send_write_bytes);
}

/* ---- data ---------------------------------------------------------------- */

static const uint64_t small_sizes[] = {
	0, 1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 1023, 1024, 1025, 4095, 4096, 4097, 8191, 8193,
};

static const uint64_t large_sizes[] = {
	65535, 65536, 65537, 131073, 1048575, 1048576, 1048577, 2097153, 4194304, 4194305,
};

static const unsigned int offsets[][2] = { { 0, 0 }, { 1, 0 }, { 0, 1 }, { 17, 4095 } };

TEST_F(pair, small_sizes_at_odd_places)
{
	for (size_t i = 0; i < ARRAY_SIZE(small_sizes); i++) {
		/* Two of the four places each. */
		for (size_t j = i % 2; j < ARRAY_SIZE(offsets); j += 2)
			move(_metadata, &self->from, &self->to, small_sizes[i], offsets[j][0],
			     offsets[j][1]);
	}
}

TEST_F(pair, large_sizes_at_odd_places)
{
	for (size_t i = 0; i < ARRAY_SIZE(large_sizes); i++)
		move(_metadata, &self->from, &self->to, large_sizes[i], offsets[i % 4][0],
		     offsets[i % 4][1]);
}

/* One registration of the largest size, written in one piece. */
TEST_F(pair, largest_registration)
{
	uint64_t limit = self->from.attached.max_fmr_size;
	struct buffer source, target;

	ASSERT_LT(0, limit);
	source = reg_buffer(_metadata, &self->from, limit);
	target = reg_buffer(_metadata, &self->to, limit);
	ASSERT_EQ(0, actor_fill(&self->from.actor, source.addr, limit, 3, 0));
	write_once(_metadata, &self->from, &source, &self->to, &target);
	EXPECT_EQ(-1, actor_check(&self->to.actor, target.addr, limit, 3, 0));
}

/* B27: overlapping registrations; each iova is that of the byte asked for. */
TEST_F(pair, data_through_nested_registrations)
{
	static const struct {
		unsigned int start, length;
	} ranges[] = {
		{ 2 * RVC_PAGE, 4 * RVC_PAGE }, { 0, 8 * RVC_PAGE },
		{ 3 * RVC_PAGE + 77, 500 }, { RVC_PAGE - 1, 2 }, { 5 * RVC_PAGE + 1, 2 * RVC_PAGE },
	};
	struct buffer source = alloc_buffer(_metadata, &self->from, 8 * RVC_PAGE);
	struct buffer target = alloc_buffer(_metadata, &self->to, 8 * RVC_PAGE);
	struct rv_post_write_params params;
	struct rvc_mr local, remote;

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		uint64_t start = ranges[i].start, length = ranges[i].length;

		ASSERT_EQ(0, actor_fill(&self->from.actor, source.addr, source.length, 10 + i, 0));
		ASSERT_EQ(0, actor_fill(&self->to.actor, target.addr, target.length, 2, 0));
		ASSERT_EQ(0, actor_reg(&self->from.actor, self->from.fd, source.addr + start,
				       length, RVC_ACCESS_TARGET, &local));
		ASSERT_EQ(0, actor_reg(&self->to.actor, self->to.fd, target.addr + start, length,
				       RVC_ACCESS_TARGET, &remote));
		rvc_post_init(&params.in, self->from.conn.handle, &local, remote.iova,
			      remote.rkey);
		params.in.immed = immediate(&self->to, i);
		ASSERT_EQ(0, post(&self->from, &params));
		ASSERT_EQ(0, next_event(_metadata, &self->from).wc.status);
		next_event(_metadata, &self->to);
		EXPECT_EQ(-1, actor_check(&self->to.actor, target.addr, start, 2, 0));
		EXPECT_EQ(-1, actor_check(&self->to.actor, target.addr + start, length, 10 + i,
					  start));
		EXPECT_EQ(-1, actor_check(&self->to.actor, target.addr + start + length,
					  target.length - start - length, 2, start + length));
	}
}

/* ---- who gets an event --------------------------------------------------- */

/* Two processes of a job on each host, one connection for both. */
FIXTURE(shared)
{
	struct job job;
	struct end from[2];
	struct end to[2];
	struct buffer source[2];
	struct buffer target[2];
};

FIXTURE_VARIANT(shared)
{
	bool from_remote;
};

FIXTURE_VARIANT_ADD(shared, to_peer) { .from_remote = false };
FIXTURE_VARIANT_ADD(shared, from_peer) { .from_remote = true };

FIXTURE_SETUP(shared)
{
	job_init(&self->job);
	for (int i = 0; i < 2; i++) {
		start_end(_metadata, &self->from[i], variant->from_remote);
		start_end(_metadata, &self->to[i], !variant->from_remote);
		attach_end(_metadata, &self->from[i], &self->job, RING);
		attach_end(_metadata, &self->to[i], &self->job, RING);
		connect_ends(_metadata, &self->from[i], &self->to[i]);
		self->source[i] = reg_buffer(_metadata, &self->from[i], 16 * RVC_PAGE);
		self->target[i] = reg_buffer(_metadata, &self->to[i], 16 * RVC_PAGE);
	}
}

FIXTURE_TEARDOWN(shared)
{
	for (int i = 0; i < 2; i++) {
		actor_stop(&self->from[i].actor);
		actor_stop(&self->to[i].actor);
	}
}

TEST_F(shared, one_connection)
{
	struct rv_conn_get_stats_params_out stats[2];

	EXPECT_EQ(self->from[0].conn.conn_handle, self->from[1].conn.conn_handle);
	EXPECT_EQ(self->to[0].conn.conn_handle, self->to[1].conn.conn_handle);
	EXPECT_NE(self->from[0].attached.rv_index, self->from[1].attached.rv_index);
	write_once(_metadata, &self->from[0], &self->source[0], &self->to[0], &self->target[0]);
	for (int i = 0; i < 2; i++) {
		struct end *end = &self->from[i];

		ASSERT_EQ(0, actor_conn_stats(&end->actor, end->fd, end->conn.handle, &stats[i]));
		EXPECT_EQ(1, stats[i].num_conn);
		EXPECT_EQ(1, stats[i].req_sent + stats[i].req_recv);
		EXPECT_EQ(1, stats[i].send_write_cqe);
	}
}

/* A write finds its process by its index, and its sender by the file. */
TEST_F(shared, events_find_their_process)
{
	for (int i = 0; i < 4; i++) {
		struct end *from = &self->from[i % 2], *to = &self->to[i / 2];
		struct rv_post_write_params params;
		struct rv_event event;

		write_init(&params, from, &self->source[i % 2], to, &self->target[i / 2], i);
		ASSERT_EQ(0, post(from, &params));
		event = next_event(_metadata, from);
		EXPECT_EQ(params.in.wr_id, event.wc.wr_id);
		event = next_event(_metadata, to);
		EXPECT_EQ(params.in.immed, event.wc.imm_data);
		for (int j = 0; j < 2; j++) {
			expect_no_event(_metadata, &self->from[j]);
			expect_no_event(_metadata, &self->to[j]);
		}
	}
}

#define STREAM 100

/* All four at once; nothing is lost or goes astray, data included. */
TEST_F(shared, streams_at_the_same_time)
{
	struct actor_stream stream = { .count = STREAM, .window = 16 };
	struct actor_stream_result result;
	struct rv_event events[STREAM];

	for (int i = 0; i < 2; i++) {
		struct rv_post_write_params params;

		ASSERT_EQ(0, actor_fill(&self->from[i].actor, self->source[i].addr,
					self->source[i].length, 30 + i, 0));
		write_init(&params, &self->from[i], &self->source[i], &self->to[i],
			   &self->target[i], i);
		stream.post = params.in;
		stream.fd = self->from[i].fd;
		ASSERT_EQ(0, actor_stream_begin(&self->from[i].actor, &stream));
	}
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(STREAM, actor_ring_poll(&self->to[i].actor, self->to[i].fd, events,
						  STREAM, RVC_PATIENCE_MS));
		for (int j = 0; j < STREAM; j++) {
			EXPECT_EQ(immediate(&self->to[i], i), events[j].wc.imm_data);
		}
		EXPECT_EQ(-1, actor_check(&self->to[i].actor, self->target[i].addr,
					  self->target[i].length, 30 + i, 0));
	}
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, actor_stream_end(&self->from[i].actor, &result));
		EXPECT_EQ(STREAM, result.good);
		EXPECT_EQ(0, result.bad);
	}
}

/* An index that nobody has: the write arrives, nobody is told, nothing breaks. */
TEST_F(shared, index_of_nobody)
{
	static const uint32_t indices[] = { 2, 100, 255 };
	struct rv_post_write_params params;

	for (size_t i = 0; i < ARRAY_SIZE(indices); i++) {
		write_init(&params, &self->from[0], &self->source[0], &self->to[0],
			   &self->target[0], 1);
		params.in.immed = indices[i] << 24;
		ASSERT_EQ(0, post(&self->from[0], &params));
		EXPECT_EQ(0, next_event(_metadata, &self->from[0]).wc.status);
	}
	write_once(_metadata, &self->from[0], &self->source[0], &self->to[0], &self->target[0]);
	expect_no_event(_metadata, &self->to[0]);
	expect_no_event(_metadata, &self->to[1]);
}

/* A process may use any rkey of its job on the other host. */
TEST_F(shared, key_of_another_process)
{
	ASSERT_EQ(0, actor_fill(&self->from[0].actor, self->source[0].addr, RVC_PAGE, 40, 0));
	write_once(_metadata, &self->from[0], &self->source[0], &self->to[0], &self->target[1]);
	EXPECT_EQ(-1, actor_check(&self->to[1].actor, self->target[1].addr, RVC_PAGE, 40, 0));
}

/* One of them leaves or is killed; the other is not disturbed. */
TEST_F(shared, one_leaves)
{
	actor_stop(&self->from[1].actor);
	actor_stop(&self->to[0].actor);
	for (int i = 0; i < 20; i++)
		write_once(_metadata, &self->from[0], &self->source[0], &self->to[1],
			   &self->target[1]);
	EXPECT_EQ(1, connected(&self->from[0]));
}

TEST_F(shared, one_is_killed_while_it_sends)
{
	struct actor_stream stream = { .count = ~0ULL, .window = 16, .fd = self->from[1].fd };
	struct rv_post_write_params params;
	struct rv_event event;

	write_init(&params, &self->from[1], &self->source[1], &self->to[1], &self->target[1], 1);
	stream.post = params.in;
	ASSERT_EQ(0, actor_stream_begin(&self->from[1].actor, &stream));
	ASSERT_EQ(1, actor_ring_poll(&self->to[1].actor, self->to[1].fd, &event, 1,
				     RVC_PATIENCE_MS));
	ASSERT_EQ(0, actor_kill(&self->from[1].actor));
	for (int i = 0; i < 20; i++)
		write_once(_metadata, &self->from[0], &self->source[0], &self->to[0],
			   &self->target[0]);
	EXPECT_EQ(1, connected(&self->from[0]));
	EXPECT_EQ(1, connected(&self->to[1]));
}

/* Its target is gone, and its keys with it: that ends the connection for both. */
TEST_F(shared, receiver_is_killed)
{
	struct actor_stream stream = { .count = ~0ULL, .window = 16, .fd = self->from[1].fd };
	struct actor_stream_result result;
	struct rv_post_write_params params;
	struct rv_event event;

	write_init(&params, &self->from[1], &self->source[1], &self->to[1], &self->target[1], 1);
	stream.post = params.in;
	ASSERT_EQ(0, actor_stream_begin(&self->from[1].actor, &stream));
	ASSERT_EQ(1, actor_ring_poll(&self->to[1].actor, self->to[1].fd, &event, 1,
				     RVC_PATIENCE_MS));
	ASSERT_EQ(0, actor_kill(&self->to[1].actor));
	ASSERT_EQ(0, actor_stream_end(&self->from[1].actor, &result));
	EXPECT_EQ(result.posted, result.good + result.bad);
	EXPECT_LT(0, result.bad);
	/* Without recovery a lost connection stays lost, and says so. */
	EXPECT_TRUE(RVC_WAIT_FOR(connected(&self->from[0]) == -EIO));
	EXPECT_TRUE(RVC_WAIT_FOR(connected(&self->to[0]) == -EIO));
}

/* No index bits: whatever the immediate data, there is one receiver. */
TEST(no_index_bits)
{
	struct rv_post_write_params params;
	struct buffer source, target;
	struct end from, to;
	struct job job;

	job_init(&job);
	job.index_bits = 0;
	start_end(_metadata, &from, false);
	start_end(_metadata, &to, true);
	attach_end(_metadata, &from, &job, RING);
	attach_end(_metadata, &to, &job, RING);
	connect_ends(_metadata, &from, &to);
	source = reg_buffer(_metadata, &from, RVC_PAGE);
	target = reg_buffer(_metadata, &to, RVC_PAGE);
	for (uint32_t immed = 1; immed; immed <<= 1) {
		write_init(&params, &from, &source, &to, &target, immed);
		ASSERT_EQ(0, post(&from, &params));
		EXPECT_EQ(immed, next_event(_metadata, &to).wc.imm_data);
		EXPECT_EQ(0, next_event(_metadata, &from).wc.status);
	}
	actor_stop(&from.actor);
	actor_stop(&to.actor);
}

/* The most index bits there may be: the index is at the very top. */
TEST(most_index_bits)
{
	struct buffer source, target;
	struct end from, to, other;
	struct job job;

	job_init(&job);
	job.index_bits = RV_MAX_INDEX_BITS;
	start_end(_metadata, &from, false);
	start_end(_metadata, &other, true);
	start_end(_metadata, &to, true);
	attach_end(_metadata, &from, &job, RING);
	attach_end(_metadata, &other, &job, RING);
	attach_end(_metadata, &to, &job, RING);
	connect_ends(_metadata, &from, &to);
	source = reg_buffer(_metadata, &from, RVC_PAGE);
	target = reg_buffer(_metadata, &to, RVC_PAGE);
	ASSERT_EQ(1, to.attached.rv_index);
	ASSERT_EQ(0x00100001, immediate(&to, 1));
	write_once(_metadata, &from, &source, &to, &target);
	expect_no_event(_metadata, &other);
	actor_stop(&from.actor);
	actor_stop(&to.actor);
	actor_stop(&other.actor);
}

/* ---- several queue pairs ------------------------------------------------- */

TEST(writes_take_turns_over_queue_pairs)
{
	unsigned int used[4] = { 0 };
	struct rv_post_write_params params;
	struct rv_conn_get_stats_params_out stats;
	struct buffer source, target;
	struct end from, to;
	struct job job;

	job_init(&job);
	job.num_conn = 4;
	start_end(_metadata, &from, false);
	start_end(_metadata, &to, true);
	attach_end(_metadata, &from, &job, RING);
	attach_end(_metadata, &to, &job, RING);
	connect_ends(_metadata, &from, &to);
	source = reg_buffer(_metadata, &from, RVC_PAGE);
	target = reg_buffer(_metadata, &to, RVC_PAGE);
	for (int i = 0; i < 20; i++) {
		write_init(&params, &from, &source, &to, &target, i);
		ASSERT_EQ(0, post(&from, &params));
		ASSERT_GT(4, params.out.sconn_index);
		used[params.out.sconn_index]++;
		EXPECT_EQ(1, params.out.conn_count);
		EXPECT_EQ(0, next_event(_metadata, &from).wc.status);
		next_event(_metadata, &to);
	}
	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(5, used[i]);
		EXPECT_EQ(1, actor_conn_count(&to.actor, to.fd, to.conn.handle, i));
	}
	ASSERT_EQ(0, actor_conn_stats(&from.actor, from.fd, from.conn.handle, &stats));
	EXPECT_EQ(4, stats.num_conn);
	EXPECT_EQ(20, stats.post_write);
	EXPECT_TRUE(stats.flags & RV_CONN_STAT_FLAG_WAS_CONNECTED);
	actor_stop(&from.actor);
	actor_stop(&to.actor);
}

/*
 * As many writes as the queue is deep, and one more: refused until one has ended.
 * They are large, so that none ends before the last is posted; should the machine be
 * slow at the wrong moment, it is tried again.
 */
TEST(queue_is_full)
{
	struct rv_post_write_params params;
	struct buffer source, target;
	struct rv_event events[3];
	struct end from, to;
	bool refused = false;
	struct job job;
	int posted;

	job_init(&job);
	job.q_depth = 2;
	start_end(_metadata, &from, false);
	start_end(_metadata, &to, true);
	attach_end(_metadata, &from, &job, RING);
	attach_end(_metadata, &to, &job, RING);
	connect_ends(_metadata, &from, &to);
	source = reg_buffer(_metadata, &from, MIB);
	target = reg_buffer(_metadata, &to, MIB);
	for (int round = 0; round < 20 && !refused; round++) {
		for (posted = 0; posted < 3 && !refused; posted += !refused) {
			int ret;

			write_init(&params, &from, &source, &to, &target, posted);
			ret = post(&from, &params);
			ASSERT_TRUE(!ret || (ret == -ENOMEM && posted == 2));
			refused = ret;
		}
		ASSERT_EQ(posted, actor_ring_poll(&from.actor, from.fd, events, posted,
						  RVC_PATIENCE_MS));
		ASSERT_EQ(posted, actor_ring_poll(&to.actor, to.fd, events, posted,
						  RVC_PATIENCE_MS));
	}
	EXPECT_TRUE(refused);
	write_once(_metadata, &from, &source, &to, &target);
	actor_stop(&from.actor);
	actor_stop(&to.actor);
}

/* ---- connections that do not come up ------------------------------------- */

/* The ends differ in something that a REQ is matched by. */
FIXTURE(mismatch)
{
	struct end server;
	struct end client;
	struct job job[2];
};

FIXTURE_VARIANT(mismatch)
{
	void (*change)(struct job *job);
};

static void other_key(struct job *job)
{
	job->key[0] ^= 1;
}

static void other_service(struct job *job)
{
	job->service_id = 0x1000125500000077;
}

FIXTURE_VARIANT_ADD(mismatch, job_key) { .change = other_key };
FIXTURE_VARIANT_ADD(mismatch, service_id) { .change = other_service };

FIXTURE_SETUP(mismatch)
{
	struct end swap;

	job_init(&self->job[0]);
	self->job[1] = self->job[0];
	variant->change(&self->job[1]);
	start_end(_metadata, &self->server, false);
	start_end(_metadata, &self->client, true);
	if (self->server.port.addr > self->client.port.addr) {
		swap = self->server;
		self->server = self->client;
		self->client = swap;
	}
	attach_end(_metadata, &self->server, &self->job[0], RING);
	attach_end(_metadata, &self->client, &self->job[1], RING);
	create_end(_metadata, &self->server, &self->client);
	create_end(_metadata, &self->client, &self->server);
	ASSERT_EQ(0, connect_end(&self->server, &self->client));
	ASSERT_EQ(0, connect_end(&self->client, &self->server));
}

FIXTURE_TEARDOWN(mismatch)
{
	actor_stop(&self->server.actor);
	actor_stop(&self->client.actor);
}

/* The side that connects is refused; the side that listens goes on waiting. */
TEST_F(mismatch, does_not_connect)
{
	EXPECT_TRUE(RVC_WAIT_FOR(connected(&self->client) != 0));
	EXPECT_EQ(-EIO, connected(&self->client));
	EXPECT_EQ(0, connected(&self->server));
}

/* The side that listens need not call CONNECT at all. */
TEST(server_does_not_connect)
{
	struct end a, b, *server, *client;
	struct job job;

	job_init(&job);
	start_end(_metadata, &a, false);
	start_end(_metadata, &b, true);
	server = a.port.addr < b.port.addr ? &a : &b;
	client = server == &a ? &b : &a;
	attach_end(_metadata, &a, &job, RING);
	attach_end(_metadata, &b, &job, RING);
	create_end(_metadata, &a, &b);
	create_end(_metadata, &b, &a);
	ASSERT_EQ(0, connect_end(client, server));
	EXPECT_TRUE(RVC_WAIT_FOR(connected(client) != 0));
	EXPECT_EQ(1, connected(client));
	EXPECT_TRUE(RVC_WAIT_FOR(connected(server) != 0));
	EXPECT_EQ(1, connected(server));
	actor_stop(&a.actor);
	actor_stop(&b.actor);
}

/* ---- POST on a connection that is up ------------------------------------- */

/* Refused requests leave the connection as it is. */
TEST_F(pair, refused_posts_do_no_harm)
{
	struct buffer source = reg_buffer(_metadata, &self->from, 4 * RVC_PAGE);
	struct buffer target = reg_buffer(_metadata, &self->to, 4 * RVC_PAGE);
	struct rv_conn_get_stats_params_out stats;
	struct rv_post_write_params params;

	write_init(&params, &self->from, &source, &self->to, &target, 1);
	params.in.length++;
	EXPECT_ERRNO(EINVAL, post(&self->from, &params));
	write_init(&params, &self->from, &source, &self->to, &target, 1);
	params.in.length += 1ULL << 32;
	EXPECT_ERRNO(EINVAL, post(&self->from, &params));
	write_init(&params, &self->from, &source, &self->to, &target, 1);
	params.in.loc_addr--;
	EXPECT_ERRNO(EINVAL, post(&self->from, &params));
	write_init(&params, &self->from, &source, &self->to, &target, 1);
	params.in.loc_mr_access ^= IB_UVERBS_ACCESS_REMOTE_READ;
	EXPECT_ERRNO(EINVAL, post(&self->from, &params));
	write_init(&params, &self->from, &source, &self->to, &target, 1);
	params.in.handle++;
	EXPECT_ERRNO(EINVAL, post(&self->from, &params));

	write_once(_metadata, &self->from, &source, &self->to, &target);
	ASSERT_EQ(0, actor_conn_stats(&self->from.actor, self->from.fd, self->from.conn.handle,
				      &stats));
	EXPECT_EQ(1, stats.post_write);
	EXPECT_EQ(0, stats.outstand_send_write);
}

/* Registered for the tests of a source: a registration that nobody may write to. */
TEST_F(pair, target_without_remote_write)
{
	struct buffer source = reg_buffer(_metadata, &self->from, RVC_PAGE);
	struct buffer target = alloc_buffer(_metadata, &self->to, RVC_PAGE);
	struct rv_post_write_params params;
	struct rv_event event;

	ASSERT_EQ(0, actor_fill(&self->to.actor, target.addr, target.length, 2, 0));
	ASSERT_EQ(0, actor_reg(&self->to.actor, self->to.fd, target.addr, target.length,
			       IBV_ACCESS_KERNEL | IB_UVERBS_ACCESS_LOCAL_WRITE, &target.mr));
	write_init(&params, &self->from, &source, &self->to, &target, 1);
	ASSERT_EQ(0, post(&self->from, &params));
	event = next_event(_metadata, &self->from);
	EXPECT_NE(0, event.wc.status);
	EXPECT_EQ(params.in.wr_id, event.wc.wr_id);
	EXPECT_EQ(params.in.length, event.wc.byte_len);
	EXPECT_EQ(-1, actor_check(&self->to.actor, target.addr, target.length, 2, 0));
}

/* What is released is released: its key is worth nothing any more. */
TEST_F(pair, target_that_was_removed)
{
	struct buffer source = reg_buffer(_metadata, &self->from, RVC_PAGE);
	struct buffer target = reg_buffer(_metadata, &self->to, RVC_PAGE);
	struct rv_post_write_params params;

	write_once(_metadata, &self->from, &source, &self->to, &target);
	ASSERT_EQ(0, actor_dereg(&self->to.actor, self->to.fd, &target.mr));
	/* The entry was idle, and goes with its memory. */
	ASSERT_EQ(0, actor_munmap(&self->to.actor, target.addr, target.length));
	ASSERT_TRUE(RVC_WAIT_FOR(nothing_pinned(&self->to)));
	write_init(&params, &self->from, &source, &self->to, &target, 1);
	ASSERT_EQ(0, post(&self->from, &params));
	EXPECT_NE(0, next_event(_metadata, &self->from).wc.status);
}

PAIR_MAIN
