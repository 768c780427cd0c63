// SPDX-License-Identifier: GPL-2.0
/*
 * What can end in the middle: a connection, a process, a file, a device; on either
 * host, with writes under way. See lib/rv_end.h for the command line.
 */
#include "rv_break.h"
#include "rv_pair_fixture.h"

/* ---- a connection that is lost ------------------------------------------- */

#define FLUSH_ERROR 5	/* IB_WC_WR_FLUSH_ERR */

/* A write with a bad key breaks the connection; all of its users are told. */
static void break_connection(struct __test_metadata *_metadata, struct end *from, struct end *to,
			     const struct buffer *source)
{
	struct rv_post_write_params params;
	struct rv_event event;

	rvc_post_init(&params.in, from->conn.handle, &source->mr, 0x1000, 0x12345600);
	params.in.immed = immediate(to, 0);
	params.in.wr_id = 77;
	ASSERT_EQ(0, post(from, &params));
	event = next_event(_metadata, from);
	ASSERT_EQ(RV_WC_RDMA_WRITE, event.event_type);
	ASSERT_NE(0, event.wc.status);
	ASSERT_EQ(77, event.wc.wr_id);
}

TEST_F(pair, bad_key)
{
	struct buffer source = reg_buffer(_metadata, &self->from, RVC_PAGE);
	struct rv_conn_get_stats_params_out stats;
	struct rv_post_write_params params;

	break_connection(_metadata, &self->from, &self->to, &source);
	EXPECT_TRUE(RVC_WAIT_FOR(connected(&self->from) == -EIO));
	EXPECT_TRUE(RVC_WAIT_FOR(connected(&self->to) == -EIO));
	EXPECT_EQ(-EIO, actor_conn_count(&self->from.actor, self->from.fd,
					 self->from.conn.handle, 0));
	write_init(&params, &self->from, &source, &self->to, &source, 1);
	EXPECT_ERRNO(EIO, post(&self->from, &params));
	ASSERT_EQ(0, actor_conn_stats(&self->from.actor, self->from.fd, self->from.conn.handle,
				      &stats));
	EXPECT_EQ(1, stats.send_write_cqe_fail);
	EXPECT_EQ(0, stats.outstand_send_write);
	expect_no_event(_metadata, &self->to);
}

/* A write of several packets: the error comes another way. */
TEST_F(pair, bad_key_in_a_large_write)
{
	struct buffer source = reg_buffer(_metadata, &self->from, MIB);

	break_connection(_metadata, &self->from, &self->to, &source);
	EXPECT_TRUE(RVC_WAIT_FOR(connected(&self->from) == -EIO));
	EXPECT_TRUE(RVC_WAIT_FOR(connected(&self->to) == -EIO));
}

/*
 * Every write is answered once, in order, and none behind the bad one with success.
 * Those before it have arrived, but may be answered with a flush: the peer's
 * disconnect can be faster than their acknowledgements.
 */
TEST_F(pair, every_write_gets_its_event)
{
	struct buffer source = reg_buffer(_metadata, &self->from, RVC_PAGE);
	struct buffer target = reg_buffer(_metadata, &self->to, RVC_PAGE);
	struct rv_post_write_params params;
	struct rv_event events[20];
	int posted = 0;

	for (int i = 0; i < 20; i++) {
		write_init(&params, &self->from, &source, &self->to, &target, i);
		if (i == 5)
			params.in.rkey = 0x12345600;
		if (post(&self->from, &params))
			break;
		posted++;
	}
	ASSERT_LT(5, posted);
	ASSERT_EQ(posted, actor_ring_poll(&self->from.actor, self->from.fd, events, posted,
					  RVC_PATIENCE_MS));
	for (int i = 0; i < posted; i++) {
		bool flushed = events[i].wc.status == FLUSH_ERROR;

		EXPECT_EQ(0x1000 + i, events[i].wc.wr_id);
		EXPECT_TRUE(i < 5 ? flushed || !events[i].wc.status : events[i].wc.status)
			TH_LOG("write %d: status %d", i, events[i].wc.status);
	}
	expect_no_event(_metadata, &self->from);
}

