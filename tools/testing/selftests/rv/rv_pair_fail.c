// SPDX-License-Identifier: GPL-2.0
/*
 * Failures that a connection survives, or must not: a cut wire, an interface that goes
 * down, bad keys, dead and stopped processes, a device that is removed. Each ends with
 * recovery or with a clear error, never with a hang or wrong data.
 *
 * See lib/rv_end.h for the command line; the interface must be prepared as
 * two-vm/lib.sh does it.
 */
#include <signal.h>

#include "rv_batch.h"
#include "rv_break.h"

#define HEARTBEAT_MS 500

/* Longer than everything that is waited for, and short enough to be waited for. */
#define LONG_TIMEOUT 200
#define SHORT_TIMEOUT 3

/* Two ends with a connection and a batch of writes; the means to break it. */
struct scene {
	struct hosts hosts;
	struct job job;
	struct end from;
	struct end to;
	struct batch batch;
	bool from_remote;
};

static void start_scene(struct __test_metadata *_metadata, struct scene *scene, bool from_remote)
{
	scene->from_remote = from_remote;
	start_hosts(_metadata, &scene->hosts);
	start_end(_metadata, &scene->from, from_remote);
	start_end(_metadata, &scene->to, !from_remote);
	attach_end(_metadata, &scene->from, &scene->job, RING);
	attach_end(_metadata, &scene->to, &scene->job, RING);
	connect_ends(_metadata, &scene->from, &scene->to);
	batch_init(_metadata, &scene->batch, &scene->from, &scene->to, 7);
}

static void stop_scene(struct scene *scene)
{
	actor_stop(&scene->from.actor);
	actor_stop(&scene->to.actor);
	stop_hosts(&scene->hosts);
}

/* The end that connects: that with the higher address. */
static struct end *client_of(struct scene *scene)
{
	return scene->from.port.addr > scene->to.port.addr ? &scene->from : &scene->to;
}

static bool is_remote(struct scene *scene, const struct end *end)
{
	return (end == &scene->from) == scene->from_remote;
}

static bool failed_writes_are(struct end *end, uint64_t count)
{
	struct rv_conn_get_stats_params_out stats;

	return !actor_conn_stats(&end->actor, end->fd, end->conn.handle, &stats) &&
	       stats.send_write_cqe_fail >= count;
}

/* Both sides are up again, for the n-th time. */
static void wait_until_up(struct __test_metadata *_metadata, struct scene *scene, int n)
{
	EXPECT_TRUE(RVC_WAIT_FOR(conn_count(&scene->from) == n));
	EXPECT_TRUE(RVC_WAIT_FOR(conn_count(&scene->to) == n));
	ASSERT_EQ(n, conn_count(&scene->from));
	ASSERT_EQ(n, conn_count(&scene->to));
}

/* All writes have ended, once each, and at least one of them badly. */
static void end_broken_stream(struct __test_metadata *_metadata, struct scene *scene)
{
	struct actor_stream_result result;

	ASSERT_EQ(0, actor_stream_end(&scene->from.actor, &result));
	EXPECT_EQ(result.posted, result.good + result.bad);
	EXPECT_TRUE(result.bad || result.error == EIO);
}

/* Takes what is in the receiver's ring away. */
static void empty_ring(struct end *end)
{
	struct rv_event events[RING];

	actor_ring_poll(&end->actor, end->fd, events, RING, 0);
}

/* ---- with recovery ------------------------------------------------------- */

/* The reconnect timeout is longer than the trouble. */
FIXTURE(patient)
{
	struct scene scene;
};

FIXTURE_VARIANT(patient)
{
	bool from_remote;
};

FIXTURE_VARIANT_ADD(patient, to_peer) { .from_remote = false };
FIXTURE_VARIANT_ADD(patient, from_peer) { .from_remote = true };

FIXTURE_SETUP(patient)
{
	job_init(&self->scene.job);
	self->scene.job.reconnect_timeout = LONG_TIMEOUT;
	self->scene.job.hb_interval = HEARTBEAT_MS;
	start_scene(_metadata, &self->scene, variant->from_remote);
}

FIXTURE_TEARDOWN(patient)
{
	stop_scene(&self->scene);
}

#define PROBE_ID 0x2000

/*
 * Posts until the connection is known to be down; gives how many were still accepted,
 * each of which will be answered like any other.
 */
static int probe_until_down(struct __test_metadata *_metadata, struct scene *scene)
{
	struct rv_post_write_params params;
	int accepted = 0, ret;

	ASSERT_TRUE(RVC_WAIT_FOR(({
		write_init(&params, &scene->from, &scene->batch.source, &scene->to,
			   &scene->batch.target, 0);
		params.in.wr_id = PROBE_ID;
		ret = post(&scene->from, &params);
		accepted += !ret;
		ret == -EAGAIN;
	})))
		TH_LOG("POST says %d", ret);
	return accepted;
}

