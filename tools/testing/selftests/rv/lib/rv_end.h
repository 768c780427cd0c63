/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests with two hosts share: the two ends of a connection, each an actor
 * (rv_actor.h) with an attached file, and the command line.
 */
#ifndef RV_END_H
#define RV_END_H

#include "rv_actor.h"
#include "rv_test.h"

#define MIB (1UL << 20)
#define RING 256

/* The host of the other end, from the command line. */
static const char *peer_host;

/* ---- one end of a connection --------------------------------------------- */

/* A process with an attached file, a mapped ring, a connection and a buffer. */
struct end {
	struct actor actor;
	struct rvc_port port;
	struct rv_attach_params_in attach;
	struct rv_attach_params_out attached;
	struct rvc_conn conn;
	int fd;
};

/* What the two ends have in common, and what a test wants otherwise. */
struct job {
	uint8_t key[RV_MAX_JOB_KEY_LEN];
	uint8_t num_conn;
	uint8_t index_bits;
	uint32_t q_depth;
	uint32_t ring[2];
	uint64_t service_id;
	uint32_t reconnect_timeout;	/* seconds, 0: no recovery */
	uint32_t hb_interval;		/* milliseconds, 0: no heartbeat */
};

static inline void job_init(struct job *job)
{
	memset(job, 0, sizeof(*job));
	rvc_job_key(job->key);
	job->num_conn = 1;
	job->index_bits = 8;
	job->q_depth = 64;
	job->ring[0] = job->ring[1] = RING;
}

static inline void start_end(struct __test_metadata *_metadata, struct end *end, bool remote)
{
	memset(end, 0, sizeof(*end));
	end->actor.sock = -1;
	ASSERT_EQ(0, remote ? actor_start_remote(&end->actor, peer_host)
			    : actor_start(&end->actor));
	ASSERT_EQ(0, actor_port(&end->actor, &end->port));
}

static inline void attach_end(struct __test_metadata *_metadata, struct end *end,
			      const struct job *job, uint32_t ring)
{
	struct rv_attach_params params;

	rvc_attach_init(&params.in, &end->port);
	memcpy(params.in.job_key, job->key, sizeof(job->key));
	params.in.num_conn = job->num_conn;
	params.in.index_bits = job->index_bits;
	params.in.q_depth = job->q_depth;
	params.in.cq_entries = ring;
	params.in.service_id = job->service_id;
	params.in.reconnect_timeout = job->reconnect_timeout;
	params.in.hb_interval = job->hb_interval;
	end->attach = params.in;
	end->fd = actor_open(&end->actor);
	ASSERT_LE(0, end->fd);
	ASSERT_EQ(0, actor_ioctl(&end->actor, end->fd, RV_IOCTL_ATTACH, &params));
	end->attached = params.out;
	ASSERT_EQ(0, actor_ring_map(&end->actor, end->fd, ring));
}

static inline void create_end(struct __test_metadata *_metadata, struct end *end,
			      const struct end *peer)
{
	struct rv_conn_create_params params;

	rvc_create_init(&params.in, &end->port, peer->port.addr);
	ASSERT_EQ(0, actor_ioctl(&end->actor, end->fd, RV_IOCTL_CONN_CREATE, &params));
	end->conn.handle = params.out.handle;
	end->conn.conn_handle = params.out.conn_handle;
}

static inline int connect_end(struct end *end, const struct end *peer)
{
	struct rv_conn_connect_params_in in;

	rvc_connect_init(&in, &end->port, peer->port.addr, end->conn.handle);
	return actor_ioctl(&end->actor, end->fd, RV_IOCTL_CONN_CONNECT, &in);
}

static inline int connected(struct end *end)
{
	return actor_connected(&end->actor, end->fd, end->conn.handle);
}

/* Creates on both sides, connects on both, waits until both are up. */
static inline void connect_ends(struct __test_metadata *_metadata, struct end *a, struct end *b)
{
	create_end(_metadata, a, b);
	create_end(_metadata, b, a);
	ASSERT_EQ(0, connect_end(a, b));
	ASSERT_EQ(0, connect_end(b, a));
	ASSERT_TRUE(RVC_WAIT_FOR(connected(a) != 0 && connected(b) != 0));
	ASSERT_EQ(1, connected(a));
	ASSERT_EQ(1, connected(b));
}

/* A buffer of an end, registered as a whole. */
struct buffer {
	uint64_t addr;
	uint64_t length;
	struct rvc_mr mr;
};

static inline struct buffer alloc_buffer(struct __test_metadata *_metadata, struct end *end,
					 uint64_t length)
{
	struct buffer buffer = { .length = length };

	buffer.addr = actor_alloc(&end->actor, 0, length);
	ASSERT_NE(0, buffer.addr);
	return buffer;
}

static inline struct buffer reg_buffer(struct __test_metadata *_metadata, struct end *end,
				       uint64_t length)
{
	struct buffer buffer = alloc_buffer(_metadata, end, length);

	ASSERT_EQ(0, actor_reg(&end->actor, end->fd, buffer.addr, length, RVC_ACCESS_TARGET,
			       &buffer.mr));
	return buffer;
}

/* The immediate data that leads a write to an end. */
static inline uint32_t immediate(const struct end *to, uint32_t tag)
{
	unsigned int bits = to->attach.index_bits;

	return bits ? to->attached.rv_index << (32 - bits) | tag : tag;
}

