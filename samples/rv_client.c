// SPDX-License-Identifier: GPL-2.0
/*
 * The smallest complete client of /dev/rv: moves 1 MiB from one host to another.
 *
 *   rv_client server		receives and verifies, then ends
 *   rv_client client HOST	sends to the server on HOST
 *
 * A TCP connection carries what the two have to tell each other; its own address
 * chooses the RDMA device, which must be RoCE v2. Read from main() upwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rv_user_ioctls.h>

#define TCP_PORT	"7472"
#define PATIENCE	90	/* seconds to wait for what must come */
#define IB_CLASS	"/sys/class/infiniband"

#define WRITE_SIZE	16384UL
#define WRITES		64U
#define TOTAL_SIZE	(WRITES * WRITE_SIZE)	/* bound by rv_attach_params_out.max_fmr_size */
#define WINDOW		8U	/* writes under way */

/*
 * One entry stays free. The window bounds the sender's events, but nothing bounds those of
 * the receiver: this ring takes all of them. To send without end, let him say when to go on.
 */
#define RING_ENTRIES	(WRITES + 1)

/* What the two nodes have to agree on. */
#define JOB_KEY		"rv_client.c"	/* filled with 0 to 16 bytes */
#define INDEX_BITS	8	/* of the immediate; the tag is the rest of it */
#define TAG_BITS	(32 - INDEX_BITS)
#define HOP_LIMIT	255
#define RATE		0	/* as fast as the port */
#define ROCE_LID	1	/* RoCE has none, but rv wants a number */

/* What one side tells the other. Host order will do, as the ABI is for x86-64. */
struct card {
	uint8_t gid[16];	/* network order */
	uint32_t ipv4;		/* the number that rv wants beside it */
	uint32_t rv_index;
	uint32_t rkey;
	uint64_t iova;
};

struct client {
	int sock, rv;
	char device[RV_MAX_DEV_NAME_LEN];
	unsigned int gid_index;
	struct card own, peer;
	struct rv_dereg_params_in mr;	/* all that names a registration */
	struct rv_conn_create_params_out conn;
	struct rv_ring_header *ring;
};

static uint8_t buffer[TOTAL_SIZE] __attribute__((aligned(4096)));

/* Ends with one line: what failed, why, and what may help. */
__attribute__((noreturn, format(printf, 3, 4)))
static void die(int why, const char *cure, const char *what, ...)
{
	va_list args;

	fputs("rv_client: ", stderr);
	va_start(args, what);
	vfprintf(stderr, what, args);
	va_end(args);
	fprintf(stderr, ": %s; %s\n", strerror(why), cure);
	exit(1);
}

/* An ioctl that must not fail; only CONN_CONNECTED has a value. */
static int rv_ioctl(const struct client *c, unsigned long number, void *params,
		    const char *name, const char *cure)
{
	int ret = ioctl(c->rv, number, params);

	if (ret < 0)
		die(errno, cure, "%s (device %s)", name, c->device);
	return ret;
}

/* Connects to a host, or waits for a client if there is none. */
static int open_tcp(const char *host)
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE, .ai_family = AF_INET,
				  .ai_socktype = SOCK_STREAM }, *at;
	int sock, client, yes = 1;

	if (getaddrinfo(host, TCP_PORT, &hints, &at))
		die(EHOSTUNREACH, "give an IPv4 address or the name of one", "look up %s", host);
	sock = socket(at->ai_family, at->ai_socktype, 0);
	if (host && (sock < 0 || connect(sock, at->ai_addr, at->ai_addrlen)))
		die(errno, "start the server first", "connect to %s:%s", host, TCP_PORT);
	if (!host && (setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
		      bind(sock, at->ai_addr, at->ai_addrlen) || listen(sock, 1)))
		die(errno, "end the other server", "listen on TCP port %s", TCP_PORT);
	freeaddrinfo(at);
	if (host)
		return sock;
	client = accept(sock, NULL, NULL);
	if (client < 0)
		die(errno, "start again", "accept a client");
	close(sock);
	return client;
}