/* The same file can still do everything else; another file gets a connection. */
TEST_F(pair, fresh_connection_after_a_lost_one)
{
	struct buffer source = reg_buffer(_metadata, &self->from, RVC_PAGE);
	struct buffer target = reg_buffer(_metadata, &self->to, RVC_PAGE);
	struct end from = self->from, to = self->to;

	break_connection(_metadata, &self->from, &self->to, &source);
	EXPECT_TRUE(RVC_WAIT_FOR(connected(&self->from) == -EIO));
	EXPECT_TRUE(RVC_WAIT_FOR(connected(&self->to) == -EIO));
	/* Another file of the same processes and the same job. */
	attach_end(_metadata, &from, &self->job, RING);
	attach_end(_metadata, &to, &self->job, RING);
	connect_ends(_metadata, &from, &to);
	EXPECT_NE(self->from.conn.conn_handle, from.conn.conn_handle);
	source = reg_buffer(_metadata, &from, RVC_PAGE);
	target = reg_buffer(_metadata, &to, RVC_PAGE);
	write_once(_metadata, &from, &source, &to, &target);
	EXPECT_EQ(-EIO, connected(&self->from));
}

/* The peer ends in peace: the other side is told, without an error event. */
TEST_F(pair, peer_closes)
{
	struct buffer source = reg_buffer(_metadata, &self->from, RVC_PAGE);
	struct rv_post_write_params params;

	actor_stop(&self->to.actor);
	EXPECT_TRUE(RVC_WAIT_FOR(connected(&self->from) == -EIO));
	write_init(&params, &self->from, &source, &self->to, &source, 1);
	EXPECT_ERRNO(EIO, post(&self->from, &params));
	expect_no_event(_metadata, &self->from);
}

/* ---- in the middle of a transfer ----------------------------------------- */

/* A stream of large writes that has got going. */
FIXTURE(stream)
{
	FIXTURE_DATA(pair) pair;
	struct buffer source;
	struct buffer target;
};

FIXTURE_VARIANT(stream)
{
	bool from_remote;
};

FIXTURE_VARIANT_ADD(stream, to_peer) { .from_remote = false };
FIXTURE_VARIANT_ADD(stream, from_peer) { .from_remote = true };

FIXTURE_SETUP(stream)
{
	FIXTURE_VARIANT(pair) direction = { .from_remote = variant->from_remote };
	struct actor_stream stream = { .count = ~0ULL, .window = 16 };
	struct rv_post_write_params params;
	struct rv_event event;

	pair_setup(_metadata, &self->pair, &direction);
	self->source = reg_buffer(_metadata, &self->pair.from, MIB);
	self->target = reg_buffer(_metadata, &self->pair.to, MIB);
	write_init(&params, &self->pair.from, &self->source, &self->pair.to, &self->target, 1);
	stream.post = params.in;
	stream.fd = self->pair.from.fd;
	ASSERT_EQ(0, actor_stream_begin(&self->pair.from.actor, &stream));
	ASSERT_EQ(1, actor_ring_poll(&self->pair.to.actor, self->pair.to.fd, &event, 1,
				     RVC_PATIENCE_MS));
}

FIXTURE_TEARDOWN(stream)
{
	actor_stop(&self->pair.from.actor);
	actor_stop(&self->pair.to.actor);
}

TEST_F(stream, sender_is_killed)
{
	ASSERT_EQ(0, actor_kill(&self->pair.from.actor));
	EXPECT_TRUE(RVC_WAIT_FOR(connected(&self->pair.to) == -EIO));
	expect_new_job_works(_metadata);
	actor_stop(&self->pair.to.actor);
	expect_nothing_left(_metadata);
}

TEST_F(stream, receiver_is_killed)
{
	struct actor_stream_result result;

	ASSERT_EQ(0, actor_kill(&self->pair.to.actor));
	ASSERT_EQ(0, actor_stream_end(&self->pair.from.actor, &result));
	EXPECT_EQ(result.posted, result.good + result.bad);
	EXPECT_TRUE(RVC_WAIT_FOR(connected(&self->pair.from) == -EIO));
	expect_new_job_works(_metadata);
	actor_stop(&self->pair.from.actor);
	expect_nothing_left(_metadata);
}

TEST_F(stream, both_are_killed)
{
	ASSERT_EQ(0, actor_kill(&self->pair.to.actor));
	ASSERT_EQ(0, actor_kill(&self->pair.from.actor));
	expect_new_job_works(_metadata);
	expect_nothing_left(_metadata);
}

