// SPDX-License-Identifier: GPL-2.0
/*
 * The event ring with events in it: full rings, lost events, and applications that
 * write what they must not. See lib/rv_end.h for the command line.
 */
#include "rv_end.h"

/* ---- the ring ------------------------------------------------------------ */

/* A target with a ring of a few entries. */
FIXTURE(small_ring)
{
	struct job job;
	struct end from;
	struct end to;
	struct buffer source;
	struct buffer target;
};

FIXTURE_VARIANT(small_ring)
{
	uint32_t entries;
};

FIXTURE_VARIANT_ADD(small_ring, of_1) { .entries = 1 };
FIXTURE_VARIANT_ADD(small_ring, of_2) { .entries = 2 };
FIXTURE_VARIANT_ADD(small_ring, of_5) { .entries = 5 };

FIXTURE_SETUP(small_ring)
{
	job_init(&self->job);
	start_end(_metadata, &self->from, false);
	start_end(_metadata, &self->to, true);
	attach_end(_metadata, &self->from, &self->job, RING);
	attach_end(_metadata, &self->to, &self->job, variant->entries);
	connect_ends(_metadata, &self->from, &self->to);
	self->source = reg_buffer(_metadata, &self->from, RVC_PAGE);
	self->target = reg_buffer(_metadata, &self->to, RVC_PAGE);
}

FIXTURE_TEARDOWN(small_ring)
{
	actor_stop(&self->from.actor);
	actor_stop(&self->to.actor);
}

/*
 * Sends writes with tags from first on. When the sender's events and the counter
 * of the receiver's connection are there, so are the receiver's events or losses.
 */
static void send_tags(struct __test_metadata *_metadata, FIXTURE_DATA(small_ring) *self,
		      uint32_t first, uint32_t count, uint64_t total)
{
	struct rv_conn_get_stats_params_out stats;
	struct rv_post_write_params params;

	for (uint32_t i = 0; i < count; i++) {
		write_init(&params, &self->from, &self->source, &self->to, &self->target,
			   first + i);
		ASSERT_EQ(0, post(&self->from, &params));
		ASSERT_EQ(0, next_event(_metadata, &self->from).wc.status);
	}
	ASSERT_TRUE(RVC_WAIT_FOR(!actor_conn_stats(&self->to.actor, self->to.fd,
						   self->to.conn.handle, &stats) &&
				 stats.recv_write_cqe == total));
}

static struct actor_ring words(struct __test_metadata *_metadata, struct end *end)
{
	struct actor_ring words;

	ASSERT_EQ(0, actor_ring_get(&end->actor, end->fd, &words));
	return words;
}

static uint64_t counted_events(struct __test_metadata *_metadata, struct end *end)
{
	struct rv_event_stats_params_out stats;

	ASSERT_EQ(0, actor_ioctl(&end->actor, end->fd, RV_IOCTL_GET_EVENT_STATS, &stats));
	return stats.recv_write_cqe;
}

/* Waits for the losses: the counter of the connection may be ahead of the ring. */
static bool lost(struct __test_metadata *_metadata, struct end *end, uint64_t count)
{
	return RVC_WAIT_FOR(words(_metadata, end).overflow_cnt >= count);
}

/* It holds one event less than it has entries; what is more is counted, not kept. */
TEST_F(small_ring, full)
{
	uint32_t room = variant->entries - 1;
	struct rv_event event;

	send_tags(_metadata, self, 0, room, room);
	EXPECT_EQ(0, words(_metadata, &self->to).overflow_cnt);
	EXPECT_TRUE(RVC_WAIT_FOR(words(_metadata, &self->to).tail == room));
	send_tags(_metadata, self, 100, 3, room + 3);
	EXPECT_TRUE(lost(_metadata, &self->to, 3));
	EXPECT_EQ(3, words(_metadata, &self->to).overflow_cnt);
	EXPECT_EQ(room, words(_metadata, &self->to).tail);
	/* Lost events are no events, and do not replace those that are there. */
	EXPECT_EQ(room, counted_events(_metadata, &self->to));
	for (uint32_t i = 0; i < room; i++) {
		EXPECT_EQ(immediate(&self->to, i), next_event(_metadata, &self->to).wc.imm_data);
	}
	EXPECT_EQ(0, actor_ring_poll(&self->to.actor, self->to.fd, &event, 1, 0));
}

