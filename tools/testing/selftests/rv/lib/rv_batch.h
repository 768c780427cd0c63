/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A batch of writes whose fate is followed one by one: each must end with exactly one
 * event, and what ended badly is written again, as a library would do it.
 */
#ifndef RV_BATCH_H
#define RV_BATCH_H

#include "rv_end.h"

#define BATCH 16
#define PIECE (MIB / BATCH)

/* Piece i goes from its place in the source to the same place in the target. */
struct batch {
	struct end *from;
	struct end *to;
	struct buffer source;
	struct buffer target;
	uint64_t seed;
	/* Of each piece: the status it ended with last, or one of these. */
	int status[BATCH];
};

#define NOT_POSTED -1
#define UNDER_WAY -2

static inline void batch_init(struct __test_metadata *_metadata, struct batch *batch,
			      struct end *from, struct end *to, uint64_t seed)
{
	batch->from = from;
	batch->to = to;
	batch->seed = seed;
	batch->source = reg_buffer(_metadata, from, BATCH * PIECE);
	batch->target = reg_buffer(_metadata, to, BATCH * PIECE);
	ASSERT_EQ(0, actor_fill(&from->actor, batch->source.addr, BATCH * PIECE, seed, 0));
	for (int i = 0; i < BATCH; i++)
		batch->status[i] = NOT_POSTED;
}

static inline int post_piece(struct batch *batch, int i)
{
	struct rv_post_write_params params;
	int ret;

	write_init(&params, batch->from, &batch->source, batch->to, &batch->target, i);
	params.in.loc_addr += i * PIECE;
	params.in.rem_addr += i * PIECE;
	params.in.length = PIECE;
	ret = post(batch->from, &params);
	if (!ret)
		batch->status[i] = UNDER_WAY;
	return ret;
}

static inline void post_batch(struct __test_metadata *_metadata, struct batch *batch)
{
	for (int i = 0; i < BATCH; i++)
		ASSERT_EQ(0, post_piece(batch, i));
}

/* Begins a stream of writes of the whole batch; returns when the first one has arrived. */
static inline void stream_batch(struct __test_metadata *_metadata, struct batch *batch)
{
	struct actor_stream stream = { .count = ~0ULL, .window = 16, .fd = batch->from->fd };
	struct rv_post_write_params params;
	struct rv_event event;

	write_init(&params, batch->from, &batch->source, batch->to, &batch->target, 0);
	stream.post = params.in;
	ASSERT_EQ(0, actor_stream_begin(&batch->from->actor, &stream));
	ASSERT_EQ(1, actor_ring_poll(&batch->to->actor, batch->to->fd, &event, 1,
				     RVC_PATIENCE_MS));
}

static inline int pieces_under_way(const struct batch *batch)
{
	int n = 0;

	for (int i = 0; i < BATCH; i++)
		n += batch->status[i] == UNDER_WAY;
	return n;
}

/* Takes an event of the sender, which must be of a piece that is under way. */
static inline void note_event(struct __test_metadata *_metadata, struct batch *batch,
			      const struct rv_event *event)
{
	uint64_t i = event->wc.wr_id - 0x1000;

	ASSERT_EQ(RV_WC_RDMA_WRITE, event->event_type);
	ASSERT_GT(BATCH, i)
		TH_LOG("an event of nobody: wr_id %llx",
		       (unsigned long long)event->wc.wr_id);
	ASSERT_EQ(UNDER_WAY, batch->status[i])
		TH_LOG("piece %d has ended twice", (int)i);
	EXPECT_EQ(PIECE, event->wc.byte_len);
	batch->status[i] = event->wc.status;
}

/* Waits until nothing is under way, for so long; then all events must have come. */
static inline void collect_batch(struct __test_metadata *_metadata, struct batch *batch,
				 uint64_t patience_ms)
{
	struct rv_event events[BATCH];
	int n = pieces_under_way(batch);

	ASSERT_EQ(n, actor_ring_poll(&batch->from->actor, batch->from->fd, events, n,
				     patience_ms));
	for (int i = 0; i < n; i++)
		note_event(_metadata, batch, &events[i]);
}

static inline int bad_pieces(const struct batch *batch)
{
	int n = 0;

	for (int i = 0; i < BATCH; i++)
		n += batch->status[i] > 0;
	return n;
}

/*
 * Writes again what has ended badly or was refused, until all has arrived. The
 * connection may be on its way up, and single ones of it down again.
 */
static inline void resend_bad(struct __test_metadata *_metadata, struct batch *batch)
{
	bool all_good;

	ASSERT_TRUE(RVC_WAIT_FOR(({
		all_good = true;
		for (int i = 0; i < BATCH; i++) {
			int ret = batch->status[i] ? post_piece(batch, i) : 0;

			ASSERT_TRUE(!ret || ret == -EAGAIN || ret == -ENOMEM)
				TH_LOG("piece %d cannot be sent again: %d", i, ret);
			all_good &= !batch->status[i];
		}
		collect_batch(_metadata, batch, RVC_PATIENCE_MS);
		all_good || !bad_pieces(batch);
	})));
	for (int i = 0; i < BATCH; i++)
		ASSERT_EQ(0, batch->status[i]);
}

static inline void expect_exact(struct __test_metadata *_metadata, struct batch *batch)
{
	EXPECT_EQ(-1, actor_check(&batch->to->actor, batch->target.addr, BATCH * PIECE,
				  batch->seed, 0));
}

/* Takes the receiver's events that are there; counts them by piece. */
static inline int count_arrivals(struct __test_metadata *_metadata, struct batch *batch,
				 int arrived[BATCH])
{
	struct rv_event events[4 * BATCH];
	int n = actor_ring_poll(&batch->to->actor, batch->to->fd, events, 4 * BATCH, 0);

	ASSERT_LE(0, n);
	for (int i = 0; i < n; i++) {
		uint32_t tag = events[i].wc.imm_data - immediate(batch->to, 0);

		ASSERT_EQ(RV_WC_RECV_RDMA_WITH_IMM, events[i].event_type);
		ASSERT_GT(BATCH, tag);
		arrived[tag]++;
	}
	return n;
}

#endif