/* Closing the file with writes under way waits for them or ends them. */
TEST_F(pair, close_with_writes_under_way)
{
	struct buffer source = reg_buffer(_metadata, &self->from, MIB);
	struct buffer target = reg_buffer(_metadata, &self->to, MIB);
	struct rv_post_write_params params;

	for (int i = 0; i < 16; i++) {
		write_init(&params, &self->from, &source, &self->to, &target, i);
		ASSERT_EQ(0, post(&self->from, &params));
	}
	/* The mapping of the ring holds the file too. */
	EXPECT_EQ(0, actor_ring_unmap(&self->from.actor, self->from.fd));
	EXPECT_EQ(0, actor_close(&self->from.actor, self->from.fd));
	EXPECT_TRUE(RVC_WAIT_FOR(nothing_pinned(&self->from)));
	EXPECT_TRUE(RVC_WAIT_FOR(connected(&self->to) == -EIO));
	expect_new_job_works(_metadata);
}

TEST_F(pair, receiver_closes_with_writes_under_way)
{
	struct buffer source = reg_buffer(_metadata, &self->from, MIB);
	struct buffer target = reg_buffer(_metadata, &self->to, MIB);
	struct rv_post_write_params params;
	struct rv_event events[16];

	for (int i = 0; i < 16; i++) {
		write_init(&params, &self->from, &source, &self->to, &target, i);
		ASSERT_EQ(0, post(&self->from, &params));
	}
	actor_stop(&self->to.actor);
	EXPECT_EQ(16, actor_ring_poll(&self->from.actor, self->from.fd, events, 16,
				      RVC_PATIENCE_MS));
	expect_new_job_works(_metadata);
}

/* At any moment: between ATTACH and CREATE, CONNECT and REP, REP and RTU, ... */
TEST(close_at_any_moment)
{
	struct end from, to;
	struct job job;

	for (int round = 0; round < 12; round++) {
		job_init(&job);
		job.num_conn = 2;
		start_end(_metadata, &from, round % 2);
		start_end(_metadata, &to, !(round % 2));
		attach_end(_metadata, &from, &job, RING);
		attach_end(_metadata, &to, &job, RING);
		create_end(_metadata, &from, &to);
		create_end(_metadata, &to, &from);
		ASSERT_EQ(0, connect_end(&from, &to));
		ASSERT_EQ(0, connect_end(&to, &from));
		/* A little later each time, until it is up. */
		for (int i = 0; i < round && !connected(&to); i++)
			;
		if (round % 3 == 0)
			actor_stop(&from.actor);
		ASSERT_EQ(round % 3 ? 0 : -ENOTCONN, actor_kill(&from.actor));
		actor_stop(&to.actor);
	}
	expect_new_job_works(_metadata);
	expect_nothing_left(_metadata);
}

/* ---- the device goes ----------------------------------------------------- */

/* The device of a host goes away in the middle; and afterwards all is well again. */
static void link_del(struct __test_metadata *_metadata, bool remote)
{
	struct actor helper;
	struct rvc_port port;

	ASSERT_EQ(0, remote ? actor_start_remote(&helper, peer_host) : actor_start(&helper));
	EXPECT_EQ(0, actor_shell(&helper, LINK_DEL));
	EXPECT_EQ(0, actor_shell(&helper, LINK_ADD));
	EXPECT_EQ(0, actor_port(&helper, &port));
	actor_stop(&helper);
}

TEST_F(stream, device_of_the_sender_goes)
{
	struct actor_stream_result result;
	struct end *from = &self->pair.from;
	struct rv_post_write_params params;

	link_del(_metadata, variant->from_remote);
	ASSERT_EQ(0, actor_stream_end(&from->actor, &result));
	EXPECT_TRUE(result.error == ENXIO || result.error == EIO || result.bad)
		TH_LOG("error %d, bad %llu", result.error, (unsigned long long)result.bad);
	/* The file has lost its device for ever, also with a new one of that name. */
	write_init(&params, from, &self->source, &self->pair.to, &self->target, 1);
	EXPECT_ERRNO(ENXIO, post(from, &params));
	EXPECT_ERRNO(ENXIO, actor_dereg(&from->actor, from->fd, &self->source.mr));
	EXPECT_ERRNO(EINVAL, connected(from));
	expect_new_job_works(_metadata);
}

TEST_F(stream, device_of_the_receiver_goes)
{
	link_del(_metadata, !variant->from_remote);
	/*
	 * Nothing tells the sender but its own time-outs, which on this device
	 * are endless; what must work is to end it.
	 */
	ASSERT_EQ(0, actor_kill(&self->pair.from.actor));
	EXPECT_ERRNO(EINVAL, connected(&self->pair.to));
	expect_new_job_works(_metadata);
}

PAIR_MAIN