/* All events of the batch and of the probes are in the ring already, all of them bad. */
static void expect_all_failed(struct __test_metadata *_metadata, struct scene *scene, int probes)
{
	struct rv_event events[RING];
	int n = actor_ring_poll(&scene->from.actor, scene->from.fd, events, RING - 1, 0);

	ASSERT_EQ(BATCH + probes, n);
	for (int i = 0; i < n; i++) {
		EXPECT_NE(0, events[i].wc.status);
		if (events[i].wc.wr_id != PROBE_ID)
			note_event(_metadata, &scene->batch, &events[i]);
	}
	EXPECT_EQ(BATCH, bad_pieces(&scene->batch));
}

/*
 * The barrier: when the count has risen, the events of all earlier writes are in the
 * ring of the sender, and those of all that arrived in the ring of the receiver. Until
 * then a POST is to be tried again, and the connection counts as one that is up.
 */
static int survive_cut(struct __test_metadata *_metadata, struct scene *scene, bool at_sender)
{
	struct batch *batch = &scene->batch;
	bool remote = at_sender == scene->from_remote;
	int before[BATCH] = { 0 }, after[BATCH] = { 0 };
	int early, probes;

	cut_wire(_metadata, &scene->hosts, remote);
	post_batch(_metadata, batch);
	ASSERT_TRUE(RVC_WAIT_FOR(failed_writes_are(&scene->from, BATCH)));
	probes = probe_until_down(_metadata, scene);
	EXPECT_EQ(1, connected(&scene->from));
	EXPECT_EQ(1, conn_count(&scene->from));
	mend_wire(_metadata, &scene->hosts, remote);

	ASSERT_TRUE(RVC_WAIT_FOR(conn_count(&scene->from) == 2));
	expect_all_failed(_metadata, scene, probes);
	ASSERT_TRUE(RVC_WAIT_FOR(conn_count(&scene->to) == 2));
	/* Nothing came through; or some did, and only the acknowledgements did not. */
	early = count_arrivals(_metadata, batch, before);
	EXPECT_EQ(at_sender, early > 0);

	resend_bad(_metadata, batch);
	expect_exact(_metadata, batch);
	ASSERT_TRUE(RVC_WAIT_FOR(conn_stats(_metadata, &scene->to).recv_write_cqe ==
				 (unsigned int)early + BATCH));
	EXPECT_EQ(BATCH, count_arrivals(_metadata, batch, after));
	for (int i = 0; i < BATCH; i++) {
		EXPECT_GE(1, before[i]);
		EXPECT_EQ(1, after[i]);
	}
	return probes;
}

TEST_F(patient, cut_wire_at_the_receiver)
{
	struct rv_conn_get_stats_params_out stats;
	unsigned int probes = survive_cut(_metadata, &self->scene, false);

	stats = conn_stats(_metadata, &self->scene.from);
	EXPECT_EQ(1, stats.conn_recovery);
	EXPECT_EQ(0, stats.outstand_send_write);
	EXPECT_EQ(BATCH, stats.send_write_cqe);
	EXPECT_EQ(BATCH + probes, stats.send_write_cqe_fail);
	EXPECT_EQ(2 * BATCH + probes, stats.post_write);
}

TEST_F(patient, cut_wire_at_the_sender)
{
	survive_cut(_metadata, &self->scene, true);
}

/* Not once, but again and again. */
TEST_F(patient, cut_wire_three_times)
{
	struct scene *scene = &self->scene;

	for (int round = 0; round < 3; round++) {
		cut_wire(_metadata, &scene->hosts, !scene->from_remote);
		post_batch(_metadata, &scene->batch);
		collect_batch(_metadata, &scene->batch, RVC_PATIENCE_MS);
		EXPECT_EQ(BATCH, bad_pieces(&scene->batch));
		mend_wire(_metadata, &scene->hosts, !scene->from_remote);
		wait_until_up(_metadata, scene, round + 2);
		resend_bad(_metadata, &scene->batch);
	}
	expect_exact(_metadata, &scene->batch);
}

/* A write that the peer refuses breaks the connection, which comes back. */
static void survive_bad_key(struct __test_metadata *_metadata, struct scene *scene, uint64_t length)
{
	struct rv_post_write_params params;
	struct rv_event event;

	for (int round = 0; round < 3; round++) {
		write_init(&params, &scene->from, &scene->batch.source, &scene->to,
			   &scene->batch.target, 0);
		params.in.rkey ^= 0xff00;
		params.in.length = length;
		ASSERT_EQ(0, post(&scene->from, &params));
		event = next_event(_metadata, &scene->from);
		EXPECT_NE(0, event.wc.status);
		wait_until_up(_metadata, scene, round + 2);
	}
	expect_no_event(_metadata, &scene->from);
	expect_no_event(_metadata, &scene->to);
	post_batch(_metadata, &scene->batch);
	collect_batch(_metadata, &scene->batch, RVC_PATIENCE_MS);
	EXPECT_EQ(0, bad_pieces(&scene->batch));
	expect_exact(_metadata, &scene->batch);
}