/* A write of a whole buffer to the start of another. */
static inline void write_init(struct rv_post_write_params *params, const struct end *from,
			      const struct buffer *source, const struct end *to,
			      const struct buffer *target, uint32_t tag)
{
	rvc_post_init(&params->in, from->conn.handle, &source->mr, target->mr.iova,
		      target->mr.rkey);
	params->in.immed = immediate(to, tag);
	params->in.wr_id = 0x1000 + tag;
}

static inline int post(struct end *end, struct rv_post_write_params *params)
{
	return actor_ioctl(&end->actor, end->fd, RV_IOCTL_POST_RDMA_WR_IMMED, params);
}

/* The next event of an end, which must come. */
static inline struct rv_event next_event(struct __test_metadata *_metadata, struct end *end)
{
	struct rv_event event;

	ASSERT_EQ(1, actor_ring_poll(&end->actor, end->fd, &event, 1, RVC_PATIENCE_MS));
	return event;
}

/* No event is waiting, and none comes with a write to and fro that goes well. */
static inline void expect_no_event(struct __test_metadata *_metadata, struct end *end)
{
	struct rv_event event;

	EXPECT_EQ(0, actor_ring_poll(&end->actor, end->fd, &event, 1, 0));
}

/* One write that must arrive: both events, good. */
static inline void write_once(struct __test_metadata *_metadata, struct end *from,
			      const struct buffer *source, struct end *to,
			      const struct buffer *target)
{
	struct rv_post_write_params params;
	struct rv_event event;

	write_init(&params, from, source, to, target, 1);
	ASSERT_EQ(0, post(from, &params));
	event = next_event(_metadata, from);
	ASSERT_EQ(RV_WC_RDMA_WRITE, event.event_type);
	ASSERT_EQ(0, event.wc.status);
	event = next_event(_metadata, to);
	ASSERT_EQ(RV_WC_RECV_RDMA_WITH_IMM, event.event_type);
	ASSERT_EQ(params.in.immed, event.wc.imm_data);
}

/* No memory of the process of an end is pinned any more. */
static inline bool nothing_pinned(struct end *end)
{
	/* The parent of the shell is the actor. */
	return !actor_shell(&end->actor, "grep -q 'VmPin:[^1-9]*0 kB' /proc/$PPID/status");
}

/* The largest piece that one write of the tests moves; rxe could take 2 MiB. */
#define WINDOW MIB

/*
 * Moves length bytes between buffers at odd places in their pages, each window
 * registered by itself as a library would do it, and looks at all bytes of the
 * target, those around the data too.
 */
static inline void move(struct __test_metadata *_metadata, struct end *from, struct end *to,
			uint64_t length, unsigned int from_offset, unsigned int to_offset)
{
	uint64_t size = (length + 3 * RVC_PAGE) & -RVC_PAGE;
	struct buffer source = alloc_buffer(_metadata, from, size);
	struct buffer target = alloc_buffer(_metadata, to, size);
	struct rv_post_write_params params;
	struct rvc_mr local, remote;
	uint64_t done = 0, part;

	ASSERT_EQ(0, actor_fill(&from->actor, source.addr + from_offset, length, 1, 0));
	ASSERT_EQ(0, actor_fill(&to->actor, target.addr, size, 2, 0));
	do {
		part = length - done < WINDOW ? length - done : WINDOW;
		ASSERT_EQ(0, actor_reg(&from->actor, from->fd, source.addr + from_offset + done,
				       part ? part : 1, RVC_ACCESS_SOURCE, &local));
		ASSERT_EQ(0, actor_reg(&to->actor, to->fd, target.addr + to_offset + done,
				       part ? part : 1, RVC_ACCESS_TARGET, &remote));
		rvc_post_init(&params.in, from->conn.handle, &local, remote.iova, remote.rkey);
		params.in.length = part;
		params.in.immed = immediate(to, 1);
		ASSERT_EQ(0, post(from, &params));
		ASSERT_EQ(0, next_event(_metadata, from).wc.status);
		ASSERT_EQ(part, next_event(_metadata, to).wc.byte_len);
		ASSERT_EQ(0, actor_dereg(&from->actor, from->fd, &local));
		ASSERT_EQ(0, actor_dereg(&to->actor, to->fd, &remote));
		done += part;
	} while (done < length);
	EXPECT_EQ(-1, actor_check(&to->actor, target.addr, to_offset, 2, 0));
	EXPECT_EQ(-1, actor_check(&to->actor, target.addr + to_offset, length, 1, 0));
	EXPECT_EQ(-1, actor_check(&to->actor, target.addr + to_offset + length,
				  size - to_offset - length, 2, to_offset + length));
	ASSERT_EQ(0, actor_munmap(&from->actor, source.addr, size));
	ASSERT_EQ(0, actor_munmap(&to->actor, target.addr, size));
}

/* ---- main ---------------------------------------------------------------- */

/*
 *   rv_pair... HOST [options of the harness]
 *
 * On HOST runs "rv_pair_server".
 */
static inline int pair_main(int argc, char **argv)
{
	if (argc < 2 || argv[1][0] == '-') {
		fprintf(stderr, "usage: %s HOST [options of the harness]\n", argv[0]);
		return 2;
	}
	peer_host = argv[1];
	argv[1] = argv[0];
	rvt_require();
	return test_harness_run(argc - 1, argv + 1);
}

#define PAIR_MAIN                              \
	int main(int argc, char **argv)        \
	{                                      \
		return pair_main(argc, argv);  \
	}

#endif
