// SPDX-License-Identifier: GPL-2.0
/*
 * Breaks the connections of a job of PSM3's from beside it:
 *
 *   rv_bad_key UUID ADDRESS
 *
 * Joins the job UUID (FI_PSM3_UUID) as one more process of it, which takes the same
 * user and exactly what PSM3 asks of ATTACH and CONN_CREATE when no variable says
 * otherwise. So it shares the connection to the node with the IPv4 ADDRESS, and posts
 * a write with a wrong remote key on every queue pair of it. The peer refuses each,
 * which breaks the queue pair for all processes. Ends when all have been refused and
 * are up again. Not a test: tests of PSM3 and MPI run it.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rv_client.h"

/* What PSM3 2.1.0 gives; 0 stands for rv's default. */
#define PSM3_INDEX_BITS 9
#define PSM3_CQ_ENTRIES 192
#define PSM3_SERVICE_ID 0x1000125500000001ULL
#define PSM3_RECONNECT_TIMEOUT 30
#define PSM3_HB_INTERVAL 1000
#define PSM3_RATE 2

/* No key of rdma_rxe's, which count up from small numbers, looks like this. */
#define WRONG_KEY 0xdeadbeef

static void job_key_of(uint8_t key[RV_MAX_JOB_KEY_LEN], const char *uuid)
{
	const char *at = uuid;

	for (int i = 0; i < RV_MAX_JOB_KEY_LEN; i++) {
		unsigned int byte;

		at += *at == '-';
		if (sscanf(at, "%2x", &byte) != 1)
			errx(2, "%s: not a UUID: give FI_PSM3_UUID of the job", uuid);
		key[i] = byte;
		at += 2;
	}
}

static void join(int fd, const struct rvc_port *port, const char *uuid)
{
	struct rv_attach_params params;
	int ret;

	rvc_attach_init(&params.in, port);
	job_key_of(params.in.job_key, uuid);
	params.in.num_conn = 0;
	params.in.index_bits = PSM3_INDEX_BITS;
	params.in.cq_entries = PSM3_CQ_ENTRIES;
	params.in.q_depth = 0;
	params.in.service_id = PSM3_SERVICE_ID;
	params.in.reconnect_timeout = PSM3_RECONNECT_TIMEOUT;
	params.in.hb_interval = PSM3_HB_INTERVAL;
	ret = rvc_attach(fd, &params);
	if (ret)
		errx(1, "ATTACH: %s", strerror(-ret));
}

/* The connection must be there and up already: it is PSM3's. */
static struct rvc_conn share(int fd, const struct rvc_port *port, uint32_t peer)
{
	struct rv_conn_create_params params;
	struct rvc_conn conn;
	int ret;

	rvc_create_init(&params.in, port, peer);
	params.in.ah.static_rate = PSM3_RATE;
	ret = rvc_conn_create(fd, &params, &conn);
	if (ret)
		errx(1, "CONN_CREATE: %s", strerror(-ret));
	ret = rvc_conn_connected(fd, conn.handle);
	if (ret != 1)
		errx(1, "no connection of such a job is up (CONN_CONNECTED gives %d)", ret);
	return conn;
}

static struct rv_conn_get_stats_params_out stats_of(int fd, const struct rvc_conn *conn)
{
	struct rv_conn_get_stats_params_out stats;
	int ret = rvc_conn_stats(fd, conn->handle, RV_CONN_STAT_AGGREGATE, &stats);

	if (ret)
		errx(1, "CONN_GET_STATS: %s", strerror(-ret));
	return stats;
}

/* One write for each queue pair, which take turns; PSM3's writes take turns among them. */
static void post_bad(int fd, const struct rvc_conn *conn, const struct rvc_mr *mr, int wr_id)
{
	struct rv_post_write_params params;
	int ret;

	rvc_post_init(&params.in, conn->handle, mr, 0x1000, WRONG_KEY);
	params.in.wr_id = wr_id;
	if (!RVC_WAIT_FOR((ret = rvc_post(fd, &params)) != -EAGAIN && ret != -ENOMEM))
		errx(1, "POST: the connection does not come back");
	if (ret)
		errx(1, "POST: %s", strerror(-ret));
}

static void await_refusal(struct rvc_ring *ring)
{
	struct rv_event event;

	if (!RVC_WAIT_FOR(rvc_ring_poll(ring, &event)))
		errx(1, "no event of the write");
	if (!event.wc.status)
		errx(1, "the peer took a write with a wrong key");
}

int main(int argc, char **argv)
{
	struct rv_conn_get_stats_params_out before, after;
	struct rvc_port port;
	struct rvc_ring ring;
	struct rvc_conn conn;
	struct in_addr peer;
	struct rvc_mr mr;
	int fd, ret;

	if (argc != 3 || inet_pton(AF_INET, argv[2], &peer) != 1)
		errx(2, "usage: rv_bad_key UUID ADDRESS");
	if (rvc_port_find(&port, rvc_dev_name()))
		errx(1, "%s: no such RDMA device with an IPv4 address", rvc_dev_name());
	fd = rvc_open();
	if (fd < 0)
		err(1, "/dev/rv");
	ret = rvc_capability(fd, RV_ABI_VER_MAJOR, RV_ABI_VER_MINOR);
	if (ret)
		errx(1, "CAPABILITY: %s", strerror(-ret));
	join(fd, &port, argv[1]);
	if (rvc_ring_map(fd, PSM3_CQ_ENTRIES, &ring))
		errx(1, "the ring cannot be mapped");
	conn = share(fd, &port, ntohl(peer.s_addr));
	ret = rvc_reg(fd, rvc_alloc(RVC_PAGE), RVC_PAGE, RVC_ACCESS_SOURCE, &mr);
	if (ret)
		errx(1, "REG_MEM: %s", strerror(-ret));

	before = stats_of(fd, &conn);
	for (unsigned int i = 0; i < before.num_conn; i++)
		post_bad(fd, &conn, &mr, 1 + i);
	for (unsigned int i = 0; i < before.num_conn; i++)
		await_refusal(&ring);
	if (!RVC_WAIT_FOR((after = stats_of(fd, &conn)).conn_recovery > before.conn_recovery))
		errx(1, "the connection has not recovered");
	printf("# %u writes were refused, %u recoveries so far\n", before.num_conn,
	       after.conn_recovery - before.conn_recovery);
	return 0;
}
