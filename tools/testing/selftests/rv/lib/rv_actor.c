// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rv_actor.h"

#define MAX_RINGS 8
#define MAX_DATA 65536

enum op {
	OP_PID,
	OP_PORT,
	OP_OPEN,
	OP_IOCTL,
	OP_SYSCALL,
	OP_SHELL,
	OP_ALLOC,
	OP_FILL,
	OP_CHECK,
	OP_FORK,
	OP_RING_MAP,
	OP_RING_UNMAP,
	OP_RING_POLL,
	OP_RING_GET,
	OP_RING_SET,
	OP_STREAM,
	OP_KILL,
	OP_END_SERVER,
};

/* A message: this, and as many bytes of data as it says. */
struct message {
	uint32_t op;
	uint32_t length;
	int64_t ret;
	int64_t arg[7];
};

/* ---- messages ------------------------------------------------------------ */

static int write_all(int sock, const void *data, size_t length)
{
	const char *p = data;

	while (length) {
		ssize_t n = send(sock, p, length, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		p += n;
		length -= n;
	}
	return 0;
}

static int read_all(int sock, void *data, size_t length, int patience_ms)
{
	struct pollfd pollfd = { .fd = sock, .events = POLLIN };
	char *p = data;

	while (length) {
		ssize_t n = poll(&pollfd, 1, patience_ms);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			return -ETIME;
		n = recv(sock, p, length, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		p += n;
		length -= n;
	}
	return 0;
}

static int send_message(int sock, struct message *message, const void *data, uint32_t length)
{
	int ret;

	message->length = length;
	ret = write_all(sock, message, sizeof(*message));
	return ret ? ret : write_all(sock, data, length);
}

/* Data goes to a buffer of a size; what is more than that is an error. */
static int receive_message(int sock, struct message *message, void *data, uint32_t size,
			   int patience_ms)
{
	int ret = read_all(sock, message, sizeof(*message), patience_ms);

	if (ret)
		return ret;
	if (message->length > size)
		return -EPROTO;
	return read_all(sock, data, message->length, patience_ms);
}

/* ---- the side of the actor ----------------------------------------------- */

struct ring_of {
	int fd;
	struct rvc_ring ring;
};

static struct ring_of rings[MAX_RINGS];
static int ring_count;

static struct rvc_ring *find_ring(int fd)
{
	/* The latest first: numbers of files are used again. */
	for (int i = ring_count - 1; i >= 0; i--)
		if (rings[i].fd == fd)
			return rings[i].ring.header ? &rings[i].ring : NULL;
	return NULL;
}

static int do_ring_map(int fd, uint32_t entries)
{
	int ret;

	if (ring_count == MAX_RINGS)
		return -ENOSPC;
	rings[ring_count].fd = fd;
	ret = rvc_ring_map(fd, entries, &rings[ring_count].ring);
	if (!ret)
		ring_count++;
	return ret;
}

static int do_ring_poll(int fd, struct rv_event *events, int count, uint64_t patience_ms)
{
	uint64_t give_up = rvc_now_ms() + patience_ms;
	struct rvc_ring *ring = find_ring(fd);
	int n = 0;

	if (!ring)
		return -EBADF;
	while (n < count) {
		if (rvc_ring_poll(ring, &events[n]))
			n++;
		else if (rvc_now_ms() >= give_up)
			break;
		else
			rvc_pause();
	}
	return n;
}

/* Where the name of a device is, if there is one, its port will be. */
static int do_port(void *data, uint32_t length)
{
	char dev[RV_MAX_DEV_NAME_LEN];

	snprintf(dev, sizeof(dev), "%.*s", (int)length, (char *)data);
	return rvc_port_find(data, length ? dev : rvc_dev_name());
}

static pid_t do_fork(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid < 0 ? -errno : pid;
}

static int do_shell(const char *command)
{
	int status = system(command);

	if (status < 0)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* Takes the events that are there. */
static void stream_collect(struct rvc_ring *ring, struct actor_stream_result *result)
{
	struct rv_event event;

	while (rvc_ring_poll(ring, &event)) {
		if (event.event_type != RV_WC_RDMA_WRITE)
			continue;
		if (!event.wc.status) {
			result->good++;
			continue;
		}
		if (!result->bad++)
			result->first_status = event.wc.status;
	}
}

/* The device went away, and with it everything that could put events in the ring. */
static bool is_detached(int fd)
{
	struct rv_conn_get_stats_params_out stats;

	return rvc_conn_stats(fd, 0, 0, &stats) == -ENXIO;
}

static void do_stream(const struct actor_stream *stream, struct actor_stream_result *result)
{
	struct rvc_ring *ring = find_ring(stream->fd);
	struct rv_post_write_params params;
	uint64_t give_up;
	int ret;

	memset(result, 0, sizeof(*result));
	while (result->posted < stream->count && !result->bad) {
		stream_collect(ring, result);
		if (result->posted - result->good - result->bad >= stream->window) {
			sched_yield();
			continue;
		}
		params.in = stream->post;
		params.in.wr_id = result->posted + 1;
		ret = rvc_post(stream->fd, &params);
		if (ret == -ENOMEM || ret == -EAGAIN)
			continue;
		if (ret) {
			result->error = -ret;
			break;
		}
		result->posted++;
	}
	give_up = rvc_now_ms() + RVC_PATIENCE_MS;
	do {
		stream_collect(ring, result);
		if (result->good + result->bad == result->posted || is_detached(stream->fd))
			break;
		rvc_pause();
	} while (rvc_now_ms() < give_up);
}

/* Does what a message says; the answer is left in the message and in data. */
static uint32_t perform(struct message *m, void *data)
{
	int64_t *arg = m->arg;
	struct rvc_ring *ring;

	switch ((enum op)m->op) {
	case OP_PID:
		m->ret = getpid();
		return 0;
	case OP_PORT:
		m->ret = do_port(data, m->length);
		return sizeof(struct rvc_port);
	case OP_OPEN:
		m->ret = rvc_open();
		if (m->ret >= 0 && rvc_capability(m->ret, RV_ABI_VER_MAJOR, RV_ABI_VER_MINOR))
			m->ret = -EPROTO;
		return 0;
	case OP_IOCTL:
		m->ret = rvc_ioctl(arg[0], arg[1], data);
		return m->length;
	case OP_SYSCALL:
		m->ret = syscall(arg[0], arg[1], arg[2], arg[3], arg[4], arg[5], arg[6]);
		if (m->ret == -1)
			m->ret = -errno;
		return 0;
	case OP_SHELL:
		m->ret = do_shell(data);
		return 0;
	case OP_ALLOC:
		m->ret = (intptr_t)rvc_alloc_at((void *)arg[0], arg[1]);
		return 0;
	case OP_FILL:
		rvc_fill((void *)arg[0], arg[1], arg[2], arg[3]);
		m->ret = 0;
		return 0;
	case OP_CHECK:
		m->ret = rvc_check((void *)arg[0], arg[1], arg[2], arg[3]);
		return 0;
	case OP_FORK:
		m->ret = do_fork();
		return 0;
	case OP_RING_MAP:
		m->ret = do_ring_map(arg[0], arg[1]);
		return 0;
	case OP_RING_UNMAP:
		ring = find_ring(arg[0]);
		m->ret = ring ? 0 : -EBADF;
		if (ring)
			rvc_ring_unmap(ring);
		return 0;
	case OP_RING_POLL:
		m->ret = do_ring_poll(arg[0], data, arg[1], arg[2]);
		return m->ret > 0 ? m->ret * sizeof(struct rv_event) : 0;
	case OP_RING_GET:
		ring = find_ring(arg[0]);
		m->ret = ring ? 0 : -EBADF;
		if (!ring)
			return 0;
		*(struct actor_ring *)data = (struct actor_ring){
			.head = ring->header->head,
			.tail = ring->header->tail,
			.overflow_cnt = ring->header->overflow_cnt,
		};
		return sizeof(struct actor_ring);
	case OP_RING_SET:
		ring = find_ring(arg[0]);
		m->ret = ring ? 0 : -EBADF;
		if (ring && arg[1] >= 0)
			ring->header->head = arg[1];
		if (ring && arg[2] >= 0)
			ring->header->tail = arg[2];
		return 0;
	case OP_STREAM: {
		struct actor_stream stream = *(struct actor_stream *)data;

		do_stream(&stream, data);
		m->ret = 0;
		return sizeof(struct actor_stream_result);
	}
	case OP_KILL:
		m->ret = kill(arg[0], SIGKILL) ? -errno : 0;
		/* Gone, for the purpose of a test, is when its files are closed. */
		if (!m->ret && !RVC_WAIT_FOR(kill(arg[0], 0)))
			m->ret = -ETIME;
		return 0;
	case OP_END_SERVER:
		m->ret = kill(getppid(), SIGTERM) ? -errno : 0;
		return 0;
	}
	m->ret = -ENOSYS;
	return 0;
}

/* The life of an actor. */
static void act(int sock)
{
	struct message m;
	char *data = malloc(MAX_DATA);
	uint32_t length;

	signal(SIGPIPE, SIG_IGN);
	while (data && !receive_message(sock, &m, data, MAX_DATA, -1)) {
		length = perform(&m, data);
		if (send_message(sock, &m, data, length))
			break;
	}
	_exit(0);
}

/* ---- the side of the test ------------------------------------------------ */

static int begin(struct actor *actor, struct message *m, const void *data, uint32_t length)
{
	return actor->sock < 0 ? -EPIPE : send_message(actor->sock, m, data, length);
}

static int64_t end(struct actor *actor, struct message *m, void *data, uint32_t size)
{
	int ret;

	if (actor->sock < 0)
		return -EPIPE;
	/* Longer than anything that the actor waits for. */
	ret = receive_message(actor->sock, m, data, size, 2 * RVC_PATIENCE_MS);
	return ret ? ret : m->ret;
}

static int64_t call(struct actor *actor, struct message m, const void *data, uint32_t length,
		    void *answer, uint32_t size)
{
	int ret = begin(actor, &m, data, length);

	return ret ? ret : end(actor, &m, answer, size);
}

#define MESSAGE(op_, ...) ((struct message){ .op = (op_), .arg = { __VA_ARGS__ } })
#define SIMPLE_CALL(actor, ...) call(actor, MESSAGE(__VA_ARGS__), NULL, 0, NULL, 0)

static int start(struct actor *actor, int sock)
{
	int64_t pid;

	actor->sock = sock;
	pid = SIMPLE_CALL(actor, OP_PID);
	if (pid < 0)
		return pid;
	actor->pid = pid;
	return 0;
}

int actor_start(struct actor *actor)
{
	int pair[2];
	pid_t pid;

	actor->remote = false;
	actor->sock = -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		/* Sockets of other actors must not be held open by this one. */
		close_range(3, pair[1] - 1, 0);
		close_range(pair[1] + 1, ~0U, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		act(pair[1]);
	}
	close(pair[1]);
	return start(actor, pair[0]);
}

static int connect_to(const char *host)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	char port[16];
	int sock, one = 1;

	snprintf(port, sizeof(port), "%d", ACTOR_PORT);
	if (getaddrinfo(host, port, &hints, &found))
		return -EHOSTUNREACH;
	sock = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sock >= 0 && connect(sock, found->ai_addr, found->ai_addrlen)) {
		int error = errno;

		close(sock);
		sock = -error;
	}
	freeaddrinfo(found);
	if (sock < 0)
		return sock;
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return sock;
}

int actor_start_remote(struct actor *actor, const char *host)
{
	int sock = -1;

	actor->remote = true;
	actor->sock = -1;
	RVC_WAIT_FOR((sock = connect_to(host)) != -ECONNREFUSED);
	return sock < 0 ? sock : start(actor, sock);
}

void actor_stop(struct actor *actor)
{
	if (actor->sock < 0)
		return;
	close(actor->sock);
	actor->sock = -1;
	if (!actor->remote)
		waitpid(actor->pid, NULL, 0);
}

static void forget_children(int signal)
{
	(void)signal;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void end_server(int signal)
{
	(void)signal;
	_exit(0);
}

int actor_serve(void)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(ACTOR_PORT) };
	struct sigaction action = { .sa_handler = forget_children, .sa_flags = SA_RESTART };
	int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int sock, one = 1;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 16))
		return -errno;
	sigaction(SIGCHLD, &action, NULL);
	signal(SIGTERM, end_server);
	for (;;) {
		sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (sock < 0)
			continue;
		if (!fork()) {
			signal(SIGCHLD, SIG_DFL);
			setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
			close(listener);
			act(sock);
		}
		close(sock);
	}
}

