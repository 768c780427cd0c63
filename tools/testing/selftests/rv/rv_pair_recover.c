// SPDX-License-Identifier: GPL-2.0
/*
 * A connection that several processes share breaks, and comes back for all of them.
 * See lib/rv_end.h for the command line.
 */
#include "rv_end.h"

#define WRITES 40

/* Two processes of a job on each host, one connection for both, with recovery. */
FIXTURE(recovery)
{
	struct job job;
	struct end from[2];
	struct end to[2];
	struct buffer source[2];
	struct buffer target[2];
};

FIXTURE_VARIANT(recovery)
{
	bool from_remote;
	uint8_t num_conn;
};

FIXTURE_VARIANT_ADD(recovery, to_peer) { .from_remote = false, .num_conn = 1 };
FIXTURE_VARIANT_ADD(recovery, from_peer) { .from_remote = true, .num_conn = 1 };
FIXTURE_VARIANT_ADD(recovery, striped) { .from_remote = false, .num_conn = 4 };

FIXTURE_SETUP(recovery)
{
	job_init(&self->job);
	self->job.num_conn = variant->num_conn;
	/* Longer than a recovery takes, shorter than RVC_PATIENCE_MS. */
	self->job.reconnect_timeout = 60;
	self->job.hb_interval = 500;
	for (int i = 0; i < 2; i++) {
		start_end(_metadata, &self->from[i], variant->from_remote);
		start_end(_metadata, &self->to[i], !variant->from_remote);
		attach_end(_metadata, &self->from[i], &self->job, RING);
		attach_end(_metadata, &self->to[i], &self->job, RING);
		EXPECT_EQ(60, self->from[i].attached.reconnect_timeout);
		connect_ends(_metadata, &self->from[i], &self->to[i]);
		self->source[i] = reg_buffer(_metadata, &self->from[i], RVC_PAGE);
		self->target[i] = reg_buffer(_metadata, &self->to[i], RVC_PAGE);
	}
}

FIXTURE_TEARDOWN(recovery)
{
	for (int i = 0; i < 2; i++) {
		actor_stop(&self->from[i].actor);
		actor_stop(&self->to[i].actor);
	}
}

static int count_of(struct end *end, uint8_t index)
{
	return actor_conn_count(&end->actor, end->fd, end->conn.handle, index);
}

/* What the fixture's data is called in functions. */
#define RECOVERY FIXTURE_DATA(recovery)

/* Posts a write of process i; gives the queue pair, or the error. */
static int post_one(RECOVERY *self, int i, int tag, bool bad, uint32_t *count)
{
	struct rv_post_write_params params;
	int err;

	write_init(&params, &self->from[i], &self->source[i], &self->to[i], &self->target[i],
		   tag);
	if (bad)
		params.in.rkey = 0x12345600;
	err = post(&self->from[i], &params);
	if (err)
		return err;
	*count = params.out.conn_count;
	return params.out.sconn_index;
}

/*
 * Both processes write, one of the writes has a bad key. All that was posted over the
 * queue pair that broke is answered before its count rises; the same on the other
 * side, for what has arrived. Gives the index of the queue pair.
 */
static int break_and_wait(struct __test_metadata *_metadata, RECOVERY *self, int broken_count)
{
	int posted[2][16] = {}, sum[2] = {}, broken = -1;
	struct rv_event events[2][WRITES];
	int bad = 0;

	for (int n = 0; n < WRITES; n++) {
		uint32_t count;
		int i = n % 2;
		int index = post_one(self, i, n, n == WRITES / 2, &count);

		if (index == -EAGAIN)
			continue;
		ASSERT_LE(0, index);
		if (n == WRITES / 2)
			broken = index;
		/* Counted by what the POST itself said, not by when it was made. */
		if (index == broken && count > (uint32_t)broken_count)
			continue;
		posted[i][index]++;
	}
	ASSERT_LE(0, broken);
	ASSERT_TRUE(RVC_WAIT_FOR(count_of(&self->from[0], broken) > broken_count));
	ASSERT_TRUE(RVC_WAIT_FOR(count_of(&self->to[0], broken) > broken_count));
	/* Both processes of a host see the same. */
	EXPECT_EQ(broken_count + 1, count_of(&self->from[1], broken));
	EXPECT_EQ(broken_count + 1, count_of(&self->to[1], broken));
	for (int i = 0; i < 2; i++)
		for (int index = 0; index < self->job.num_conn; index++)
			sum[i] += posted[i][index];
	for (int i = 0; i < 2; i++) {
		/* With a single queue pair nothing has to be waited for any more. */
		int patience = self->job.num_conn == 1 ? 0 : RVC_PATIENCE_MS;
		int got = actor_ring_poll(&self->from[i].actor, self->from[i].fd, events[i],
					  sum[i], patience);

		EXPECT_EQ(sum[i], got);
		for (int n = 0; n < got; n++) {
			EXPECT_EQ(RV_WC_RDMA_WRITE, events[i][n].event_type);
			bad += !!events[i][n].wc.status;
		}
	}
	EXPECT_LT(0, bad);
	return broken;
}

