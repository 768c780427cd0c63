/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Actors: processes that do what a test tells them, on this machine or on another.
 *
 * A test with two hosts is one program that way: it runs on one of them and reads
 * from top to bottom. Each actor is a process of its own, so that it can attach,
 * fork, be killed; it is reached through a socket, and ends when that is closed.
 *
 * Functions return what the actor's call returned, or -errno; -EPIPE if the actor
 * is gone and -ETIME if it did not answer in time.
 */
#ifndef RV_ACTOR_H
#define RV_ACTOR_H

#include <sys/types.h>

#include "rv_client.h"

#define ACTOR_PORT 7471

struct actor {
	int sock;
	pid_t pid;	/* on the machine where it runs */
	bool remote;
};

/* Starts an actor here, or on the host where actor_serve() runs. */
int actor_start(struct actor *actor);
int actor_start_remote(struct actor *actor, const char *host);

/* Lets it go; it closes all it has and exits. */
void actor_stop(struct actor *actor);

/* Takes actors from other hosts, until one of them says actor_end_server(). */
int actor_serve(void);
int actor_end_server(struct actor *actor);

/* kill -9. For a remote actor a helper is sent. Returns when it is gone. */
int actor_kill(struct actor *actor);

/* ---- calls --------------------------------------------------------------- */

/* The device under test, or another one. */
int actor_port(struct actor *actor, struct rvc_port *port);
int actor_port_of(struct actor *actor, struct rvc_port *port, const char *dev);
int actor_open(struct actor *actor);
int actor_ioctl(struct actor *actor, int fd, unsigned long cmd, void *arg);
long actor_syscall(struct actor *actor, long nr, long a, long b, long c, long d, long e, long f);
int actor_close(struct actor *actor, int fd);

/* A command of the shell; its exit status. */
int actor_shell(struct actor *actor, const char *command);

/* Memory of the actor; addresses are its own. */
uint64_t actor_alloc(struct actor *actor, uint64_t addr, uint64_t length);
int actor_munmap(struct actor *actor, uint64_t addr, uint64_t length);
int actor_fill(struct actor *actor, uint64_t addr, uint64_t length, uint64_t seed,
	       uint64_t offset);
/* -1 if all is as actor_fill() made it, else the index of the first other byte. */
long actor_check(struct actor *actor, uint64_t addr, uint64_t length, uint64_t seed,
		 uint64_t offset);
/* Forks a child that does nothing but to hold a copy of the memory. */
pid_t actor_fork(struct actor *actor);

/* The ring of a file, of which an actor has up to 8. */
int actor_ring_map(struct actor *actor, int fd, uint32_t entries);
int actor_ring_unmap(struct actor *actor, int fd);
/*
 * Waits until count events have come, and takes them; gives how many came in
 * time. Polls once, with no wait, if patience is 0.
 */
int actor_ring_poll(struct actor *actor, int fd, struct rv_event *events, int count,
		    uint64_t patience_ms);
/* The words of the header; set those that are not negative. */
struct actor_ring {
	uint32_t head;
	uint32_t tail;
	uint64_t overflow_cnt;
};

int actor_ring_get(struct actor *actor, int fd, struct actor_ring *words);
int actor_ring_set(struct actor *actor, int fd, long head, long tail);

/* The ioctls, as in rv_client.h. */
int actor_reg(struct actor *actor, int fd, uint64_t addr, uint64_t length, uint32_t access,
	      struct rvc_mr *mr);
int actor_dereg(struct actor *actor, int fd, const struct rvc_mr *mr);
int actor_connected(struct actor *actor, int fd, uint64_t handle);
int actor_conn_count(struct actor *actor, int fd, uint64_t handle, uint8_t index);
int actor_conn_stats(struct actor *actor, int fd, uint64_t handle,
		     struct rv_conn_get_stats_params_out *stats);

/* ---- streams ------------------------------------------------------------- */

/*
 * Posts the same write again and again, with a number of them under way, until
 * one is refused or fails or the count is reached. Then waits for what is under
 * way, unless the file is no longer attached: then nothing will come.
 */
struct actor_stream {
	struct rv_post_write_params_in post;
	uint64_t count;
	uint32_t window;
	int fd;
};

struct actor_stream_result {
	uint64_t posted;	/* accepted */
	uint64_t good;		/* events with status 0 */
	uint64_t bad;		/* events with another status */
	int error;		/* of the POST that was refused, 0 if none was */
	int first_status;	/* of the first bad event */
};

int actor_stream_begin(struct actor *actor, const struct actor_stream *stream);
int actor_stream_end(struct actor *actor, struct actor_stream_result *result);

#endif