int actor_end_server(struct actor *actor)
{
	return SIMPLE_CALL(actor, OP_END_SERVER);
}

int actor_kill(struct actor *actor)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	char host[64];
	struct actor helper;
	int ret;

	if (actor->sock < 0)
		return -ENOTCONN;
	if (!actor->remote) {
		ret = kill(actor->pid, SIGKILL) ? -errno : 0;
		actor_stop(actor);
		return ret;
	}
	if (getpeername(actor->sock, (struct sockaddr *)&address, &length) ||
	    getnameinfo((struct sockaddr *)&address, length, host, sizeof(host), NULL, 0,
			NI_NUMERICHOST))
		return -ENOTCONN;
	ret = actor_start_remote(&helper, host);
	if (!ret)
		ret = SIMPLE_CALL(&helper, OP_KILL, actor->pid);
	actor_stop(&helper);
	actor_stop(actor);
	return ret;
}

int actor_port(struct actor *actor, struct rvc_port *port)
{
	return call(actor, MESSAGE(OP_PORT), NULL, 0, port, sizeof(*port));
}

int actor_port_of(struct actor *actor, struct rvc_port *port, const char *dev)
{
	return call(actor, MESSAGE(OP_PORT), dev, strlen(dev), port, sizeof(*port));
}

int actor_open(struct actor *actor)
{
	return SIMPLE_CALL(actor, OP_OPEN);
}