TEST_F(patient, bad_key_in_one_packet)
{
	survive_bad_key(_metadata, &self->scene, 64);
}

TEST_F(patient, bad_key_in_many_packets)
{
	survive_bad_key(_metadata, &self->scene, MIB);
}

/*
 * The interface of the sender goes down with writes under way, and comes back: nobody
 * is told of that by an event of the queue pair.
 */
static void down_and_up(struct __test_metadata *_metadata, struct scene *scene, bool remote,
			unsigned int seconds)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "ip link set " NETDEV " down && sleep %u; ip link set " NETDEV " up", seconds);
	ASSERT_EQ(0, on_host(&scene->hosts, remote, command));
}

/* The peer's process ends: that is no trouble to recover from, but the end, at once. */
TEST_F(patient, peer_closes)
{
	struct scene *scene = &self->scene;
	uint64_t start = rvc_now_ms();

	actor_stop(&scene->to.actor);
	EXPECT_TRUE(RVC_WAIT_FOR(connected(&scene->from) == -EIO));
	EXPECT_GT(LONG_TIMEOUT * 1000 / 2, rvc_now_ms() - start);
	EXPECT_EQ(-EIO, post_piece(&scene->batch, 0));
	EXPECT_EQ(-EIO, conn_count(&scene->from));
}

/*
 * The peer's process ends while the wire is cut, so that nobody can tell. The side
 * that connects is told when the wire is back; the one that listens hears nothing for
 * as long as it was told to wait.
 */
TEST_F(patient, peer_ends_behind_a_cut_wire)
{
	struct scene *scene = &self->scene;

	if (client_of(scene) != &scene->from)
		SKIP(return, "the side that listens waits for its timeout");
	cut_wire(_metadata, &scene->hosts, false);
	cut_wire(_metadata, &scene->hosts, true);
	post_batch(_metadata, &scene->batch);
	actor_stop(&scene->to.actor);
	collect_batch(_metadata, &scene->batch, RVC_PATIENCE_MS);
	EXPECT_EQ(BATCH, bad_pieces(&scene->batch));
	mend_wire(_metadata, &scene->hosts, false);
	mend_wire(_metadata, &scene->hosts, true);
	EXPECT_TRUE(RVC_WAIT_FOR(connected(&scene->from) == -EIO));
}

/* An idle connection over a dead wire: the heartbeat notices, and recovery follows. */
TEST_F(patient, heartbeat_notices_a_dead_idle_link)
{
	struct scene *scene = &self->scene;
	struct end *client = client_of(scene);
	bool server_remote = !is_remote(scene, client);

	cut_wire(_metadata, &scene->hosts, server_remote);
	EXPECT_TRUE(RVC_WAIT_FOR(conn_stats(_metadata, client).send_hb_cqe_fail > 0));
	mend_wire(_metadata, &scene->hosts, server_remote);
	wait_until_up(_metadata, scene, 2);
	expect_no_event(_metadata, &scene->from);
	expect_no_event(_metadata, &scene->to);
	write_once(_metadata, &scene->from, &scene->batch.source, &scene->to, &scene->batch.target);
}

/* It beats while nothing else moves, from one side, and nobody's ring sees it. */
TEST_F(patient, heartbeat_beats_while_idle)
{
	struct scene *scene = &self->scene;
	struct end *client = client_of(scene);
	struct end *server = client == &scene->from ? &scene->to : &scene->from;
	struct rv_conn_get_stats_params_out stats;

	EXPECT_TRUE(RVC_WAIT_FOR(conn_stats(_metadata, server).recv_hb_cqe >= 3));
	stats = conn_stats(_metadata, client);
	EXPECT_LE(3, stats.post_hb);
	EXPECT_LE(2, stats.send_hb_cqe);
	EXPECT_EQ(0, stats.post_hb_fail + stats.send_hb_cqe_fail);
	EXPECT_EQ(0, stats.post_write + stats.send_write_cqe);
	stats = conn_stats(_metadata, server);
	EXPECT_EQ(0, stats.post_hb + stats.recv_write_cqe);
	expect_no_event(_metadata, &scene->from);
	expect_no_event(_metadata, &scene->to);
	EXPECT_EQ(1, conn_count(&scene->from));
	/* Heartbeats use receives up, which must come back: more beats and writes than those. */
	for (int i = 0; i < 100; i++)
		write_once(_metadata, &scene->from, &scene->batch.source, &scene->to,
			   &scene->batch.target);
}

/*
 * A stopped process does not stop its connection: the kernel takes what comes, and
 * what the ring cannot hold is counted.
 */
