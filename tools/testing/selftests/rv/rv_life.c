// SPDX-License-Identifier: GPL-2.0
/*
 * Beginnings and ends: processes that are killed, files that are closed again and
 * again, a device that goes away under them, a module that is unloaded.
 *
 * For loading the module again its file must be known: MODULES of the environment
 * is its directory, or it is in build/modules of the current directory.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "rv_device_fixture.h"

/* ---- what is left over --------------------------------------------------- */

#define MAX_CACHES 1024

struct slab {
	char name[32];
	long objects;
};

struct slabs {
	struct slab slab[MAX_CACHES];
	int count;
};

/* Gives memory of caches that is in nobody's hands back, so that it is not counted. */
static void shrink_slabs(void)
{
	/* Some caches have no such file. */
	if (system("for f in /sys/kernel/slab/*/shrink; do echo 1 >$f; done 2>/dev/null"))
		return;
}

static void read_slabs(struct __test_metadata *_metadata, struct slabs *slabs)
{
	char line[256];
	FILE *f;

	shrink_slabs();
	f = fopen("/proc/slabinfo", "r");
	ASSERT_NE(NULL, f);
	slabs->count = 0;
	while (slabs->count < MAX_CACHES && fgets(line, sizeof(line), f)) {
		struct slab *slab = &slabs->slab[slabs->count];

		if (sscanf(line, "%31s %ld", slab->name, &slab->objects) == 2)
			slabs->count++;
	}
	fclose(f);
	ASSERT_LT(10, slabs->count);
}

static long slab_objects(const struct slabs *slabs, const char *name)
{
	for (int i = 0; i < slabs->count; i++)
		if (!strcmp(slabs->slab[i].name, name))
			return slabs->slab[i].objects;
	return 0;
}

/* The output of a command, to be compared with another. */
static void output_of(const char *command, char *buf, size_t size)
{
	FILE *f = popen(command, "r");
	size_t n = f ? fread(buf, 1, size - 1, f) : 0;

	buf[n] = '\0';
	if (f)
		pclose(f);
}

/*
 * Whether "rdma res" shows no more of anything than it did: the same words, and no
 * number is larger. Smaller is good too, since what an earlier test left may have
 * been on its way out when the numbers were taken.
 */
static bool resources_are_no_more_than(const char *before)
{
	char now[1024], *p = now, *end;
	unsigned long was, is;

	output_of("rdma res", now, sizeof(now));
	while (*before && *p) {
		if (!isdigit(*before) || !isdigit(*p)) {
			if (*before++ != *p++)
				return false;
			continue;
		}
		was = strtoul(before, (char **)&before, 10);
		is = strtoul(p, &end, 10);
		p = end;
		if (is > was)
			return false;
	}
	return !*before && !*p;
}

/* ---- files, again and again ---------------------------------------------- */

FIXTURE(life)
{
	struct rvc_port port;
	char resources[1024];
};

FIXTURE_SETUP(life)
{
	rvt_find_port(_metadata, &self->port);
	output_of("rdma res", self->resources, sizeof(self->resources));
	ASSERT_NE(NULL, strstr(self->resources, "qp "));
}

FIXTURE_TEARDOWN(life)
{
}

