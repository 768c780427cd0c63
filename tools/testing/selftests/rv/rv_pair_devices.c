// SPDX-License-Identifier: GPL-2.0
/*
 * Two RDMA devices in each host, rxe0 and rxe1, on wires of their own: jobs of one key
 * on both at once, which have nothing in common. See lib/rv_end.h for the command line.
 */
#include "rv_batch.h"
#include "rv_break.h"

#define DEVICES 2

static const char *const device[DEVICES] = { "rxe0", "rxe1" };

/* A connection on each device, with a batch of writes. */
FIXTURE(devices)
{
	struct job job;
	struct end from[DEVICES];
	struct end to[DEVICES];
	struct batch batch[DEVICES];
};

FIXTURE_VARIANT(devices)
{
	bool from_remote;
};

FIXTURE_VARIANT_ADD(devices, to_peer) { .from_remote = false };
FIXTURE_VARIANT_ADD(devices, from_peer) { .from_remote = true };

static void start_on(struct __test_metadata *_metadata, struct end *end, bool remote, int number,
		     const struct job *job)
{
	start_end(_metadata, end, remote);
	ASSERT_EQ(0, actor_port_of(&end->actor, &end->port, device[number]));
	attach_end(_metadata, end, job, RING);
}

FIXTURE_SETUP(devices)
{
	job_init(&self->job);
	for (int i = 0; i < DEVICES; i++) {
		start_on(_metadata, &self->from[i], variant->from_remote, i, &self->job);
		start_on(_metadata, &self->to[i], !variant->from_remote, i, &self->job);
	}
	for (int i = 0; i < DEVICES; i++) {
		connect_ends(_metadata, &self->from[i], &self->to[i]);
		batch_init(_metadata, &self->batch[i], &self->from[i], &self->to[i], 1 + i);
	}
}

FIXTURE_TEARDOWN(devices)
{
	for (int i = 0; i < DEVICES; i++) {
		actor_stop(&self->from[i].actor);
		actor_stop(&self->to[i].actor);
	}
}

/* The same key on two devices makes two jobs: both members are the first of theirs. */
TEST_F(devices, are_jobs_of_their_own)
{
	EXPECT_NE(self->from[0].port.addr, self->from[1].port.addr);
	EXPECT_EQ(0, self->from[0].attached.rv_index);
	EXPECT_EQ(0, self->from[1].attached.rv_index);
	EXPECT_NE(self->from[0].conn.conn_handle, self->from[1].conn.conn_handle);
}

/* Writes under way on both at the same time: each arrives where it should, and is counted there. */
TEST_F(devices, write_at_once)
{
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < DEVICES; i++)
			post_batch(_metadata, &self->batch[i]);
		for (int i = 0; i < DEVICES; i++) {
			int arrived[BATCH] = { 0 };

			collect_batch(_metadata, &self->batch[i], RVC_PATIENCE_MS);
			EXPECT_EQ(0, bad_pieces(&self->batch[i]));
			ASSERT_TRUE(RVC_WAIT_FOR(conn_stats(_metadata, &self->to[i]).recv_write_cqe ==
						 (unsigned int)(round + 1) * BATCH));
			EXPECT_EQ(BATCH, count_arrivals(_metadata, &self->batch[i], arrived));
			for (int piece = 0; piece < BATCH; piece++)
				EXPECT_EQ(1, arrived[piece]);
		}
	}
	for (int i = 0; i < DEVICES; i++) {
		expect_exact(_metadata, &self->batch[i]);
		EXPECT_EQ(20 * BATCH, conn_stats(_metadata, &self->from[i]).post_write);
	}
}

/* One device goes, with writes under way on both: the users of the other notice nothing. */
TEST_F(devices, one_is_removed)
{
	struct actor_stream_result result;
	struct end *gone = &self->from[1];
	struct hosts hosts;

	start_hosts(_metadata, &hosts);
	stream_batch(_metadata, &self->batch[1]);
	post_batch(_metadata, &self->batch[0]);
	EXPECT_EQ(0, on_host(&hosts, variant->from_remote, "rdma link del rxe1"));
	ASSERT_EQ(0, actor_stream_end(&gone->actor, &result));
	EXPECT_TRUE(result.bad || result.error == ENXIO || result.error == EIO);
	EXPECT_EQ(-ENXIO, post_piece(&self->batch[1], 0));

	collect_batch(_metadata, &self->batch[0], RVC_PATIENCE_MS);
	EXPECT_EQ(0, bad_pieces(&self->batch[0]));
	for (int n = 0; n < 10; n++) {
		post_batch(_metadata, &self->batch[0]);
		collect_batch(_metadata, &self->batch[0], RVC_PATIENCE_MS);
		EXPECT_EQ(0, bad_pieces(&self->batch[0]));
	}
	expect_exact(_metadata, &self->batch[0]);
	EXPECT_EQ(1, conn_count(&self->from[0]));

	EXPECT_EQ(0, on_host(&hosts, variant->from_remote,
			     "rdma link add rxe1 type rxe netdev eth1"));
	stop_hosts(&hosts);
}

/* After that it is there again for new jobs. */
TEST_F(devices, serve_after_a_removal)
{
	for (int i = 0; i < DEVICES; i++) {
		post_batch(_metadata, &self->batch[i]);
		collect_batch(_metadata, &self->batch[i], RVC_PATIENCE_MS);
		EXPECT_EQ(0, bad_pieces(&self->batch[i]));
		expect_exact(_metadata, &self->batch[i]);
	}
}

PAIR_MAIN