int actor_ioctl(struct actor *actor, int fd, unsigned long cmd, void *arg)
{
	uint32_t size = _IOC_SIZE(cmd);

	return call(actor, MESSAGE(OP_IOCTL, fd, cmd), arg, size, arg, size);
}

long actor_syscall(struct actor *actor, long nr, long a, long b, long c, long d, long e, long f)
{
	return SIMPLE_CALL(actor, OP_SYSCALL, nr, a, b, c, d, e, f);
}

int actor_close(struct actor *actor, int fd)
{
	return actor_syscall(actor, SYS_close, fd, 0, 0, 0, 0, 0);
}

int actor_shell(struct actor *actor, const char *command)
{
	return call(actor, MESSAGE(OP_SHELL), command, strlen(command) + 1, NULL, 0);
}

uint64_t actor_alloc(struct actor *actor, uint64_t addr, uint64_t length)
{
	return SIMPLE_CALL(actor, OP_ALLOC, addr, length);
}

int actor_munmap(struct actor *actor, uint64_t addr, uint64_t length)
{
	return actor_syscall(actor, SYS_munmap, addr, length, 0, 0, 0, 0);
}

int actor_fill(struct actor *actor, uint64_t addr, uint64_t length, uint64_t seed,
	       uint64_t offset)
{
	return SIMPLE_CALL(actor, OP_FILL, addr, length, seed, offset);
}