TEST_F(patient, receiver_is_stopped)
{
	struct scene *scene = &self->scene;
	struct actor_ring words;
	char command[64];
	int total = RING + 2 * BATCH;

	snprintf(command, sizeof(command), "kill -STOP %d", scene->to.actor.pid);
	ASSERT_EQ(0, on_host(&scene->hosts, !scene->from_remote, command));
	for (int i = 0; i < total; i++) {
		int piece = i % BATCH;
		struct rv_event event;

		ASSERT_EQ(0, post_piece(&scene->batch, piece));
		event = next_event(_metadata, &scene->from);
		note_event(_metadata, &scene->batch, &event);
		ASSERT_EQ(0, event.wc.status);
	}
	snprintf(command, sizeof(command), "kill -CONT %d", scene->to.actor.pid);
	ASSERT_EQ(0, on_host(&scene->hosts, !scene->from_remote, command));
	EXPECT_TRUE(RVC_WAIT_FOR(!actor_ring_get(&scene->to.actor, scene->to.fd, &words) &&
				 words.tail + words.overflow_cnt == (unsigned int)total));
	EXPECT_EQ(RING - 1, words.tail);
	EXPECT_EQ(1, conn_count(&scene->from));
	EXPECT_EQ(1, conn_count(&scene->to));
	expect_exact(_metadata, &scene->batch);
}

/* Nor does the sender: its writes go out, and their events wait for it. */
TEST_F(patient, sender_is_stopped)
{
	struct scene *scene = &self->scene;
	char command[64];

	post_batch(_metadata, &scene->batch);
	snprintf(command, sizeof(command), "kill -STOP %d", scene->from.actor.pid);
	ASSERT_EQ(0, on_host(&scene->hosts, scene->from_remote, command));
	EXPECT_TRUE(RVC_WAIT_FOR(conn_stats(_metadata, &scene->to).recv_write_cqe == BATCH));
	snprintf(command, sizeof(command), "kill -CONT %d", scene->from.actor.pid);
	ASSERT_EQ(0, on_host(&scene->hosts, scene->from_remote, command));
	collect_batch(_metadata, &scene->batch, RVC_PATIENCE_MS);
	EXPECT_EQ(0, bad_pieces(&scene->batch));
	EXPECT_EQ(1, conn_count(&scene->from));
}

/* ---- without recovery, or not in time ------------------------------------ */

/* The trouble is longer than the reconnect timeout. */
FIXTURE(hasty)
{
	struct scene scene;
};

FIXTURE_VARIANT(hasty)
{
	bool from_remote;
};

FIXTURE_VARIANT_ADD(hasty, to_peer) { .from_remote = false };
FIXTURE_VARIANT_ADD(hasty, from_peer) { .from_remote = true };

FIXTURE_SETUP(hasty)
{
	job_init(&self->scene.job);
	self->scene.job.reconnect_timeout = SHORT_TIMEOUT;
	self->scene.job.hb_interval = HEARTBEAT_MS;
	start_scene(_metadata, &self->scene, variant->from_remote);
}

FIXTURE_TEARDOWN(hasty)
{
	stop_scene(&self->scene);
}

/* The receiver notices the end when it has something to say, if not before. */
static void expect_end_of_receiver(struct __test_metadata *_metadata, struct scene *scene)
{
	struct rv_post_write_params params;
	struct rv_event event;

	write_init(&params, &scene->to, &scene->batch.target, &scene->from, &scene->batch.source,
		   0);
	if (!post(&scene->to, &params)) {
		/* What has arrived before may be in the ring as well. */
		do {
			event = next_event(_metadata, &scene->to);
		} while (event.event_type != RV_WC_RDMA_WRITE);
		EXPECT_NE(0, event.wc.status);
	}
	EXPECT_TRUE(RVC_WAIT_FOR(connected(&scene->to) == -EIO));
	EXPECT_EQ(-EIO, conn_count(&scene->to));
}

static void resend_all(struct __test_metadata *_metadata, struct scene *scene)
{
	post_batch(_metadata, &scene->batch);
	collect_batch(_metadata, &scene->batch, RVC_PATIENCE_MS);
	resend_bad(_metadata, &scene->batch);
	expect_exact(_metadata, &scene->batch);
}

/* Both ends come to know that it is over; and another connection can be made. */
static void expect_the_end(struct __test_metadata *_metadata, struct scene *scene)
{
	struct end from = scene->from, to = scene->to;

	EXPECT_TRUE(RVC_WAIT_FOR(connected(&scene->from) == -EIO));
	EXPECT_EQ(-EIO, conn_count(&scene->from));
	EXPECT_EQ(-EIO, post_piece(&scene->batch, 0));
	expect_end_of_receiver(_metadata, scene);

	connect_ends(_metadata, &from, &to);
	EXPECT_NE(scene->from.conn.conn_handle, from.conn.conn_handle);
	EXPECT_EQ(1, conn_count(&from));
	scene->batch.from = &from;
	scene->batch.to = &to;
	empty_ring(&to);
	empty_ring(&from);
	post_batch(_metadata, &scene->batch);
	collect_batch(_metadata, &scene->batch, RVC_PATIENCE_MS);
	EXPECT_EQ(0, bad_pieces(&scene->batch));
	expect_exact(_metadata, &scene->batch);
}