/* With room again it goes on where it was, around the end and on. */
TEST_F(small_ring, goes_on_after_a_loss)
{
	uint32_t room = variant->entries - 1;
	uint64_t total = 0;

	for (uint32_t round = 0; round < 7; round++) {
		total += room + 1;
		send_tags(_metadata, self, round * 10, room + 1, total);
		EXPECT_TRUE(lost(_metadata, &self->to, round + 1));
		for (uint32_t i = 0; i < room; i++) {
			EXPECT_EQ(immediate(&self->to, round * 10 + i),
				  next_event(_metadata, &self->to).wc.imm_data);
		}
	}
	EXPECT_EQ(7, words(_metadata, &self->to).overflow_cnt);
	EXPECT_EQ(7 * room, counted_events(_metadata, &self->to));
}

/* The sender's own ring is full: its writes go out, their events are lost. */
TEST_F(small_ring, of_the_sender)
{
	struct rv_conn_get_stats_params_out stats;
	uint32_t room = variant->entries - 1;
	struct rv_post_write_params params;

	for (uint32_t i = 0; i < room + 2; i++) {
		write_init(&params, &self->to, &self->target, &self->from, &self->source, i);
		ASSERT_EQ(0, post(&self->to, &params));
		next_event(_metadata, &self->from);
	}
	EXPECT_TRUE(lost(_metadata, &self->to, 2));
	EXPECT_EQ(2, words(_metadata, &self->to).overflow_cnt);
	ASSERT_EQ(0, actor_conn_stats(&self->to.actor, self->to.fd, self->to.conn.handle,
				      &stats));
	EXPECT_EQ(0, stats.outstand_send_write);
	EXPECT_EQ(room + 2, stats.send_write_cqe);
}

/* A head outside the ring counts as "full", and does nothing else. */
TEST_F(small_ring, hostile_head)
{
	static const uint32_t heads[] = { 0, 1, 1000, 0x7fffffff, 0xffffffff };
	uint32_t entries = variant->entries;
	uint64_t total = 0;

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		uint32_t head = heads[i] < entries ? entries + heads[i] : heads[i];

		ASSERT_EQ(0, actor_ring_set(&self->to.actor, self->to.fd, head, -1));
		send_tags(_metadata, self, i, 1, ++total);
		EXPECT_TRUE(lost(_metadata, &self->to, i + 1))
			TH_LOG("head %u", head);
	}
	EXPECT_EQ(0, words(_metadata, &self->to).tail);
	EXPECT_EQ(0, counted_events(_metadata, &self->to));
	/* A good head again, and events come again. */
	ASSERT_EQ(0, actor_ring_set(&self->to.actor, self->to.fd, 0, -1));
	for (uint32_t i = 0; i < 2 * entries && entries > 1; i++) {
		send_tags(_metadata, self, 50 + i, 1, ++total);
		EXPECT_EQ(immediate(&self->to, 50 + i),
			  next_event(_metadata, &self->to).wc.imm_data);
	}
}

/* The tail is only shown: what the application writes there is not believed. */
TEST_F(small_ring, hostile_tail)
{
	static const uint32_t tails[] = { 1, 3, 1000, 0x7fffffff, 0xffffffff };
	uint32_t entries = variant->entries;
	uint64_t total = 0;

	for (size_t i = 0; i < ARRAY_SIZE(tails) && entries > 1; i++) {
		uint32_t here = words(_metadata, &self->to).head;

		ASSERT_EQ(0, actor_ring_set(&self->to.actor, self->to.fd, -1, tails[i]));
		send_tags(_metadata, self, i, 1, ++total);
		EXPECT_TRUE(RVC_WAIT_FOR(counted_events(_metadata, &self->to) == total));
		/* The next event is where it belongs, and the true tail is back. */
		EXPECT_EQ((here + 1) % entries, words(_metadata, &self->to).tail);
		EXPECT_EQ(immediate(&self->to, i), next_event(_metadata, &self->to).wc.imm_data);
	}
	/* A full ring stays full, whatever its tail says. */
	send_tags(_metadata, self, 20, entries - 1, total + entries - 1);
	total += entries - 1;
	EXPECT_TRUE(RVC_WAIT_FOR(counted_events(_metadata, &self->to) == total));
	ASSERT_EQ(0, actor_ring_set(&self->to.actor, self->to.fd, -1,
				    words(_metadata, &self->to).head));
	send_tags(_metadata, self, 40, 1, ++total);
	EXPECT_TRUE(lost(_metadata, &self->to, 1));
}

PAIR_MAIN
