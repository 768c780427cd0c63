// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "rv_client.h"

#define MIB (1UL << 20)

/* ---- device -------------------------------------------------------------- */

const char *rvc_dev_name(void)
{
	const char *name = getenv("RV_DEV");

	return name && *name ? name : "rxe0";
}

static bool read_line(char *buf, size_t size, const char *dev, const char *file, unsigned int index)
{
	char path[256];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/%s/%u", dev, file, index);
	f = fopen(path, "r");
	if (!f)
		return false;
	ok = fgets(buf, size, f);
	fclose(f);
	if (ok)
		buf[strcspn(buf, "\n")] = '\0';
	return ok;
}

void rvc_gid_of(uint8_t gid[16], uint32_t addr)
{
	addr = htonl(addr);
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, &addr, 4);
}

static bool gid_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, mapped, sizeof(mapped));
}

static bool port_look(struct rvc_port *port)
{
	char text[64], type[64];
	uint32_t addr;

	for (unsigned int i = 0; i < 256; i++) {
		if (!read_line(text, sizeof(text), port->dev, "gids", i))
			return false;
		if (inet_pton(AF_INET6, text, port->gid) != 1 || !gid_is_ipv4(port->gid))
			continue;
		if (!read_line(type, sizeof(type), port->dev, "gid_attrs/types", i) ||
		    strcmp(type, "RoCE v2"))
			continue;
		memcpy(&addr, port->gid + 12, sizeof(addr));
		port->addr = ntohl(addr);
		port->gid_index = i;
		return true;
	}
	return false;
}

int rvc_port_find(struct rvc_port *port, const char *dev)
{
	memset(port, 0, sizeof(*port));
	snprintf(port->dev, sizeof(port->dev), "%s", dev);
	port->num = 1;
	return RVC_WAIT_FOR(port_look(port)) ? 0 : -ENODEV;
}

/* ---- ioctls -------------------------------------------------------------- */

#define REGISTRATION "/sys/kernel/debug/rv/registration"

int rvc_registration(const char *policy)
{
	ssize_t length = strlen(policy);
	int fd = open(REGISTRATION, O_WRONLY | O_CLOEXEC);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, policy, length) != length)
		ret = -errno;
	close(fd);
	return ret;
}

int rvc_registration_of_env(void)
{
	const char *policy = getenv("RV_REGISTRATION");

	return policy ? rvc_registration(policy) : 0;
}