long actor_check(struct actor *actor, uint64_t addr, uint64_t length, uint64_t seed,
		 uint64_t offset)
{
	return SIMPLE_CALL(actor, OP_CHECK, addr, length, seed, offset);
}

pid_t actor_fork(struct actor *actor)
{
	return SIMPLE_CALL(actor, OP_FORK);
}

int actor_ring_map(struct actor *actor, int fd, uint32_t entries)
{
	return SIMPLE_CALL(actor, OP_RING_MAP, fd, entries);
}

int actor_ring_unmap(struct actor *actor, int fd)
{
	return SIMPLE_CALL(actor, OP_RING_UNMAP, fd);
}

int actor_ring_poll(struct actor *actor, int fd, struct rv_event *events, int count,
		    uint64_t patience_ms)
{
	return call(actor, MESSAGE(OP_RING_POLL, fd, count, patience_ms), NULL, 0, events,
		    count * sizeof(*events));
}

int actor_ring_get(struct actor *actor, int fd, struct actor_ring *words)
{
	return call(actor, MESSAGE(OP_RING_GET, fd), NULL, 0, words, sizeof(*words));
}

int actor_ring_set(struct actor *actor, int fd, long head, long tail)
{
	return SIMPLE_CALL(actor, OP_RING_SET, fd, head, tail);
}

