/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What breaks under a test with two hosts: the wire, a network interface, a device.
 *
 * The wire is cut on the side that receives, for RoCE alone: the words between the
 * actors are to go on. The qdisc that the filter hangs in is there before any
 * traffic (see two-vm/lib.sh), since adding one makes sends fail.
 *
 * Variables: RV_DEV is the device under test (rxe0), RV_NETDEV its interface (eth0).
 */
#ifndef RV_BREAK_H
#define RV_BREAK_H

#include "rv_end.h"

#define NETDEV "${RV_NETDEV:-eth0}"

#define WIRE_CUT "tc filter add dev " NETDEV " ingress pref 1 protocol ip flower" \
		 " ip_proto udp dst_port 4791 action drop"
#define WIRE_MEND "tc filter del dev " NETDEV " ingress pref 1 2>/dev/null"

#define LINK_DEL "rdma link del ${RV_DEV:-rxe0}"
#define LINK_ADD "rdma link add ${RV_DEV:-rxe0} type rxe netdev " NETDEV

/* Who runs commands on the two hosts: [0] here, [1] there. */
struct hosts {
	struct actor on[2];
};

static inline int on_host(struct hosts *hosts, bool remote, const char *command)
{
	return actor_shell(&hosts->on[remote], command);
}

/* What an earlier test may have left cut is mended. */
static inline void start_hosts(struct __test_metadata *_metadata, struct hosts *hosts)
{
	ASSERT_EQ(0, actor_start(&hosts->on[0]));
	ASSERT_EQ(0, actor_start_remote(&hosts->on[1], peer_host));
	for (int i = 0; i < 2; i++)
		on_host(hosts, i, WIRE_MEND);
}

static inline void stop_hosts(struct hosts *hosts)
{
	for (int i = 0; i < 2; i++) {
		on_host(hosts, i, WIRE_MEND);
		actor_stop(&hosts->on[i]);
	}
}

/* Nothing arrives on a host any more; and again it does. */
static inline void cut_wire(struct __test_metadata *_metadata, struct hosts *hosts, bool remote)
{
	ASSERT_EQ(0, on_host(hosts, remote, WIRE_CUT));
}

static inline void mend_wire(struct __test_metadata *_metadata, struct hosts *hosts, bool remote)
{
	ASSERT_EQ(0, on_host(hosts, remote, WIRE_MEND));
}

/* No queue pair and no registration of anybody is left in the RDMA core. */
static inline bool nothing_left_on(struct actor *actor)
{
	return !actor_shell(actor, "! rdma res show qp | grep 'type RC' && "
				   "! rdma res show mr | grep 'mrn'");
}

static inline void expect_nothing_left(struct __test_metadata *_metadata)
{
	struct actor actor[2];

	ASSERT_EQ(0, actor_start(&actor[0]));
	ASSERT_EQ(0, actor_start_remote(&actor[1], peer_host));
	for (int i = 0; i < 2; i++) {
		EXPECT_TRUE(RVC_WAIT_FOR(nothing_left_on(&actor[i])));
		actor_stop(&actor[i]);
	}
}

/* A new job of new processes moves data, whatever became of the old one. */
static inline void expect_new_job_works(struct __test_metadata *_metadata)
{
	struct end from, to;
	struct job job;

	job_init(&job);
	start_end(_metadata, &from, false);
	start_end(_metadata, &to, true);
	attach_end(_metadata, &from, &job, RING);
	attach_end(_metadata, &to, &job, RING);
	connect_ends(_metadata, &from, &to);
	move(_metadata, &from, &to, 100000, 1, 2);
	actor_stop(&from.actor);
	actor_stop(&to.actor);
}

static inline int conn_count(struct end *end)
{
	return actor_conn_count(&end->actor, end->fd, end->conn.handle, 0);
}

static inline struct rv_conn_get_stats_params_out conn_stats(struct __test_metadata *_metadata,
							     struct end *end)
{
	struct rv_conn_get_stats_params_out stats;

	ASSERT_EQ(0, actor_conn_stats(&end->actor, end->fd, end->conn.handle, &stats));
	return stats;
}

#endif