TEST_F(hasty, cut_wire)
{
	struct scene *scene = &self->scene;

	cut_wire(_metadata, &scene->hosts, !scene->from_remote);
	post_batch(_metadata, &scene->batch);
	collect_batch(_metadata, &scene->batch, RVC_PATIENCE_MS);
	EXPECT_EQ(BATCH, bad_pieces(&scene->batch));
	EXPECT_TRUE(RVC_WAIT_FOR(connected(&scene->from) == -EIO));
	mend_wire(_metadata, &scene->hosts, !scene->from_remote);
	expect_the_end(_metadata, scene);
}

/* Longer than the CM waits before it sends a REQ that was not answered again. */
#define REQ_AGAIN_SECONDS 5

/*
 * A client whose recovery has ended behind a cut wire asks for nothing more when the wire
 * is whole again: a late REQ would break what others make of the time.
 */
TEST_F(hasty, end_is_quiet)
{
	struct scene *scene = &self->scene;
	bool from_connects = scene->from.port.addr > scene->to.port.addr;
	struct end *client = from_connects ? &scene->from : &scene->to;
	struct end *server = from_connects ? &scene->to : &scene->from;
	bool server_is_remote = scene->from_remote != from_connects;

	cut_wire(_metadata, &scene->hosts, server_is_remote);
	EXPECT_TRUE(RVC_WAIT_FOR(connected(client) == -EIO));
	mend_wire(_metadata, &scene->hosts, server_is_remote);
	sleep(REQ_AGAIN_SECONDS);
	EXPECT_EQ(1, conn_stats(_metadata, server).req_recv);
	EXPECT_EQ(1, connected(server));
	EXPECT_EQ(1, conn_count(server));
}

/*
 * On rdma_rxe any send while the interface is down breaks its queue pair, also the one of
 * the connection manager, for good: then nothing but a new device brings it back.
 */
static void replace_device(struct __test_metadata *_metadata, struct hosts *hosts, bool remote)
{
	struct rvc_port port;

	EXPECT_EQ(0, on_host(hosts, remote, LINK_DEL));
	EXPECT_EQ(0, on_host(hosts, remote, LINK_ADD));
	EXPECT_EQ(0, actor_port(&hosts->on[remote], &port));
}

/*
 * The interface of the sender goes down with writes under way and comes back. Every
 * write is answered; then both sides are up again, or both know that it is over.
 */
static void interface_down(struct __test_metadata *_metadata, struct scene *scene,
			   unsigned int seconds)
{
	int from, to;

	stream_batch(_metadata, &scene->batch);
	down_and_up(_metadata, scene, scene->from_remote, seconds);
	end_broken_stream(_metadata, scene);
	EXPECT_TRUE(RVC_WAIT_FOR((from = conn_count(&scene->from)) != 1));
	ASSERT_TRUE(from > 1 || from == -EIO);
	if (from > 1) {
		EXPECT_TRUE(RVC_WAIT_FOR((to = conn_count(&scene->to)) == from));
		empty_ring(&scene->to);
		resend_all(_metadata, scene);
	} else {
		TH_LOG("not recovered");
		EXPECT_EQ(-EIO, connected(&scene->from));
		EXPECT_EQ(-EIO, post_piece(&scene->batch, 0));
		expect_end_of_receiver(_metadata, scene);
	}
	replace_device(_metadata, &scene->hosts, scene->from_remote);
	expect_new_job_works(_metadata);
}

TEST_F(hasty, interface_of_the_sender_goes_down_and_up)
{
	interface_down(_metadata, &self->scene, 2);
}

TEST_F(hasty, interface_of_the_sender_stays_down)
{
	interface_down(_metadata, &self->scene, SHORT_TIMEOUT + 5);
}