/* Exchanges the cards. Neither side returns before both have called, so it is a barrier. */
static void exchange_cards(struct client *c)
{
	ssize_t size = sizeof(c->own), got = -1;

	if (send(c->sock, &c->own, size, MSG_NOSIGNAL) == size)
		got = recv(c->sock, &c->peer, size, MSG_WAITALL);
	if (got != size)
		die(got < 0 ? errno : ECONNRESET, "see what it says", "talk to the peer");
}

/* Sleeps a little, unless there is no point in waiting any more. */
static void nap(const struct client *c, time_t since, const char *what)
{
	static const struct timespec little = { .tv_nsec = 50000 };
	ssize_t got;
	char byte;

	/* The peer keeps the connection until all is done, whatever it has sent by then. */
	got = recv(c->sock, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
	if (!got || (got < 0 && errno != EAGAIN))
		die(ECONNRESET, "see what the peer says", "wait for %s", what);
	if (time(NULL) - since > PATIENCE)
		die(ETIMEDOUT, "does UDP port 4791 pass between the hosts?", "wait for %s", what);
	nanosleep(&little, NULL);
}

static int file_says(const char *path, const char *text)
{
	FILE *file = fopen(path, "r");
	char line[64];
	int same;

	if (!file)
		return 0;
	same = fgets(line, sizeof(line), file) && !strcmp(line, text);
	fclose(file);
	return same;
}

/* Finds the device, and in the GID table of its port 1 our address of the TCP connection. */
static void find_device(struct client *c)
{
	struct sockaddr_in own = { 0 };
	socklen_t length = sizeof(own);
	uint8_t *ip = c->own.gid + 12;
	char gid[64], type[128];
	int found = 0;
	glob_t paths = { 0 };

	/* The GID of 10.9.0.1 is ::ffff:10.9.0.1, which sysfs writes in full. */
	getsockname(c->sock, (struct sockaddr *)&own, &length);
	memset(ip - 2, 0xff, 2);
	memcpy(ip, &own.sin_addr, 4);
	c->own.ipv4 = ntohl(own.sin_addr.s_addr);
	snprintf(gid, sizeof(gid), "0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x\n",
		 ip[0], ip[1], ip[2], ip[3]);

	glob(IB_CLASS "/*/ports/1/gids/*", 0, NULL, &paths);
	for (size_t i = 0; i < paths.gl_pathc && !found; i++) {
		sscanf(paths.gl_pathv[i], IB_CLASS "/%63[^/]/ports/1/gids/%u", c->device,
		       &c->gid_index);
		snprintf(type, sizeof(type), IB_CLASS "/%s/ports/1/gid_attrs/types/%u", c->device,
			 c->gid_index);
		/* The table may have the same address for RoCE v1, too. */
		found = file_says(paths.gl_pathv[i], gid) && file_says(type, "RoCE v2\n");
	}
	globfree(&paths);
	if (!found)
		die(ENODEV, "for example: rdma link add rxe0 type rxe netdev eth0",
		    "find a RoCE v2 device for %u.%u.%u.%u", ip[0], ip[1], ip[2], ip[3]);
}

/* Joins the job: all processes on this port with the same key and user. */
static void attach(struct client *c)
{
	struct rv_capability_params rev = { RV_ABI_VER_MAJOR, RV_ABI_VER_MINOR, 0, 0, { 0 } };
	struct rv_attach_params params = { .in = {
		.rdma_mode = RV_RDMA_MODE_KERNEL,
		.port_num = 1, .num_conn = 1,
		.loc_addr = c->own.ipv4, .loc_gid_index = c->gid_index,
		.index_bits = INDEX_BITS,
		.job_key = JOB_KEY, .job_key_len = RV_MAX_JOB_KEY_LEN,
		.cq_entries = RING_ENTRIES, .q_depth = WINDOW,
		/* 0 in reconnect_timeout: a connection that breaks stays broken. */
	} };

	c->rv = open(RV_FILE_NAME, O_RDWR | O_CLOEXEC);
	if (c->rv < 0)
		die(errno, "modprobe rv, or install the udev rule", "open %s", RV_FILE_NAME);
	rv_ioctl(c, RV_IOCTL_CAPABILITY, &rev, "CAPABILITY", "load a newer module");
	/* An older module does not know these forms of ATTACH and REG_MEM. */
	if (RV_ABI_VERSION(rev.major_rev, rev.minor_rev) < RV_ABI_VERSION_CURRENT)
		die(EPROTONOSUPPORT, "load a newer module", "use the ABI of the module");

	memcpy(params.in.dev_name, c->device, sizeof(params.in.dev_name));
	memcpy(params.in.loc_gid, c->own.gid, sizeof(params.in.loc_gid));
	rv_ioctl(c, RV_IOCTL_ATTACH, &params, "ATTACH", "was the device or its address changed?");
	c->own.rv_index = params.out.rv_index;

	/* Only now is there a ring, and events that come before it are lost. */
	c->ring = mmap(NULL, RV_RING_ALLOC_LEN(RING_ENTRIES), PROT_READ | PROT_WRITE, MAP_SHARED,
		       c->rv, 0);
	if (c->ring == MAP_FAILED)
		die(errno, "free some memory", "map the event ring");
}

static void register_buffer(struct client *c)
{
	struct rv_mem_params params = { .in = {
		.addr = c->mr.addr, .length = c->mr.length, .access = c->mr.access,
	} };

	/* A registration ends when its pages change, as when they become a huge one. */
	madvise(buffer, TOTAL_SIZE, MADV_NOHUGEPAGE);
	rv_ioctl(c, RV_IOCTL_REG_MEM, &params, "REG_MEM", "raise ulimit -l, or register less");
	c->mr.mr_handle = params.out.mr_handle;
	c->own.iova = params.out.iova;	/* not the virtual address */
	c->own.rkey = params.out.rkey;
}

static void connect_nodes(struct client *c)
{
	struct rv_conn_create_params create = { .in = {
		.ah = {
			.grh = { .sgid_index = c->gid_index, .hop_limit = HOP_LIMIT },
			.dlid = ROCE_LID, .src_path_bits = 1,
			.static_rate = RATE,
			.is_global = 1, .port_num = 1,
		},
		.rem_addr = c->peer.ipv4,
	} };
	/* Selector 2: exactly. MTU 3: 1024 bytes, which fit into any Ethernet frame. */
	struct rv_conn_connect_params_in connect = { .path = {
		.dlid = htons(ROCE_LID), .slid = htons(ROCE_LID),
		.reversible = 1, .numb_path = 1,
		.mtu_selector = 2, .mtu = 3,
		.rate_selector = 2, .rate = RATE,
		.packet_life_time_selector = 2, .packet_life_time = 16,	/* 4.096 us * 2^16 */
		.pkey = htons(0xffff), .hop_limit = HOP_LIMIT,
	} };
	struct rv_conn_connected_params_in connected;
	time_t since = time(NULL);

	memcpy(create.in.ah.grh.dgid, c->peer.gid, 16);
	rv_ioctl(c, RV_IOCTL_CONN_CREATE, &create, "CONN_CREATE", "use two hosts");
	c->conn = create.out;

	/* The request of a node that the other does not know yet is refused for good. */
	exchange_cards(c);
	connect.handle = connected.handle = c->conn.handle;
	memcpy(connect.path.sgid, c->own.gid, 16);
	memcpy(connect.path.dgid, c->peer.gid, 16);
	/* Both sides call; the modules know which of them has to send the request. */
	rv_ioctl(c, RV_IOCTL_CONN_CONNECT, &connect, "CONN_CONNECT", "is the link up?");
	while (!rv_ioctl(c, RV_IOCTL_CONN_CONNECTED, &connected, "CONN_CONNECTED",
			 "both sides need the same user id"))
		nap(c, since, "the connection");
}

static int poll_ring(const struct client *c, struct rv_event *event)
{
	uint32_t head = c->ring->head;

	/* Acquire: the entry is read after the tail that covers it. */
	if (head == __atomic_load_n(&c->ring->tail, __ATOMIC_ACQUIRE))
		return 0;
	/* Entries have no alignment, and are ours until head moves on. */
	memcpy(event, &c->ring->entries[head], sizeof(*event));
	/* Release: the module may write the entry after we have read it. */
	__atomic_store_n(&c->ring->head, (head + 1) % RING_ENTRIES, __ATOMIC_RELEASE);
	return 1;
}

/* Waits for an event, which must be a good one of this type. */
static struct rv_event next_event(const struct client *c, uint8_t type)
{
	struct rv_event event;
	time_t since = time(NULL);

	while (!poll_ring(c, &event))
		nap(c, since, "an event");
	if (c->ring->overflow_cnt)
		die(EOVERFLOW, "make the ring larger", "read the event ring");
	if (event.event_type != type || event.wc.status ||
	    event.wc.conn_handle != c->conn.conn_handle || event.wc.byte_len != WRITE_SIZE)
		die(EIO, "the status is one of enum ib_wc_status", "event %u, status %u, %u bytes",
		    event.event_type, event.wc.status, event.wc.byte_len);
	return event;
}

/* Data that tells every place from its neighbours. */
static uint8_t pattern(size_t offset)
{
	return (offset * 0x9e3779b97f4a7c15) >> 56;
}

static void post_write(const struct client *c, uint32_t number)
{
	size_t offset = number * WRITE_SIZE;
	struct rv_post_write_params params = { .in = {
		.handle = c->conn.handle,
		.loc_addr = c->mr.addr + offset,
		.loc_mr_handle = c->mr.mr_handle, .loc_mr_addr = c->mr.addr,
		.loc_mr_length = c->mr.length, .loc_mr_access = c->mr.access,
		.rkey = c->peer.rkey, .rem_addr = c->peer.iova + offset,
		.length = WRITE_SIZE, .wr_id = number,
		/* The index tells the module which process it is for, the tag is ours. */
		.immed = c->peer.rv_index << TAG_BITS | number,
	} };

	rv_ioctl(c, RV_IOCTL_POST_RDMA_WR_IMMED, &params, "POST_RDMA_WR_IMMED",
		 "see what the peer says");
}

/* On one queue pair writes arrive in their order, and end in it; on several, in any. */
static void send_data(const struct client *c)
{
	for (size_t i = 0; i < TOTAL_SIZE; i++)
		buffer[i] = pattern(i);
	for (uint32_t posted = 0, ended = 0; ended < WRITES; ended++) {
		while (posted < WRITES && posted < ended + WINDOW)
			post_write(c, posted++);
		if (next_event(c, RV_WC_RDMA_WRITE).wc.wr_id != ended)
			die(EBADMSG, "report it", "write %u ended out of order", ended);
	}
}

static void receive_data(const struct client *c)
{
	uint32_t imm = c->own.rv_index << TAG_BITS;

	for (size_t i = 0; i < TOTAL_SIZE; i++) {
		/* The data of a write are there when its event is. */
		if (i % WRITE_SIZE == 0 &&
		    next_event(c, RV_WC_RECV_RDMA_WITH_IMM).wc.imm_data != imm++)
			die(EBADMSG, "report it", "byte %zu came out of order", i);
		if (buffer[i] != pattern(i))
			die(EBADMSG, "report it", "byte %zu is wrong", i);
	}
}

int main(int argc, char **argv)
{
	int server = argc == 2 && !strcmp(argv[1], "server");
	struct client c = { .mr = {
		.addr = (uintptr_t)buffer, .length = TOTAL_SIZE, .access = IBV_ACCESS_KERNEL,
	} };

	if (!server && !(argc == 3 && !strcmp(argv[1], "client"))) {
		fprintf(stderr, "usage: %s server | %s client HOST\n", argv[0], argv[0]);
		return 2;
	}
	if (server)
		c.mr.access |= IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE;

	c.sock = open_tcp(server ? NULL : argv[2]);
	find_device(&c);
	attach(&c);
	register_buffer(&c);
	exchange_cards(&c);
	connect_nodes(&c);
	if (server)
		receive_data(&c);
	else
		send_data(&c);
	/* Who closes ends the connection for both, so wait until the data are verified. */
	exchange_cards(&c);
	printf("%lu bytes in %u writes: verified\n", TOTAL_SIZE, WRITES);

	rv_ioctl(&c, RV_IOCTL_DEREG_MEM, &c.mr, "DEREG_MEM", "was the device removed?");
	munmap(c.ring, RV_RING_ALLOC_LEN(RING_ENTRIES));
	close(c.rv);
	close(c.sock);
	return 0;
}
