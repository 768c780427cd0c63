// SPDX-License-Identifier: GPL-2.0
/*
 * Who waits for whom. A thread is held up in the middle of an ioctl for as long as the
 * test likes: the kernel touches a page of it that userfaultfd keeps back. Meanwhile
 * others must get on.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "rv_test.h"

/* A page that nobody gets until it is given out. */
struct kept_page {
	uint8_t *addr;
	int uffd;
};

static void keep_page(struct __test_metadata *_metadata, struct kept_page *page)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range;

	page->uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	ASSERT_LE(0, page->uffd);
	ASSERT_EQ(0, ioctl(page->uffd, UFFDIO_API, &api));
	page->addr = mmap(NULL, RVC_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
	ASSERT_NE(MAP_FAILED, (void *)page->addr);
	range = (struct uffdio_register){
		.range = { .start = (uintptr_t)page->addr, .len = RVC_PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	ASSERT_EQ(0, ioctl(page->uffd, UFFDIO_REGISTER, &range));
}

/* Somebody waits for it. */
static bool is_wanted(struct kept_page *page)
{
	struct uffd_msg msg;

	return read(page->uffd, &msg, sizeof(msg)) == sizeof(msg) &&
	       msg.event == UFFD_EVENT_PAGEFAULT;
}

static void give_page(struct __test_metadata *_metadata, struct kept_page *page, const void *data)
{
	struct uffdio_copy copy = {
		.dst = (uintptr_t)page->addr, .src = (uintptr_t)data, .len = RVC_PAGE,
	};

	ASSERT_EQ(0, ioctl(page->uffd, UFFDIO_COPY, &copy));
}

/* An ioctl in a thread of its own. */
struct caller {
	pthread_t thread;
	int fd;
	unsigned long cmd;
	void *arg;
	int ret;
};

static void *call(void *arg)
{
	struct caller *caller = arg;

	caller->ret = rvc_ioctl(caller->fd, caller->cmd, caller->arg);
	return NULL;
}

FIXTURE(held)
{
	struct rvc_port port;
	struct rv_attach_params_in in;
	struct kept_page page;
	uint8_t *buf;
	struct rvc_mr mr;
	struct caller caller;
	int fd;
};

FIXTURE_SETUP(held)
{
	rvt_find_port(_metadata, &self->port);
	rvc_attach_init(&self->in, &self->port);
	self->fd = rvt_attach_with(_metadata, &self->in);
	self->buf = rvt_alloc(_metadata, 4 * RVC_PAGE);
	keep_page(_metadata, &self->page);
}

FIXTURE_TEARDOWN(held)
{
	close(self->fd);
}

/* The caller has come to where it needs the page. */
static void start_caller(struct __test_metadata *_metadata, FIXTURE_DATA(held) *self,
			 unsigned long cmd, void *arg)
{
	self->caller = (struct caller){ .fd = self->fd, .cmd = cmd, .arg = arg };
	ASSERT_EQ(0, pthread_create(&self->caller.thread, NULL, call, &self->caller));
	ASSERT_TRUE(RVC_WAIT_FOR(is_wanted(&self->page)));
}

/* Its answer, with the page given out. */
static int end_caller(struct __test_metadata *_metadata, FIXTURE_DATA(held) *self, const void *data)
{
	static const uint8_t zeros[RVC_PAGE];

	give_page(_metadata, &self->page, data ? data : zeros);
	pthread_join(self->caller.thread, NULL);
	return self->caller.ret;
}

/* A registration that waits for its memory to come. */
static struct rv_mem_params reg_of_page(FIXTURE_DATA(held) *self)
{
	return (struct rv_mem_params){ .in = {
		.addr = (uintptr_t)self->page.addr,
		.length = RVC_PAGE,
		.access = RVC_ACCESS_TARGET,
	} };
}

/*
 * While an ioctl waits for its own argument, the ring can be mapped: mmap() comes with a
 * lock held that the page's arrival may need, so nothing may be locked around the copy.
 */
TEST_F(held, ring_is_mapped_while_an_ioctl_reads_its_argument)
{
	static uint8_t data[RVC_PAGE];
	struct rvc_ring ring;

	*(struct rv_mem_params *)data = reg_of_page(self);
	((struct rv_mem_params *)data)->in.addr = (uintptr_t)self->buf;
	start_caller(_metadata, self, RV_IOCTL_REG_MEM, self->page.addr);
	EXPECT_EQ(0, rvc_ring_map(self->fd, self->in.cq_entries, &ring));
	EXPECT_EQ(0, end_caller(_metadata, self, data));
}

/* The same for one that writes its answer. */
TEST_F(held, ring_is_mapped_while_an_ioctl_writes_its_answer)
{
	struct rvc_ring ring;

	start_caller(_metadata, self, RV_IOCTL_GET_CACHE_STATS, self->page.addr);
	EXPECT_EQ(0, rvc_ring_map(self->fd, self->in.cq_entries, &ring));
	EXPECT_EQ(0, end_caller(_metadata, self, NULL));
}

/* A registration that takes long holds up nobody else's calls on the file. */
TEST_F(held, everything_else_goes_on_while_memory_is_registered)
{
	struct rv_mem_params params = reg_of_page(self);
	struct rv_cache_stats_params_out stats;
	struct rv_event_stats_params_out events;
	struct rv_conn_create_params create;
	struct rvc_conn conn;
	struct rvc_mr mr;

	start_caller(_metadata, self, RV_IOCTL_REG_MEM, &params);
	EXPECT_EQ(0, rvc_capability(self->fd, 1, 6));
	EXPECT_EQ(0, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	EXPECT_EQ(0, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	EXPECT_EQ(0, rvc_dereg(self->fd, &mr));
	EXPECT_EQ(0, rvc_cache_stats(self->fd, &stats));
	EXPECT_EQ(0, rvc_event_stats(self->fd, &events));
	rvc_create_init(&create.in, &self->port, RVT_PEER_ABOVE(&self->port));
	EXPECT_EQ(0, rvc_conn_create(self->fd, &create, &conn));
	EXPECT_EQ(0, rvc_conn_connected(self->fd, conn.handle));
	EXPECT_EQ(0, end_caller(_metadata, self, NULL));
	EXPECT_NE(0, params.out.mr_handle);
}

/* POST above all: it gets its answer, which here is that nothing is connected. */
TEST_F(held, post_goes_on_while_memory_is_registered)
{
	struct rv_mem_params params = reg_of_page(self);
	struct rv_conn_create_params create;
	struct rv_post_write_params post;
	struct rvc_conn conn;
	struct rvc_mr mr;

	rvc_create_init(&create.in, &self->port, RVT_PEER_ABOVE(&self->port));
	ASSERT_EQ(0, rvc_conn_create(self->fd, &create, &conn));
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	start_caller(_metadata, self, RV_IOCTL_REG_MEM, &params);
	for (int i = 0; i < 100; i++) {
		rvc_post_init(&post.in, conn.handle, &mr, 0x1000, 1);
		EXPECT_ERRNO(EINVAL, rvc_post(self->fd, &post));
	}
	EXPECT_EQ(0, end_caller(_metadata, self, NULL));
}

/* Another file of the same job and the same process is not concerned at all. */
TEST_F(held, another_file_goes_on)
{
	struct rv_mem_params params = reg_of_page(self);
	struct rvc_mr mr;
	int fd;

	start_caller(_metadata, self, RV_IOCTL_REG_MEM, &params);
	fd = rvt_attach_with(_metadata, &self->in);
	EXPECT_EQ(0, rvc_reg(fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	EXPECT_EQ(0, close(fd));
	EXPECT_EQ(0, end_caller(_metadata, self, NULL));
}

/* A process can be killed while it waits there, and leaves nothing. */
TEST_F(held, killed_while_memory_is_registered)
{
	int ready[2];
	pid_t child;
	char c;

	ASSERT_EQ(0, pipe(ready));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		struct rv_mem_params params;
		struct kept_page page;

		close(self->fd);
		self->fd = rvt_attach(_metadata, &self->port);
		keep_page(_metadata, &page);
		self->page = page;
		params = reg_of_page(self);
		start_caller(_metadata, self, RV_IOCTL_REG_MEM, &params);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	ASSERT_EQ(1, read(ready[0], &c, 1));
	ASSERT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(256 + SIGKILL, rvt_wait_child(child));
	close(self->fd);
	EXPECT_TRUE(RVC_WAIT_FOR(!system("! rdma res show mr | grep -q mrn")));
}

RVT_MAIN