/* Removed in time, with writes under way; its users are told, and so is the peer. */
static void remove_device(struct __test_metadata *_metadata, struct scene *scene, bool of_sender,
			  bool cut, uint64_t bound_ms)
{
	struct hosts *hosts = &scene->hosts;
	bool remote = of_sender == scene->from_remote;
	struct end *gone = of_sender ? &scene->from : &scene->to;
	struct rv_conn_connect_params_in connect;
	struct actor_stream_result result;
	struct rvc_port port;
	uint64_t start, took;

	stream_batch(_metadata, &scene->batch);
	if (cut)
		cut_wire(_metadata, hosts, !scene->from_remote);
	start = rvc_now_ms();
	EXPECT_EQ(0, on_host(hosts, remote, LINK_DEL));
	took = rvc_now_ms() - start;
	TH_LOG("removed in %llu ms", (unsigned long long)took);
	EXPECT_GE(rvc_bound_ms(bound_ms), took);
	ASSERT_EQ(0, actor_stream_end(&scene->from.actor, &result));
	EXPECT_TRUE(result.bad || result.error == ENXIO || result.error == EIO);
	if (of_sender) {
		EXPECT_EQ(-ENXIO, post_piece(&scene->batch, 0));
	} else {
		EXPECT_EQ(result.posted, result.good + result.bad);
	}
	rvc_connect_init(&connect, &gone->port, 1, gone->conn.handle);
	EXPECT_EQ(-ENXIO, actor_ioctl(&gone->actor, gone->fd, RV_IOCTL_CONN_CONNECT, &connect));
	EXPECT_EQ(-EINVAL, connected(gone));
	if (!of_sender) {
		EXPECT_TRUE(RVC_WAIT_FOR(connected(&scene->from) == -EIO));
	}

	if (cut)
		mend_wire(_metadata, hosts, !scene->from_remote);
	EXPECT_EQ(0, on_host(hosts, remote, LINK_ADD));
	EXPECT_EQ(0, actor_port(&hosts->on[remote], &port));
	expect_new_job_works(_metadata);
}

TEST_F(hasty, device_of_the_sender_is_removed)
{
	remove_device(_metadata, &self->scene, true, false, 10000);
}

TEST_F(hasty, device_of_the_sender_is_removed_behind_a_cut_wire)
{
	remove_device(_metadata, &self->scene, true, true, 10000);
}

TEST_F(hasty, device_of_the_receiver_is_removed)
{
	remove_device(_metadata, &self->scene, false, false, 5000);
}

/* ---- the sender is killed while the wire is cut -------------------------- */

FIXTURE(killed)
{
	struct scene scene;
};

FIXTURE_VARIANT(killed)
{
	bool from_remote;
	uint8_t num_conn;
	uint32_t reconnect_timeout;
};

FIXTURE_VARIANT_ADD(killed, to_peer)
{
	.num_conn = 1,
};
FIXTURE_VARIANT_ADD(killed, from_peer)
{
	.from_remote = true, .num_conn = 1,
};
FIXTURE_VARIANT_ADD(killed, with_recovery)
{
	.num_conn = 1, .reconnect_timeout = LONG_TIMEOUT,
};
FIXTURE_VARIANT_ADD(killed, sixteen_queue_pairs)
{
	.num_conn = 16, .reconnect_timeout = LONG_TIMEOUT,
};

FIXTURE_SETUP(killed)
{
	job_init(&self->scene.job);
	self->scene.job.num_conn = variant->num_conn;
	self->scene.job.reconnect_timeout = variant->reconnect_timeout;
	start_scene(_metadata, &self->scene, variant->from_remote);
}

FIXTURE_TEARDOWN(killed)
{
	stop_scene(&self->scene);
}

/* Its process is gone in time, and soon all that the kernel had for it. */
TEST_F(killed, behind_a_cut_wire)
{
	struct scene *scene = &self->scene;
	struct actor *host = &scene->hosts.on[scene->from_remote];
	uint64_t start, took;

	stream_batch(_metadata, &scene->batch);
	cut_wire(_metadata, &scene->hosts, !scene->from_remote);
	start = rvc_now_ms();
	ASSERT_EQ(0, actor_kill(&scene->from.actor));
	took = rvc_now_ms() - start;
	TH_LOG("gone in %llu ms", (unsigned long long)took);
	EXPECT_GE(rvc_bound_ms(5000), took);
	EXPECT_TRUE(RVC_WAIT_MS(rvc_bound_ms(10000), nothing_left_on(host)));
	EXPECT_GE(rvc_bound_ms(10000), rvc_now_ms() - start);
	mend_wire(_metadata, &scene->hosts, !scene->from_remote);
	expect_new_job_works(_metadata);
}

/* The same for a process that closes in peace. */
TEST_F(killed, not_but_closes_behind_a_cut_wire)
{
	struct scene *scene = &self->scene;
	uint64_t start, took;

	cut_wire(_metadata, &scene->hosts, !scene->from_remote);
	post_batch(_metadata, &scene->batch);
	EXPECT_EQ(0, actor_ring_unmap(&scene->from.actor, scene->from.fd));
	start = rvc_now_ms();
	EXPECT_EQ(0, actor_close(&scene->from.actor, scene->from.fd));
	took = rvc_now_ms() - start;
	TH_LOG("closed in %llu ms", (unsigned long long)took);
	EXPECT_GE(rvc_bound_ms(5000), took);
	EXPECT_TRUE(RVC_WAIT_MS(rvc_bound_ms(10000), nothing_pinned(&scene->from)));
	mend_wire(_metadata, &scene->hosts, !scene->from_remote);
}

