// SPDX-License-Identifier: GPL-2.0
/*
 * Many of something, or one at an odd time: connections that end at once, a peer that
 * comes late, users of other namespaces, queues of different depth.
 */
#include <sched.h>
#include <sys/syscall.h>

#include "rv_batch.h"
#include "rv_break.h"

static struct end *client_of(struct end *a, struct end *b)
{
	return a->port.addr > b->port.addr ? a : b;
}

/* ---- a peer that comes late ---------------------------------------------- */

/* The side that connects is refused at first, since nobody knows of it yet. */
TEST(peer_creates_later)
{
	struct rv_conn_get_stats_params_out stats;
	struct end here, there, *client, *server;
	struct buffer source, target;
	struct job job;

	job_init(&job);
	start_end(_metadata, &here, false);
	start_end(_metadata, &there, true);
	client = client_of(&here, &there);
	server = client == &here ? &there : &here;
	attach_end(_metadata, client, &job, RING);
	attach_end(_metadata, server, &job, RING);
	create_end(_metadata, client, server);
	ASSERT_EQ(0, connect_end(client, server));
	ASSERT_TRUE(RVC_WAIT_FOR(!actor_conn_stats(&client->actor, client->fd,
						   client->conn.handle, &stats) &&
				 stats.rej_recv > 1));
	EXPECT_EQ(0, connected(client));
	create_end(_metadata, server, client);
	ASSERT_EQ(0, connect_end(server, client));
	ASSERT_TRUE(RVC_WAIT_FOR(connected(client) != 0 && connected(server) != 0));
	EXPECT_EQ(1, connected(client));
	EXPECT_EQ(1, connected(server));
	EXPECT_EQ(1, conn_count(client));
	source = reg_buffer(_metadata, client, RVC_PAGE);
	target = reg_buffer(_metadata, server, RVC_PAGE);
	write_once(_metadata, client, &source, server, &target);
	actor_stop(&here.actor);
	actor_stop(&there.actor);
}

/* ---- connections that end at once ---------------------------------------- */

/* Attached, created and connected on both sides, and closed, without waiting for anything. */
static void short_connection(struct __test_metadata *_metadata, struct end *a, struct end *b)
{
	struct end *ends[2] = { a, b };
	struct job job;

	job_init(&job);
	for (int i = 0; i < 2; i++) {
		struct rv_attach_params params;

		rvc_attach_init(&params.in, &ends[i]->port);
		memcpy(params.in.job_key, job.key, sizeof(job.key));
		params.in.cq_entries = 0;
		params.in.reconnect_timeout = 30;
		params.in.hb_interval = 10;
		ends[i]->fd = actor_open(&ends[i]->actor);
		ASSERT_LE(0, ends[i]->fd);
		ASSERT_EQ(0, actor_ioctl(&ends[i]->actor, ends[i]->fd, RV_IOCTL_ATTACH, &params));
	}
	create_end(_metadata, a, b);
	create_end(_metadata, b, a);
	ASSERT_EQ(0, connect_end(a, b));
	ASSERT_EQ(0, connect_end(b, a));
	EXPECT_EQ(0, actor_close(&a->actor, a->fd));
	EXPECT_EQ(0, actor_close(&b->actor, b->fd));
}

TEST(hundred_short_connections)
{
	struct end here, there;

	start_end(_metadata, &here, false);
	start_end(_metadata, &there, true);
	for (int round = 0; round < 50; round++) {
		short_connection(_metadata, &here, &there);
		short_connection(_metadata, &there, &here);
	}
	actor_stop(&here.actor);
	actor_stop(&there.actor);
	expect_nothing_left(_metadata);
	expect_new_job_works(_metadata);
}

/* ---- users --------------------------------------------------------------- */

/* The first process of a file of its own, opened before it becomes another user. */
static void attach_as(struct __test_metadata *_metadata, struct end *end, const struct job *job)
{
	struct rv_attach_params params;

	rvc_attach_init(&params.in, &end->port);
	memcpy(params.in.job_key, job->key, sizeof(job->key));
	end->attach = params.in;
	ASSERT_EQ(0, actor_ioctl(&end->actor, end->fd, RV_IOCTL_ATTACH, &params));
	end->attached = params.out;
	ASSERT_EQ(0, actor_ring_map(&end->actor, end->fd, params.in.cq_entries));
}