/* Everything that one process can do alone, and then the end of the file. */
static void whole_life(struct __test_metadata *_metadata, const struct rvc_port *port, void *buf)
{
	struct rv_conn_connect_params_in connect;
	struct rv_conn_create_params create;
	struct rv_attach_params_in in;
	struct rvc_conn conn;
	struct rvc_ring ring;
	struct rvc_mr mr;
	int fd;

	rvc_attach_init(&in, port);
	fd = rvt_attach_with(_metadata, &in);
	ASSERT_EQ(0, rvc_ring_map(fd, in.cq_entries, &ring));
	rvc_create_init(&create.in, port, RVT_PEER_ABOVE(port));
	ASSERT_EQ(0, rvc_conn_create(fd, &create, &conn));
	rvc_connect_init(&connect, port, RVT_PEER_ABOVE(port), conn.handle);
	ASSERT_EQ(0, rvc_conn_connect(fd, &connect));
	rvc_create_init(&create.in, port, RVT_PEER_BELOW);
	ASSERT_EQ(0, rvc_conn_create(fd, &create, &conn));
	rvc_connect_init(&connect, port, RVT_PEER_BELOW, conn.handle);
	ASSERT_EQ(0, rvc_conn_connect(fd, &connect));
	ASSERT_EQ(0, rvc_reg(fd, buf, 3 * RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	ASSERT_EQ(0, rvc_reg(fd, buf, RVC_PAGE, RVC_ACCESS_SOURCE, &mr));
	ASSERT_EQ(0, rvc_dereg(fd, &mr));
	rvc_ring_unmap(&ring);
	close(fd);
}

/*
 * A leak of one object in each round shows as 200 objects more. Other parts of the
 * kernel come and go too, so a cache that grew is suspect only if it grows by that
 * much three times in a row.
 */
TEST_F(life, two_hundred_rounds_leave_nothing)
{
	static struct slabs before, after;
	static bool suspect[MAX_CACHES];
	void *buf = rvt_alloc(_metadata, 4 * RVC_PAGE);
	int suspects = 0;

	for (int i = 0; i < 20; i++)
		whole_life(_metadata, &self->port, buf);
	ASSERT_TRUE(RVC_WAIT_FOR(resources_are_no_more_than(self->resources)));
	memset(suspect, true, sizeof(suspect));
	for (int batch = 0; batch < 3; batch++) {
		read_slabs(_metadata, &before);
		for (int i = 0; i < 200; i++)
			whole_life(_metadata, &self->port, buf);
		ASSERT_TRUE(RVC_WAIT_FOR(resources_are_no_more_than(self->resources)));
		read_slabs(_metadata, &after);
		suspects = 0;
		for (int i = 0; i < after.count; i++) {
			struct slab *slab = &after.slab[i];
			long grown = slab->objects - slab_objects(&before, slab->name);

			if (grown < 150)
				suspect[i] = false;
			if (!suspect[i])
				continue;
			suspects++;
			TH_LOG("batch %d: %s grew by %ld objects", batch, slab->name, grown);
		}
		if (!suspects)
			break;
	}
	EXPECT_EQ(0, suspects);
}

/* Open and close, with nothing in between. */
TEST_F(life, files_that_never_attach)
{
	for (int i = 0; i < 500; i++)
		close(rvt_open(_metadata));
	EXPECT_TRUE(resources_are_no_more_than(self->resources));
}

/* What a process does until it is killed. */
static void live_until_killed(const struct rvc_port *port)
{
	void *buf = rvc_alloc(16 * RVC_PAGE);

	for (;;) {
		struct rv_conn_connect_params_in connect;
		struct rv_conn_create_params create;
		struct rv_attach_params params;
		struct rvc_conn conn;
		struct rvc_ring ring = { 0 };
		struct rvc_mr mr;
		int fd = rvc_open();

		rvc_capability(fd, 1, 6);
		rvc_attach_init(&params.in, port);
		rvc_attach(fd, &params);
		rvc_ring_map(fd, 64, &ring);
		rvc_create_init(&create.in, port, RVT_PEER_ABOVE(port));
		rvc_conn_create(fd, &create, &conn);
		rvc_connect_init(&connect, port, RVT_PEER_ABOVE(port), 1);
		rvc_conn_connect(fd, &connect);
		for (int i = 0; i < 16; i++) {
			if (!rvc_reg(fd, buf, (i + 1) * RVC_PAGE, RVC_ACCESS_TARGET, &mr) && i % 2)
				rvc_dereg(fd, &mr);
		}
		rvc_ring_unmap(&ring);
		close(fd);
	}
}

/*
 * At any moment: the time until the kill is drawn, so that over the rounds it hits
 * every step. Each process must go, and leave nothing.
 */
TEST_F(life, killed_at_any_moment)
{
	unsigned int seed = 1;

	for (int i = 0; i < 60; i++) {
		pid_t child = fork();

		ASSERT_LE(0, child);
		if (!child)
			live_until_killed(&self->port);
		usleep(rand_r(&seed) % 30000);
		ASSERT_EQ(0, kill(child, SIGKILL));
		ASSERT_EQ(256 + SIGKILL, rvt_wait_child(child));
	}
	EXPECT_TRUE(RVC_WAIT_FOR(resources_are_no_more_than(self->resources)));
}

/* An exit with everything still open, mapped and registered. */
TEST_F(life, exit_without_closing)
{
	for (int i = 0; i < 10; i++) {
		EXPECT_EQ(0, RVT_IN_CHILD(({
				  struct rv_attach_params params;
				  struct rvc_ring ring;
				  struct rvc_mr mr;
				  int fd = rvc_open();

				  rvc_attach_init(&params.in, &self->port);
				  rvc_capability(fd, 1, 6) || rvc_attach(fd, &params) ||
					  rvc_ring_map(fd, 64, &ring) ||
					  rvc_reg(fd, rvc_alloc(RVC_PAGE), RVC_PAGE,
						  RVC_ACCESS_TARGET, &mr);
			  })));
	}
	EXPECT_TRUE(RVC_WAIT_FOR(resources_are_no_more_than(self->resources)));
}

/* While a child holds the file, the parent's end releases nothing; then all goes. */
TEST_F(life, child_outlives_the_attacher)
{
	int go[2], done[2];
	char c;

	ASSERT_EQ(0, pipe(go));
	ASSERT_EQ(0, pipe(done));
	EXPECT_EQ(0, RVT_IN_CHILD(({
			  int fd = rvt_attach(_metadata, &self->port);
			  struct rvc_mr mr;
			  int ret = rvc_reg(fd, rvc_alloc(RVC_PAGE), RVC_PAGE, RVC_ACCESS_TARGET,
					    &mr);

			  if (!fork()) {
				  struct rv_cache_stats_params_out stats;

				  close(go[1]);
				  if (read(go[0], &c, 1))
					  _exit(1);
				  c = rvc_cache_stats(fd, &stats) ? 255 : stats.count;
				  _exit(write(done[1], &c, 1) != 1);
			  }
			  -ret;
		  })));
	close(go[1]);
	close(done[1]);
	ASSERT_EQ(1, read(done[0], &c, 1));
	EXPECT_EQ(1, c);
	EXPECT_TRUE(RVC_WAIT_FOR(resources_are_no_more_than(self->resources)));
}

/* ---- the device goes away ------------------------------------------------ */

static void remove_device(struct __test_metadata *_metadata)
{
	ASSERT_EQ(0, system(DEL_DEVICE));
}

TEST_F(device, attach_afterwards)
{
	struct rv_attach_params params = { .in = self->in };
	int fd = rvt_open(_metadata);

	remove_device(_metadata);
	EXPECT_ERRNO(ENODEV, rvc_attach(fd, &params));
	/* The file is as it was, and a device of that name may come again. */
	ASSERT_EQ(0, system(ADD_DEVICE));
	ASSERT_EQ(0, rvc_port_find(&self->port, "rvtest"));
	params.in = self->in;
	params.in.loc_gid_index = self->port.gid_index;
	EXPECT_EQ(0, rvc_attach(fd, &params));
}

/* The whole table of what a file that lost its device answers. */
TEST_F(device, ioctls_afterwards)
{
	struct rv_conn_connect_params_in connect;
	struct rv_conn_get_stats_params_out conn_stats;
	struct rv_event_stats_params_out event_stats, no_event_stats = { 0 };
	struct rv_cache_stats_params_out stats, no_stats = { 0 };
	struct rv_conn_create_params create;
	struct rv_post_write_params post;
	struct rv_attach_params attach = { .in = self->in };
	struct rvc_conn conn;
	struct rvc_mr mr, other;
	int fd = rvt_attach_with(_metadata, &self->in);
	uint32_t peer = RVT_PEER_ABOVE(&self->port), count;

	rvc_create_init(&create.in, &self->port, peer);
	ASSERT_EQ(0, rvc_conn_create(fd, &create, &conn));
	rvc_connect_init(&connect, &self->port, peer, conn.handle);
	ASSERT_EQ(0, rvc_conn_connect(fd, &connect));
	ASSERT_EQ(0, rvc_reg(fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	remove_device(_metadata);

	EXPECT_EQ(0, rvc_capability(fd, 1, 6));
	EXPECT_ERRNO(EBUSY, rvc_attach(fd, &attach));
	EXPECT_ERRNO(ENXIO, rvc_reg(fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &other));
	EXPECT_ERRNO(ENXIO, rvc_dereg(fd, &mr));
	EXPECT_EQ(0, rvc_cache_stats(fd, &stats));
	EXPECT_EQ(0, memcmp(&stats, &no_stats, sizeof(stats)));
	EXPECT_EQ(0, rvc_event_stats(fd, &event_stats));
	EXPECT_EQ(0, memcmp(&event_stats, &no_event_stats, sizeof(event_stats)));
	rvc_create_init(&create.in, &self->port, peer);
	EXPECT_ERRNO(ENXIO, rvc_conn_create(fd, &create, &conn));
	EXPECT_ERRNO(ENXIO, rvc_conn_connect(fd, &connect));
	EXPECT_ERRNO(EINVAL, rvc_conn_connected(fd, 1));
	EXPECT_ERRNO(ENXIO, rvc_conn_count(fd, 1, 0, &count));
	EXPECT_ERRNO(ENXIO, rvc_conn_stats(fd, 0, 0, &conn_stats));
	rvc_post_init(&post.in, 1, &mr, 0x1000, 1);
	EXPECT_ERRNO(ENXIO, rvc_post(fd, &post));
}

/* A ring that was never mapped may still be mapped, once. */
TEST_F(device, mmap_afterwards)
{
	int fd = rvt_attach_with(_metadata, &self->in);
	struct rvc_ring ring;

	remove_device(_metadata);
	EXPECT_EQ(0, rvc_ring_map(fd, 64, &ring));
	EXPECT_ERRNO(EINVAL, rvc_ring_map(fd, 64, &ring));
}

TEST_F(device, mapped_ring_afterwards)
{
	int fd = rvt_attach_with(_metadata, &self->in);
	struct rvc_ring ring;

	ASSERT_EQ(0, rvc_ring_map(fd, 64, &ring));
	remove_device(_metadata);
	EXPECT_EQ(ring.header->head, ring.header->tail);
	ring.header->head = 5;
	close(fd);
	EXPECT_EQ(5, ring.header->head);
}

/* Nothing stays pinned: not what was idle, and not what was in use. */
TEST_F(device, registrations_go_with_it)
{
	int fd = rvt_attach_with(_metadata, &self->in);
	struct rvc_mr mr;

	ASSERT_EQ(0, rvc_reg(fd, self->buf, 4 * RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	ASSERT_EQ(0, rvc_reg(fd, self->buf + 8 * RVC_PAGE, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	ASSERT_EQ(0, rvc_dereg(fd, &mr));
	ASSERT_EQ(20, rvc_proc_number("/proc/self/status", "VmPin"));
	remove_device(_metadata);
	EXPECT_EQ(0, rvc_proc_number("/proc/self/status", "VmPin"));
}

/* Memory that was registered comes and goes; nobody listens to it any more. */
TEST_F(device, unmapping_afterwards)
{
	int fd = rvt_attach_with(_metadata, &self->in);
	struct rvc_mr mr;

	ASSERT_EQ(0, rvc_reg(fd, self->buf, 4 * RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	remove_device(_metadata);
	EXPECT_EQ(0, munmap(self->buf, 16 * RVC_PAGE));
	EXPECT_EQ(0, close(fd));
}

TEST_F(device, connections_in_every_early_state)
{
	struct rv_conn_connect_params_in connect;
	struct rv_conn_create_params create;
	struct rvc_conn conn;
	int fd = rvt_attach_with(_metadata, &self->in);
	/* Listening; listening with a path; connecting not begun; resolving. */
	uint32_t peer[4] = { 0x0a6300fe, 0x0a6300fd, 0x01020304, 0x0a630000 };

	for (int i = 0; i < 4; i++) {
		rvc_create_init(&create.in, &self->port, peer[i]);
		ASSERT_EQ(0, rvc_conn_create(fd, &create, &conn));
		rvc_connect_init(&connect, &self->port, peer[i], conn.handle);
		if (i % 2)
			ASSERT_EQ(0, rvc_conn_connect(fd, &connect));
	}
	remove_device(_metadata);
	EXPECT_ERRNO(EINVAL, rvc_conn_connected(fd, 1));
}

/* Files of another device go on. */
TEST_F(device, other_devices_stay)
{
	struct rvc_port port;
	struct rvc_mr mr;
	int fd;

	rvt_find_port(_metadata, &port);
	fd = rvt_attach(_metadata, &port);
	rvt_attach_with(_metadata, &self->in);
	ASSERT_EQ(0, rvc_reg(fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	remove_device(_metadata);
	EXPECT_EQ(0, rvc_dereg(fd, &mr));
	EXPECT_EQ(0, rvc_reg(fd, self->buf, 2 * RVC_PAGE, RVC_ACCESS_TARGET, &mr));
}

struct registrar {
	uint8_t *buf;
	int fd;
	int error;
};

static void *register_until_error(void *arg)
{
	struct registrar *registrar = arg;
	struct rvc_mr mr;

	for (unsigned int i = 0; !registrar->error; i++) {
		registrar->error = -rvc_reg(registrar->fd, registrar->buf + i % 8 * RVC_PAGE,
					    RVC_PAGE, RVC_ACCESS_TARGET, &mr);
		if (!registrar->error)
			registrar->error = -rvc_dereg(registrar->fd, &mr);
	}
	return NULL;
}

/* In the middle of work: the work ends with ENXIO, and the removal ends too. */
TEST_F(device, while_a_thread_registers)
{
	struct registrar registrar = { .buf = self->buf };
	struct rv_cache_stats_params_out stats;
	pthread_t thread;

	registrar.fd = rvt_attach_with(_metadata, &self->in);
	ASSERT_EQ(0, pthread_create(&thread, NULL, register_until_error, &registrar));
	ASSERT_TRUE(RVC_WAIT_FOR(!rvc_cache_stats(registrar.fd, &stats) && stats.hit > 100));
	remove_device(_metadata);
	pthread_join(thread, NULL);
	EXPECT_EQ(ENXIO, registrar.error);
}

/* A process that attaches again and again meets the end of its device. */
TEST_F(device, while_a_process_attaches)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		for (;;) {
			struct rv_attach_params params = { .in = self->in };
			int fd = rvc_open(), ret;

			if (rvc_capability(fd, 1, 6))
				_exit(250);
			ret = rvc_attach(fd, &params);
			close(fd);
			if (ret)
				_exit(-ret);
		}
	}
	/* So that it is at it. */
	usleep(50000);
	remove_device(_metadata);
	EXPECT_EQ(ENODEV, rvt_wait_child(child));
}

/* Its owner is killed in that moment. */
TEST_F(device, while_its_owner_is_killed)
{
	for (int i = 0; i < 5; i++) {
		pid_t child = fork();

		ASSERT_LE(0, child);
		if (!child)
			live_until_killed(&self->port);
		usleep(20000);
		ASSERT_EQ(0, kill(child, SIGKILL));
		remove_device(_metadata);
		EXPECT_EQ(256 + SIGKILL, rvt_wait_child(child));
		ASSERT_EQ(0, system(ADD_DEVICE));
		ASSERT_EQ(0, rvc_port_find(&self->port, "rvtest"));
	}
}

/* The interface under it goes, and takes the device along. */
TEST_F(device, network_interface_goes)
{
	int fd = rvt_attach_with(_metadata, &self->in);
	struct rvc_mr mr;

	ASSERT_EQ(0, rvc_reg(fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	ASSERT_EQ(0, system("ip link del rvtest0"));
	EXPECT_TRUE(RVC_WAIT_FOR(rvc_reg(fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr) ==
				 -ENXIO));
}

TEST_F(device, many_files)
{
	int fds[20];

	for (int i = 0; i < 20; i++) {
		struct rvc_mr mr;

		fds[i] = rvt_attach_with(_metadata, &self->in);
		ASSERT_EQ(0, rvc_reg(fds[i], self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	}
	remove_device(_metadata);
	for (int i = 0; i < 20; i++) {
		struct rvc_mr mr;

		EXPECT_ERRNO(ENXIO, rvc_reg(fds[i], self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
		EXPECT_EQ(0, close(fds[i]));
	}
}

/* ---- the module ---------------------------------------------------------- */

static void module_path(char *path, size_t size, const char *name)
{
	const char *dir = getenv("MODULES");

	snprintf(path, size, "%s/%s.ko", dir ? dir : "build/modules", name);
}

static bool module_is_known(void)
{
	char path[512];

	module_path(path, sizeof(path), "rv");
	return !access(path, R_OK);
}

static int unload(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? -errno : 0;
}

static int load(const char *name)
{
	char path[512];
	int fd, ret;

	module_path(path, sizeof(path), name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return ret;
}

static bool node_is_there(void)
{
	return !access(RV_FILE_NAME, F_OK);
}

FIXTURE(module)
{
	struct rvc_port port;
};

FIXTURE_SETUP(module)
{
	if (!module_is_known())
		SKIP(return, "no build/modules/rv.ko, and MODULES names no other directory");
	rvt_find_port(_metadata, &self->port);
}

FIXTURE_TEARDOWN_PARENT(module)
{
	/* Tests that follow need it, whatever became of this one. */
	if (module_is_known() && !node_is_there())
		load("rv");
}

TEST_F(module, open_file_holds_it)
{
	int fd = rvc_open();

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EWOULDBLOCK, unload("rv"));
	EXPECT_EQ(0, rvc_capability(fd, 1, 6));
}

TEST_F(module, attached_file_holds_it)
{
	int fd = rvt_attach(_metadata, &self->port);
	struct rvc_mr mr;

	EXPECT_EQ(-EWOULDBLOCK, unload("rv"));
	EXPECT_EQ(0, rvc_reg(fd, rvt_alloc(_metadata, RVC_PAGE), RVC_PAGE, RVC_ACCESS_TARGET, &mr));
}

TEST_F(module, mapped_ring_holds_it)
{
	int fd = rvt_attach(_metadata, &self->port);
	struct rvc_ring ring;

	ASSERT_EQ(0, rvc_ring_map(fd, 64, &ring));
	close(fd);
	EXPECT_EQ(-EWOULDBLOCK, unload("rv"));
	EXPECT_EQ(0, ring.header->tail);
}

/* rv is made of the crate of the other module. */
TEST_F(module, holds_the_module_that_it_uses)
{
	EXPECT_EQ(-EWOULDBLOCK, unload("rdma_rs"));
}

/* The job of the last file may still be winding down: unloading waits for it. */
TEST_F(module, unloads_right_after_the_last_close)
{
	void *buf = rvt_alloc(_metadata, 4 * RVC_PAGE);

	for (int i = 0; i < 5; i++) {
		whole_life(_metadata, &self->port, buf);
		ASSERT_EQ(0, unload("rv"));
		EXPECT_TRUE(RVC_WAIT_FOR(!node_is_there()));
		EXPECT_EQ(-ENOENT, rvc_open());
		ASSERT_EQ(0, load("rv"));
		ASSERT_TRUE(RVC_WAIT_FOR(node_is_there()));
		close(rvt_attach(_metadata, &self->port));
	}
}

TEST_F(module, both_modules_can_be_loaded_again)
{
	ASSERT_EQ(0, unload("rv"));
	ASSERT_EQ(0, unload("rdma_rs"));
	ASSERT_EQ(0, load("rdma_rs"));
	ASSERT_EQ(0, load("rv"));
	ASSERT_TRUE(RVC_WAIT_FOR(node_is_there()));
	close(rvt_attach(_metadata, &self->port));
}

/* Devices that come while it is loaded, and those that were there before. */
TEST_F(module, finds_devices_that_were_there_before)
{
	ASSERT_EQ(0, unload("rv"));
	ASSERT_EQ(0, load("rv"));
	ASSERT_TRUE(RVC_WAIT_FOR(node_is_there()));
	close(rvt_attach(_metadata, &self->port));
}

RVT_MAIN