/* ---- no heartbeat -------------------------------------------------------- */

/* Nobody looks, so an idle connection outlives a wire that was dead for a while. */
TEST(no_heartbeat_no_notice)
{
	struct scene scene = { 0 };

	job_init(&scene.job);
	scene.job.reconnect_timeout = LONG_TIMEOUT;
	start_scene(_metadata, &scene, false);
	cut_wire(_metadata, &scene.hosts, false);
	cut_wire(_metadata, &scene.hosts, true);
	/* Longer than a heartbeat with all its repetitions would take. */
	rvc_sleep_ms(8000);
	mend_wire(_metadata, &scene.hosts, false);
	mend_wire(_metadata, &scene.hosts, true);
	write_once(_metadata, &scene.from, &scene.batch.source, &scene.to, &scene.batch.target);
	EXPECT_EQ(1, conn_count(&scene.from));
	EXPECT_EQ(1, conn_count(&scene.to));
	EXPECT_EQ(0, conn_stats(_metadata, client_of(&scene)).post_hb);
	stop_scene(&scene);
}

/* ---- two processes on each side ------------------------------------------ */

/*
 * One process breaks the connection that two share. Every write of the other ends once,
 * with success or not; what did not is written again; and then all data are exact. What
 * ended well has arrived once, what ended badly perhaps.
 */
FIXTURE(shared)
{
	struct scene scene;
	struct end from;
	struct end to;
};

FIXTURE_VARIANT(shared)
{
	bool from_remote;
};

FIXTURE_VARIANT_ADD(shared, to_peer) { .from_remote = false };
FIXTURE_VARIANT_ADD(shared, from_peer) { .from_remote = true };

FIXTURE_SETUP(shared)
{
	job_init(&self->scene.job);
	self->scene.job.reconnect_timeout = LONG_TIMEOUT;
	start_scene(_metadata, &self->scene, variant->from_remote);
	start_end(_metadata, &self->from, variant->from_remote);
	start_end(_metadata, &self->to, !variant->from_remote);
	attach_end(_metadata, &self->from, &self->scene.job, RING);
	attach_end(_metadata, &self->to, &self->scene.job, RING);
	connect_ends(_metadata, &self->from, &self->to);
}

FIXTURE_TEARDOWN(shared)
{
	actor_stop(&self->from.actor);
	actor_stop(&self->to.actor);
	stop_scene(&self->scene);
}

TEST_F(shared, bad_key_of_one_process)
{
	struct scene *scene = &self->scene;
	struct buffer source = reg_buffer(_metadata, &self->from, RVC_PAGE);
	struct rv_post_write_params params;
	int arrived[BATCH] = { 0 }, before[BATCH];

	ASSERT_EQ(self->from.conn.conn_handle, scene->from.conn.conn_handle);
	for (int round = 0; round < 5; round++) {
		struct rv_event event;

		rvc_post_init(&params.in, self->from.conn.handle, &source.mr, 0x1000, 0x12345600);
		params.in.immed = immediate(&self->to, 0);
		params.in.length = 64;

		for (int i = 0; i < BATCH; i++) {
			int ret = post_piece(&scene->batch, i);

			/* The connection may be down by then. */
			ASSERT_TRUE(!ret || ret == -EAGAIN);
			if (ret)
				scene->batch.status[i] = NOT_POSTED;
			if (i == 2 * round) {
				ASSERT_EQ(0, post(&self->from, &params));
			}
		}
		event = next_event(_metadata, &self->from);
		EXPECT_NE(0, event.wc.status);
		wait_until_up(_metadata, scene, round + 2);
		EXPECT_EQ(round + 2, conn_count(&self->from));
		EXPECT_EQ(round + 2, conn_count(&self->to));
		collect_batch(_metadata, &scene->batch, 0);
		memset(arrived, 0, sizeof(arrived));
		count_arrivals(_metadata, &scene->batch, arrived);
		memcpy(before, scene->batch.status, sizeof(before));
		resend_bad(_metadata, &scene->batch);
		for (int i = 0; i < BATCH; i++) {
			if (!before[i]) {
				EXPECT_EQ(1, arrived[i]);
			}
			if (before[i] == NOT_POSTED) {
				EXPECT_EQ(0, arrived[i]);
			}
		}
		memset(arrived, 0, sizeof(arrived));
		ASSERT_TRUE(RVC_WAIT_FOR(({
			bool all = true;

			count_arrivals(_metadata, &scene->batch, arrived);
			for (int i = 0; i < BATCH; i++)
				all &= arrived[i] == !!before[i];
			all;
		})));
		expect_exact(_metadata, &scene->batch);
	}
	expect_no_event(_metadata, &self->from);
	expect_no_event(_metadata, &self->to);
}