/*
 * A process that is root of a user namespace is the user that it is outside: it meets
 * that user's processes on the other host, and no process of root.
 */
TEST(user_namespace)
{
	struct end root, inside, peer;
	struct rv_attach_params params;
	struct buffer source, target;
	struct actor helper;
	char command[128];
	struct job job;

	job_init(&job);
	start_end(_metadata, &root, false);
	start_end(_metadata, &inside, false);
	start_end(_metadata, &peer, true);
	inside.fd = actor_open(&inside.actor);
	peer.fd = actor_open(&peer.actor);
	root.fd = actor_open(&root.actor);
	ASSERT_EQ(0, actor_syscall(&inside.actor, SYS_unshare, CLONE_NEWUSER, 0, 0, 0, 0, 0));
	ASSERT_EQ(0, actor_start(&helper));
	snprintf(command, sizeof(command), "echo 0 1000 1 >/proc/%d/uid_map", inside.actor.pid);
	ASSERT_EQ(0, actor_shell(&helper, command));
	actor_stop(&helper);
	ASSERT_EQ(0, actor_syscall(&inside.actor, SYS_setresuid, 0, 0, 0, 0, 0, 0));
	ASSERT_EQ(0, actor_syscall(&peer.actor, SYS_setresuid, 1000, 1000, 1000, 0, 0, 0));
	attach_as(_metadata, &inside, &job);
	attach_as(_metadata, &peer, &job);
	connect_ends(_metadata, &inside, &peer);
	source = reg_buffer(_metadata, &inside, RVC_PAGE);
	target = reg_buffer(_metadata, &peer, RVC_PAGE);
	write_once(_metadata, &inside, &source, &peer, &target);
	/* Root outside is not root inside: the same key leads to another job, whose first it is. */
	rvc_attach_init(&params.in, &root.port);
	memcpy(params.in.job_key, job.key, sizeof(job.key));
	ASSERT_EQ(0, actor_ioctl(&root.actor, root.fd, RV_IOCTL_ATTACH, &params));
	EXPECT_EQ(0, params.out.rv_index);
	actor_stop(&root.actor);
	actor_stop(&inside.actor);
	actor_stop(&peer.actor);
}

/* ---- receives that are missing ------------------------------------------- */

static long rnr_naks(struct actor *actor)
{
	/* In tens, which is what an exit status has room for. */
	return actor_shell(actor, "exit $(($(cat /sys/class/infiniband/${RV_DEV:-rxe0}"
				  "/ports/1/hw_counters/send_rnr_err) / 10))");
}

/*
 * The sender's queue is deeper than the receiver's, so that receives run out. A request
 * that finds none is sent again after the time that the receiver asks for: with the
 * default of 655 ms each of them, so often as it is counted, would take that long.
 */
TEST(missing_receives_cost_little)
{
	struct end from, to;
	struct batch batch;
	struct job deep, shallow;
	uint64_t start, took;
	long before, naks;

	job_init(&deep);
	shallow = deep;
	shallow.q_depth = 1;
	start_end(_metadata, &from, false);
	start_end(_metadata, &to, true);
	attach_end(_metadata, &from, &deep, RING);
	attach_end(_metadata, &to, &shallow, RING);
	connect_ends(_metadata, &from, &to);
	batch_init(_metadata, &batch, &from, &to, 3);
	before = rnr_naks(&to.actor);
	ASSERT_LE(0, before);
	start = rvc_now_ms();
	do {
		for (int i = 0; i < BATCH; i++) {
			struct rv_post_write_params params;

			write_init(&params, &from, &batch.source, &to, &batch.target, i);
			params.in.length = 8;
			ASSERT_EQ(0, post(&from, &params));
		}
		for (int i = 0; i < BATCH; i++) {
			ASSERT_EQ(0, next_event(_metadata, &from).wc.status);
			next_event(_metadata, &to);
		}
		naks = 10 * (rnr_naks(&to.actor) - before);
		took = rvc_now_ms() - start;
	} while (naks < 40 && took < RVC_PATIENCE_MS);
	TH_LOG("about %ld times without a receive, %llu ms", naks, (unsigned long long)took);
	ASSERT_LE(40, naks);
	/* Rounding may have added 10. */
	EXPECT_GT((naks - 10) * 655, took);
	EXPECT_EQ(1, conn_count(&from));
	actor_stop(&from.actor);
	actor_stop(&to.actor);
}

PAIR_MAIN
