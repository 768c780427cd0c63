/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A thin client of /dev/rv for the selftests: one function for each ioctl, and
 * requests that are valid as they come, for a test to spoil in one place.
 *
 * A function that returns int returns what the system call returned, or -errno.
 */
#ifndef RV_CLIENT_H
#define RV_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rv_user_ioctls.h>

#define RVC_PAGE 4096UL

/* Access bits: for a target of writes, and for a source that is only read. */
#define RVC_ACCESS_TARGET \
	(IBV_ACCESS_KERNEL | IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE)
#define RVC_ACCESS_SOURCE IBV_ACCESS_KERNEL

/* The path and address handle of the tests: rate 10 Gb/s, any hop limit. */
#define RVC_RATE 3
#define RVC_HOP_LIMIT 255
#define RVC_DLID 1

/* One port of an RDMA device, with the GID that the tests use. */
struct rvc_port {
	char dev[RV_MAX_DEV_NAME_LEN];
	uint8_t num;
	uint16_t gid_index;
	uint8_t gid[16];	/* IPv4-mapped, network order */
	uint32_t addr;		/* its IPv4 address, host order */
};

/* A registration, as REG_MEM answered it and DEREG_MEM and POST want it. */
struct rvc_mr {
	uint64_t handle;
	uint64_t iova;
	uint32_t lkey;
	uint32_t rkey;
	uint64_t addr;
	uint64_t length;
	uint32_t access;
};

/* A connection, as CONN_CREATE answered it. */
struct rvc_conn {
	uint64_t handle;
	uint64_t conn_handle;
};

struct rvc_ring {
	struct rv_ring_header *header;
	uint32_t entries;
	size_t length;
};

/*
 * The name of the device under test: RV_DEV of the environment, or rxe0. Its port
 * waits until its GID table has an IPv4 address, which takes a moment after the
 * device was made.
 */
const char *rvc_dev_name(void);
int rvc_port_find(struct rvc_port *port, const char *dev);

/* The GID of an IPv4 address in host order. */
void rvc_gid_of(uint8_t gid[16], uint32_t addr);

/*
 * How the module registers memory, for all processes: "auto", "user" or "fast". The
 * second one sets what RV_REGISTRATION of the environment says, if anything.
 */
int rvc_registration(const char *policy);
int rvc_registration_of_env(void);

int rvc_open(void);
int rvc_ioctl(int fd, unsigned long cmd, void *arg);

int rvc_capability(int fd, uint16_t major, uint16_t minor);

/*
 * A valid ATTACH in KERNEL mode: a job key that nobody else uses, 8 index bits,
 * a ring of 64 entries, one queue pair, a queue depth of 64, no recovery.
 */
void rvc_attach_init(struct rv_attach_params_in *in, const struct rvc_port *port);
void rvc_job_key(uint8_t key[RV_MAX_JOB_KEY_LEN]);
int rvc_attach(int fd, struct rv_attach_params *params);
int rvc_attach_r5(int fd, struct rv_attach_params_r5 *params);

/* The first 152 bytes of the new form are the old one. */
void rvc_attach_to_r5(struct rv_attach_params_r5 *r5, const struct rv_attach_params *params);

/* With all that REG_MEM takes. */
int rvc_reg_with(int fd, const struct rv_mem_params_in *in, struct rvc_mr *mr);
int rvc_reg(int fd, const void *addr, uint64_t length, uint32_t access, struct rvc_mr *mr);
int rvc_dereg(int fd, const struct rvc_mr *mr);
int rvc_dereg_raw(int fd, uint64_t handle, uint64_t addr, uint64_t length, uint32_t access);
int rvc_evict_exact(int fd, uint64_t addr, uint64_t length, uint32_t access,
		    struct rv_evict_params_out *out);
int rvc_evict_range(int fd, uint64_t addr, uint64_t length, struct rv_evict_params_out *out);
int rvc_evict_amount(int fd, uint64_t bytes, uint32_t count, struct rv_evict_params_out *out);
int rvc_cache_stats(int fd, struct rv_cache_stats_params_out *stats);
int rvc_event_stats(int fd, struct rv_event_stats_params_out *stats);

/* Valid requests for a peer at an IPv4 address. */
void rvc_create_init(struct rv_conn_create_params_in *in, const struct rvc_port *port,
		     uint32_t peer);
void rvc_connect_init(struct rv_conn_connect_params_in *in, const struct rvc_port *port,
		      uint32_t peer, uint64_t handle);

int rvc_conn_create(int fd, struct rv_conn_create_params *params, struct rvc_conn *conn);
int rvc_conn_connect(int fd, const struct rv_conn_connect_params_in *in);
int rvc_conn_connected(int fd, uint64_t handle);
int rvc_conn_count(int fd, uint64_t handle, uint8_t index, uint32_t *count);
int rvc_conn_stats(int fd, uint64_t handle, uint8_t index,
		   struct rv_conn_get_stats_params_out *stats);

/* A POST of a whole registration to (rem_addr, rkey). */
void rvc_post_init(struct rv_post_write_params_in *in, uint64_t handle,
		   const struct rvc_mr *mr, uint64_t rem_addr, uint32_t rkey);
int rvc_post(int fd, struct rv_post_write_params *params);

/* The ring. rvc_ring_poll() says whether it took an event. */
int rvc_ring_map(int fd, uint32_t entries, struct rvc_ring *ring);
void rvc_ring_unmap(struct rvc_ring *ring);
bool rvc_ring_poll(struct rvc_ring *ring, struct rv_event *event);

/*
 * Anonymous memory, touched, and out of reach of huge pages: their daemon would
 * invalidate registrations on its own, and so does the kernel for all 2 MiB around
 * the place where it splits a mapping that could hold one.
 */
void *rvc_alloc(size_t length);
void *rvc_alloc_at(void *addr, size_t length);

/* Data that tells every place and every seed apart. */
void rvc_fill(void *buf, size_t length, uint64_t seed, uint64_t offset);

/* The index of the first byte that is not as rvc_fill() made it, or -1. */
ssize_t rvc_check(const void *buf, size_t length, uint64_t seed, uint64_t offset);

/* A number of "Name: 123" in a file of /proc, or -1. */
long rvc_proc_number(const char *path, const char *name);

/* Milliseconds of a clock that only goes forward. */
uint64_t rvc_now_ms(void);
void rvc_pause(void);
void rvc_sleep_ms(unsigned int ms);

/*
 * The bound for something that must end in so many milliseconds on a machine as it
 * should be. RV_TIME_FACTOR of the environment tells how much slower this one may be,
 * 4 if it does not: for emulated ones on a busy host.
 */
uint64_t rvc_bound_ms(uint64_t ms);

/*
 * How long to wait for an event that must come, in milliseconds. Never a measure
 * of speed: an emulated machine can be twenty times slower than a real one.
 */
#define RVC_PATIENCE_MS 90000

/* Waits until a condition holds; false if it did not come true in time. */
#define RVC_WAIT_FOR(condition) RVC_WAIT_MS(RVC_PATIENCE_MS, condition)
#define RVC_WAIT_MS(patience_ms, condition)                                    \
	({                                                                     \
		uint64_t give_up_ = rvc_now_ms() + (patience_ms);              \
		bool holds_;                                                   \
									       \
		while (!(holds_ = (condition)) && rvc_now_ms() < give_up_)     \
			rvc_pause();                                           \
		holds_;                                                        \
	})

#endif