/* ---- several queue pairs ------------------------------------------------- */

FIXTURE(striped)
{
	struct scene scene;
};

FIXTURE_VARIANT(striped)
{
	uint8_t num_conn;
};

FIXTURE_VARIANT_ADD(striped, over_4) { .num_conn = 4 };
FIXTURE_VARIANT_ADD(striped, over_16) { .num_conn = 16 };

FIXTURE_SETUP(striped)
{
	job_init(&self->scene.job);
	self->scene.job.num_conn = variant->num_conn;
	self->scene.job.q_depth = 256;
	/* The side that connects notices by nothing else that it was cut off. */
	self->scene.job.hb_interval = HEARTBEAT_MS;
	self->scene.job.reconnect_timeout = LONG_TIMEOUT;
	start_scene(_metadata, &self->scene, false);
}

FIXTURE_TEARDOWN(striped)
{
	stop_scene(&self->scene);
}

static int count_of(struct end *end, int index)
{
	return actor_conn_count(&end->actor, end->fd, end->conn.handle, index);
}

/* One of several breaks: it alone recovers, and the others go on. */
TEST_F(striped, one_breaks)
{
	struct scene *scene = &self->scene;
	struct rv_post_write_params params;
	struct rv_event event;
	int broken;

	write_init(&params, &scene->from, &scene->batch.source, &scene->to, &scene->batch.target,
		   0);
	params.in.rkey ^= 0xff00;
	params.in.length = 64;
	ASSERT_EQ(0, post(&scene->from, &params));
	broken = params.out.sconn_index;
	event = next_event(_metadata, &scene->from);
	EXPECT_NE(0, event.wc.status);
	ASSERT_TRUE(RVC_WAIT_FOR(count_of(&scene->from, broken) == 2));
	ASSERT_TRUE(RVC_WAIT_FOR(count_of(&scene->to, broken) == 2));
	for (int i = 0; i < variant->num_conn; i++) {
		EXPECT_EQ(i == broken ? 2 : 1, count_of(&scene->from, i));
		EXPECT_EQ(i == broken ? 2 : 1, count_of(&scene->to, i));
	}
	EXPECT_EQ(1, conn_stats(_metadata, &scene->from).conn_recovery);
	for (int i = 0; i < variant->num_conn; i++) {
		ASSERT_EQ(0, post_piece(&scene->batch, 0));
		collect_batch(_metadata, &scene->batch, RVC_PATIENCE_MS);
		EXPECT_EQ(0, scene->batch.status[0]);
	}
}

/* All of them break at the same time. */
TEST_F(striped, all_break)
{
	struct scene *scene = &self->scene;

	cut_wire(_metadata, &scene->hosts, true);
	post_batch(_metadata, &scene->batch);
	collect_batch(_metadata, &scene->batch, RVC_PATIENCE_MS);
	EXPECT_EQ(BATCH, bad_pieces(&scene->batch));
	mend_wire(_metadata, &scene->hosts, true);
	for (int i = 0; i < variant->num_conn; i++) {
		EXPECT_TRUE(RVC_WAIT_FOR(count_of(&scene->from, i) == 2));
		EXPECT_TRUE(RVC_WAIT_FOR(count_of(&scene->to, i) == 2));
	}
	resend_bad(_metadata, &scene->batch);
	expect_exact(_metadata, &scene->batch);
}

/* ---- two jobs ------------------------------------------------------------ */

/* What breaks in one job is no concern of another between the same hosts. */
TEST(another_job_is_not_disturbed)
{
	struct scene scene[2] = { 0 };
	struct rv_post_write_params params;

	for (int i = 0; i < 2; i++) {
		job_init(&scene[i].job);
		scene[i].job.reconnect_timeout = LONG_TIMEOUT;
		start_scene(_metadata, &scene[i], i);
	}
	write_init(&params, &scene[0].from, &scene[0].batch.source, &scene[0].to,
		   &scene[0].batch.target, 0);
	params.in.rkey ^= 0xff00;
	post_batch(_metadata, &scene[1].batch);
	ASSERT_EQ(0, post(&scene[0].from, &params));
	EXPECT_NE(0, next_event(_metadata, &scene[0].from).wc.status);
	collect_batch(_metadata, &scene[1].batch, RVC_PATIENCE_MS);
	EXPECT_EQ(0, bad_pieces(&scene[1].batch));
	wait_until_up(_metadata, &scene[0], 2);
	EXPECT_EQ(1, conn_count(&scene[1].from));
	EXPECT_EQ(1, conn_count(&scene[1].to));
	expect_exact(_metadata, &scene[1].batch);
	for (int i = 0; i < 2; i++)
		stop_scene(&scene[i]);
}

PAIR_MAIN