/* Takes everything away that is in the rings. */
static void empty_rings(RECOVERY *self)
{
	struct rv_event events[RING];

	for (int i = 0; i < 2; i++) {
		actor_ring_poll(&self->from[i].actor, self->from[i].fd, events, RING, 0);
		actor_ring_poll(&self->to[i].actor, self->to[i].fd, events, RING, 0);
	}
}

/* Writes of both processes arrive, over each queue pair. */
static void expect_all_works(struct __test_metadata *_metadata, RECOVERY *self)
{
	for (int n = 0; n < self->job.num_conn; n++)
		for (int i = 0; i < 2; i++) {
			ASSERT_EQ(0, actor_fill(&self->from[i].actor, self->source[i].addr,
						RVC_PAGE, n + 1, 0));
			write_once(_metadata, &self->from[i], &self->source[i], &self->to[i],
				   &self->target[i]);
			EXPECT_EQ(-1, actor_check(&self->to[i].actor, self->target[i].addr,
						  RVC_PAGE, n + 1, 0));
		}
}

TEST_F(recovery, bad_key)
{
	struct rv_conn_get_stats_params_out stats[2];
	struct end *ends[2] = { &self->from[0], &self->to[0] };
	int broken = break_and_wait(_metadata, self, 1);
	uint32_t count = 0;
	int index;

	for (index = 0; index < self->job.num_conn; index++)
		EXPECT_EQ(index == broken ? 2 : 1, count_of(&self->from[0], index));
	EXPECT_EQ(1, connected(&self->from[0]));
	EXPECT_EQ(1, connected(&self->to[1]));
	empty_rings(self);
	expect_all_works(_metadata, self);
	do {
		index = post_one(self, 1, 1, false, &count);
		EXPECT_EQ(0, next_event(_metadata, &self->from[1]).wc.status);
	} while (index != broken && index >= 0);
	EXPECT_EQ(2, count);
	for (int i = 0; i < 2; i++) {
		bool server = ends[i]->port.addr < ends[!i]->port.addr;

		ASSERT_EQ(0, actor_conn_stats(&ends[i]->actor, ends[i]->fd,
					      ends[i]->conn.handle, &stats[i]));
		EXPECT_EQ(1, stats[i].conn_recovery);
		EXPECT_TRUE(stats[i].flags & RV_CONN_STAT_FLAG_WAS_CONNECTED);
		EXPECT_EQ(0, stats[i].reresolve_fail + stats[i].unexp_event);
		if (server) {
			EXPECT_LT(0, stats[i].rewait_time);
			EXPECT_EQ(stats[i].max_rewait_time, stats[i].rewait_time);
			EXPECT_EQ(0, stats[i].reresolve);
		} else {
			EXPECT_LE(1, stats[i].reresolve);
			EXPECT_EQ(self->job.num_conn, stats[i].resolve);
		}
		EXPECT_LT(0, stats[i].reconnect_time);
		EXPECT_LT(0, stats[i].connected_time);
	}
}

/* Not only once. */
TEST_F(recovery, again_and_again)
{
	int counts[16] = {};

	for (int round = 0; round < 4; round++) {
		/* Rounds may break another queue pair each. */
		if (self->job.num_conn == 1) {
			break_and_wait(_metadata, self, round + 1);
		} else {
			uint32_t count;
			int index = post_one(self, 0, round, true, &count);

			ASSERT_LE(0, index);
			counts[index]++;
			ASSERT_TRUE(RVC_WAIT_FOR(count_of(&self->from[0], index) ==
						 counts[index] + 1));
			ASSERT_TRUE(RVC_WAIT_FOR(count_of(&self->to[0], index) ==
						 counts[index] + 1));
		}
		empty_rings(self);
		expect_all_works(_metadata, self);
	}
}

/* The process that broke it ends meanwhile; the other one goes on. */
TEST_F(recovery, culprit_is_killed)
{
	uint32_t count;
	int index = post_one(self, 0, 0, true, &count);

	ASSERT_LE(0, index);
	ASSERT_EQ(0, actor_kill(&self->from[0].actor));
	ASSERT_TRUE(RVC_WAIT_FOR(count_of(&self->from[1], index) == 2));
	ASSERT_TRUE(RVC_WAIT_FOR(count_of(&self->to[1], index) == 2));
	for (int n = 0; n < 2 * self->job.num_conn; n++)
		write_once(_metadata, &self->from[1], &self->source[1], &self->to[1],
			   &self->target[1]);
}

/* All processes of a host end in the middle of it: the other host is told in peace. */
TEST_F(recovery, all_are_killed)
{
	uint32_t count;

	ASSERT_LE(0, post_one(self, 0, 0, true, &count));
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, actor_kill(&self->from[i].actor));
	for (int i = 0; i < 2; i++)
		EXPECT_TRUE(RVC_WAIT_FOR(connected(&self->to[i]) == -EIO));
}

PAIR_MAIN