int actor_reg(struct actor *actor, int fd, uint64_t addr, uint64_t length, uint32_t access,
	      struct rvc_mr *mr)
{
	struct rv_mem_params params = { .in = {
		.addr = addr,
		.length = length,
		.access = access,
	} };
	int ret = actor_ioctl(actor, fd, RV_IOCTL_REG_MEM, &params);

	if (ret)
		return ret;
	*mr = (struct rvc_mr){
		.handle = params.out.mr_handle,
		.iova = params.out.iova,
		.lkey = params.out.lkey,
		.rkey = params.out.rkey,
		.addr = addr,
		.length = length,
		.access = access,
	};
	return 0;
}

int actor_dereg(struct actor *actor, int fd, const struct rvc_mr *mr)
{
	struct rv_dereg_params_in in = {
		.mr_handle = mr->handle,
		.addr = mr->addr,
		.length = mr->length,
		.access = mr->access,
	};

	return actor_ioctl(actor, fd, RV_IOCTL_DEREG_MEM, &in);
}

int actor_connected(struct actor *actor, int fd, uint64_t handle)
{
	struct rv_conn_connected_params_in in = { .handle = handle };

	return actor_ioctl(actor, fd, RV_IOCTL_CONN_CONNECTED, &in);
}

int actor_conn_count(struct actor *actor, int fd, uint64_t handle, uint8_t index)
{
	struct rv_conn_get_conn_count_params params = { .in = {
		.handle = handle,
		.index = index,
	} };
	int ret = actor_ioctl(actor, fd, RV_IOCTL_CONN_GET_CONN_COUNT, &params);

	return ret ? ret : (int)params.out.count;
}

int actor_conn_stats(struct actor *actor, int fd, uint64_t handle,
		     struct rv_conn_get_stats_params_out *stats)
{
	struct rv_conn_get_stats_params params = { .in = {
		.handle = handle,
		.index = RV_CONN_STAT_AGGREGATE,
	} };
	int ret = actor_ioctl(actor, fd, RV_IOCTL_CONN_GET_STATS, &params);

	*stats = params.out;
	return ret;
}

int actor_stream_begin(struct actor *actor, const struct actor_stream *stream)
{
	struct message m = MESSAGE(OP_STREAM);

	return begin(actor, &m, stream, sizeof(*stream));
}

int actor_stream_end(struct actor *actor, struct actor_stream_result *result)
{
	struct message m;

	return end(actor, &m, result, sizeof(*result));
}