int rvc_open(void)
{
	int fd = open(RV_FILE_NAME, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int rvc_ioctl(int fd, unsigned long cmd, void *arg)
{
	int ret = ioctl(fd, cmd, arg);

	return ret < 0 ? -errno : ret;
}

int rvc_capability(int fd, uint16_t major, uint16_t minor)
{
	struct rv_capability_params params = { .major_rev = major, .minor_rev = minor };

	return rvc_ioctl(fd, RV_IOCTL_CAPABILITY, &params);
}

void rvc_job_key(uint8_t key[RV_MAX_JOB_KEY_LEN])
{
	static uint64_t counter;
	struct timespec now;
	uint64_t half[2];

	clock_gettime(CLOCK_REALTIME, &now);
	half[0] = ((uint64_t)getpid() << 32) + ++counter;
	half[1] = (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	memcpy(key, half, RV_MAX_JOB_KEY_LEN);
}

void rvc_attach_init(struct rv_attach_params_in *in, const struct rvc_port *port)
{
	memset(in, 0, sizeof(*in));
	memcpy(in->dev_name, port->dev, sizeof(in->dev_name));
	in->rdma_mode = RV_RDMA_MODE_KERNEL;
	in->port_num = port->num;
	in->num_conn = 1;
	in->loc_addr = port->addr;
	in->index_bits = 8;
	in->loc_gid_index = port->gid_index;
	memcpy(in->loc_gid, port->gid, sizeof(in->loc_gid));
	rvc_job_key(in->job_key);
	in->job_key_len = RV_MAX_JOB_KEY_LEN;
	in->cq_entries = 64;
	in->q_depth = 64;
}

int rvc_attach(int fd, struct rv_attach_params *params)
{
	return rvc_ioctl(fd, RV_IOCTL_ATTACH, params);
}

int rvc_attach_r5(int fd, struct rv_attach_params_r5 *params)
{
	return rvc_ioctl(fd, RV_IOCTL_ATTACH_R5, params);
}

void rvc_attach_to_r5(struct rv_attach_params_r5 *r5, const struct rv_attach_params *params)
{
	memcpy(r5, params, sizeof(*r5));
}

int rvc_reg_with(int fd, const struct rv_mem_params_in *in, struct rvc_mr *mr)
{
	struct rv_mem_params params = { .in = *in };
	int ret = rvc_ioctl(fd, RV_IOCTL_REG_MEM, &params);

	if (ret)
		return ret;
	*mr = (struct rvc_mr){
		.handle = params.out.mr_handle,
		.iova = params.out.iova,
		.lkey = params.out.lkey,
		.rkey = params.out.rkey,
		.addr = in->addr,
		.length = in->length,
		.access = in->access,
	};
	return 0;
}

int rvc_reg(int fd, const void *addr, uint64_t length, uint32_t access, struct rvc_mr *mr)
{
	struct rv_mem_params params = { .in = {
		.addr = (uintptr_t)addr,
		.length = length,
		.access = access,
	} };

	return rvc_reg_with(fd, &params.in, mr);
}

int rvc_dereg_raw(int fd, uint64_t handle, uint64_t addr, uint64_t length, uint32_t access)
{
	struct rv_dereg_params_in in = {
		.mr_handle = handle,
		.addr = addr,
		.length = length,
		.access = access,
	};

	return rvc_ioctl(fd, RV_IOCTL_DEREG_MEM, &in);
}

int rvc_dereg(int fd, const struct rvc_mr *mr)
{
	return rvc_dereg_raw(fd, mr->handle, mr->addr, mr->length, mr->access);
}

static int evict(int fd, struct rv_evict_params *params, struct rv_evict_params_out *out)
{
	int ret = rvc_ioctl(fd, RV_IOCTL_EVICT, params);

	if (!ret)
		*out = params->out;
	return ret;
}

int rvc_evict_exact(int fd, uint64_t addr, uint64_t length, uint32_t access,
		    struct rv_evict_params_out *out)
{
	struct rv_evict_params params = {
		.in.type = RV_EVICT_TYPE_SEARCH_EXACT,
		.in.search = { .addr = addr, .length = length, .access = access },
	};

	return evict(fd, &params, out);
}

int rvc_evict_range(int fd, uint64_t addr, uint64_t length, struct rv_evict_params_out *out)
{
	struct rv_evict_params params = {
		.in.type = RV_EVICT_TYPE_SEARCH_RANGE,
		.in.search = { .addr = addr, .length = length },
	};

	return evict(fd, &params, out);
}

int rvc_evict_amount(int fd, uint64_t bytes, uint32_t count, struct rv_evict_params_out *out)
{
	struct rv_evict_params params = {
		.in.type = RV_EVICT_TYPE_AMOUNT,
		.in.amount = { .bytes = bytes, .count = count },
	};

	return evict(fd, &params, out);
}

int rvc_cache_stats(int fd, struct rv_cache_stats_params_out *stats)
{
	memset(stats, 0xaa, sizeof(*stats));
	return rvc_ioctl(fd, RV_IOCTL_GET_CACHE_STATS, stats);
}

int rvc_event_stats(int fd, struct rv_event_stats_params_out *stats)
{
	memset(stats, 0xaa, sizeof(*stats));
	return rvc_ioctl(fd, RV_IOCTL_GET_EVENT_STATS, stats);
}

void rvc_create_init(struct rv_conn_create_params_in *in, const struct rvc_port *port,
		     uint32_t peer)
{
	memset(in, 0, sizeof(*in));
	rvc_gid_of(in->ah.grh.dgid, peer);
	in->ah.grh.sgid_index = port->gid_index;
	in->ah.grh.hop_limit = RVC_HOP_LIMIT;
	in->ah.dlid = RVC_DLID;
	in->ah.src_path_bits = 1;
	in->ah.static_rate = RVC_RATE;
	in->ah.is_global = 1;
	in->ah.port_num = port->num;
	in->rem_addr = peer;
}

void rvc_connect_init(struct rv_conn_connect_params_in *in, const struct rvc_port *port,
		      uint32_t peer, uint64_t handle)
{
	struct ib_user_path_rec *path = &in->path;

	memset(in, 0, sizeof(*in));
	in->handle = handle;
	rvc_gid_of(path->dgid, peer);
	memcpy(path->sgid, port->gid, sizeof(path->sgid));
	path->dlid = htons(RVC_DLID);
	path->slid = htons(RVC_DLID);
	path->reversible = 1;
	path->mtu = 3;			/* 1024 bytes */
	path->pkey = htons(0xffff);
	path->hop_limit = RVC_HOP_LIMIT;
	path->numb_path = 1;
	path->mtu_selector = 2;		/* exactly */
	path->rate_selector = 2;
	path->rate = RVC_RATE;
	path->packet_life_time_selector = 2;
	path->packet_life_time = 16;
}

int rvc_conn_create(int fd, struct rv_conn_create_params *params, struct rvc_conn *conn)
{
	int ret = rvc_ioctl(fd, RV_IOCTL_CONN_CREATE, params);

	if (!ret) {
		conn->handle = params->out.handle;
		conn->conn_handle = params->out.conn_handle;
	}
	return ret;
}

int rvc_conn_connect(int fd, const struct rv_conn_connect_params_in *in)
{
	return rvc_ioctl(fd, RV_IOCTL_CONN_CONNECT, (void *)in);
}

int rvc_conn_connected(int fd, uint64_t handle)
{
	struct rv_conn_connected_params_in in = { .handle = handle };

	return rvc_ioctl(fd, RV_IOCTL_CONN_CONNECTED, &in);
}

int rvc_conn_count(int fd, uint64_t handle, uint8_t index, uint32_t *count)
{
	struct rv_conn_get_conn_count_params params = { .in = {
		.handle = handle,
		.index = index,
	} };
	int ret = rvc_ioctl(fd, RV_IOCTL_CONN_GET_CONN_COUNT, &params);

	if (!ret)
		*count = params.out.count;
	return ret;
}

int rvc_conn_stats(int fd, uint64_t handle, uint8_t index,
		   struct rv_conn_get_stats_params_out *stats)
{
	struct rv_conn_get_stats_params params;
	int ret;

	memset(&params, 0xaa, sizeof(params));
	params.in.handle = handle;
	params.in.index = index;
	ret = rvc_ioctl(fd, RV_IOCTL_CONN_GET_STATS, &params);
	if (!ret)
		*stats = params.out;
	return ret;
}

void rvc_post_init(struct rv_post_write_params_in *in, uint64_t handle,
		   const struct rvc_mr *mr, uint64_t rem_addr, uint32_t rkey)
{
	memset(in, 0, sizeof(*in));
	in->handle = handle;
	in->loc_addr = mr->addr;
	in->loc_mr_handle = mr->handle;
	in->loc_mr_addr = mr->addr;
	in->loc_mr_length = mr->length;
	in->loc_mr_access = mr->access;
	in->rkey = rkey;
	in->rem_addr = rem_addr;
	in->length = mr->length;
}

int rvc_post(int fd, struct rv_post_write_params *params)
{
	return rvc_ioctl(fd, RV_IOCTL_POST_RDMA_WR_IMMED, params);
}

/* ---- ring ---------------------------------------------------------------- */

int rvc_ring_map(int fd, uint32_t entries, struct rvc_ring *ring)
{
	void *addr;

	ring->entries = entries;
	ring->length = RV_RING_ALLOC_LEN(entries);
	addr = mmap(NULL, ring->length, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_POPULATE | MAP_LOCKED, fd, 0);
	if (addr == MAP_FAILED) {
		ring->header = NULL;
		return -errno;
	}
	ring->header = addr;
	return 0;
}

void rvc_ring_unmap(struct rvc_ring *ring)
{
	if (ring->header)
		munmap(ring->header, ring->length);
	ring->header = NULL;
}

bool rvc_ring_poll(struct rvc_ring *ring, struct rv_event *event)
{
	struct rv_ring_header *header = ring->header;
	uint32_t head = header->head;

	if (head == __atomic_load_n(&header->tail, __ATOMIC_ACQUIRE))
		return false;
	memcpy(event, &header->entries[head], sizeof(*event));
	__atomic_store_n(&header->head, head + 1 == ring->entries ? 0 : head + 1, __ATOMIC_RELEASE);
	return true;
}

/* ---- memory -------------------------------------------------------------- */

/*
 * Every other MiB gets a flag that the next one has not, so that no mapping spans
 * the 2 MiB of a huge page.
 */
static void keep_mappings_small(uint8_t *p, size_t length)
{
	size_t chunk;

	for (; length; p += chunk, length -= chunk) {
		chunk = MIB - (uintptr_t)p % MIB;
		if (chunk > length)
			chunk = length;
		if ((uintptr_t)p / MIB % 2)
			madvise(p, chunk, MADV_DONTDUMP);
	}
}

void *rvc_alloc_at(void *addr, size_t length)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (addr ? MAP_FIXED : 0);
	void *p;

	length = (length + RVC_PAGE - 1) & -RVC_PAGE;
	p = mmap(addr, length, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	madvise(p, length, MADV_NOHUGEPAGE);
	keep_mappings_small(p, length);
	memset(p, 0, length);
	return p;
}

void *rvc_alloc(size_t length)
{
	return rvc_alloc_at(NULL, length);
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9;
	x ^= x >> 27;
	x *= 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static uint8_t pattern(uint64_t seed, uint64_t offset)
{
	return mix(seed * 0x9e3779b97f4a7c15 + offset / 8) >> offset % 8 * 8;
}

void rvc_fill(void *buf, size_t length, uint64_t seed, uint64_t offset)
{
	uint8_t *p = buf;

	for (size_t i = 0; i < length; i++)
		p[i] = pattern(seed, offset + i);
}

ssize_t rvc_check(const void *buf, size_t length, uint64_t seed, uint64_t offset)
{
	const uint8_t *p = buf;

	for (size_t i = 0; i < length; i++)
		if (p[i] != pattern(seed, offset + i))
			return i;
	return -1;
}

/* ---- the rest ------------------------------------------------------------ */

long rvc_proc_number(const char *path, const char *name)
{
	size_t length = strlen(name);
	char line[256];
	long value = -1;
	FILE *f = fopen(path, "r");

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, length) && line[length] == ':')
			value = strtol(line + length + 1, NULL, 10);
	fclose(f);
	return value;
}

uint64_t rvc_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void rvc_sleep_ms(unsigned int ms)
{
	struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	while (nanosleep(&time, &time) && errno == EINTR)
		;
}

void rvc_pause(void)
{
	rvc_sleep_ms(1);
}

uint64_t rvc_bound_ms(uint64_t ms)
{
	const char *factor = getenv("RV_TIME_FACTOR");
	unsigned long n = factor ? strtoul(factor, NULL, 10) : 0;

	return ms * (n ? n : 4);
}
