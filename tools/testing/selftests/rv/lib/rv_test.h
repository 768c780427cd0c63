/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What all rv selftests share on top of the kernel's harness: its header with a
 * longer limit, and the steps that most fixtures begin with.
 */
#ifndef RV_TEST_H
#define RV_TEST_H

#include "kselftest_harness.h"

#include "rv_client.h"

/* The harness kills a test after this many seconds. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 240

/* A call that must fail with an errno. */
#define EXPECT_ERRNO(error, call) EXPECT_EQ(-(error), call)
#define ASSERT_ERRNO(error, call) ASSERT_EQ(-(error), call)

/*
 * An address above our own, so that this side would listen for it. Nobody needs
 * to be there, since a listener sends nothing.
 */
#define RVT_PEER_ABOVE(port) ((port)->addr | 0xfe)

/*
 * An address below our own, so that this side connects to it. Nobody has it, and
 * the kernel goes on looking for the way there for a minute.
 */
#define RVT_PEER_BELOW 0x01020304	/* 1.2.3.4 */

/* An address that no system call can read or write. */
#define RVT_BAD_POINTER ((void *)8)

/* A file that has exchanged revisions. */
static inline int rvt_open(struct __test_metadata *_metadata)
{
	int fd = rvc_open();

	ASSERT_LE(0, fd)
		TH_LOG("cannot open %s: %s", RV_FILE_NAME, strerror(-fd));
	ASSERT_EQ(0, rvc_capability(fd, RV_ABI_VER_MAJOR, RV_ABI_VER_MINOR));
	return fd;
}

static inline void rvt_find_port(struct __test_metadata *_metadata, struct rvc_port *port)
{
	ASSERT_EQ(0, rvc_port_find(port, rvc_dev_name()))
		TH_LOG("%s has no RoCE v2 GID with an IPv4 address", rvc_dev_name());
}

/* A file attached with given parameters. */
static inline int rvt_attach_with(struct __test_metadata *_metadata,
				  const struct rv_attach_params_in *in)
{
	struct rv_attach_params params = { .in = *in };
	int fd = rvt_open(_metadata);

	ASSERT_EQ(0, rvc_attach(fd, &params));
	return fd;
}

/* A file attached as rvc_attach_init() has it, in a job of its own. */
static inline int rvt_attach(struct __test_metadata *_metadata, const struct rvc_port *port)
{
	struct rv_attach_params_in in;

	rvc_attach_init(&in, port);
	return rvt_attach_with(_metadata, &in);
}

static inline void *rvt_alloc(struct __test_metadata *_metadata, size_t length)
{
	void *p = rvc_alloc(length);

	ASSERT_NE(NULL, p);
	return p;
}

/*
 * A copy that ends where readable memory ends: a call that reads or writes more
 * than the size of the structure fails with EFAULT.
 */
static inline void *rvt_at_page_end(struct __test_metadata *_metadata, const void *data,
				    size_t size)
{
	uint8_t *pages = mmap(NULL, 2 * RVC_PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, (void *)pages);
	ASSERT_EQ(0, mprotect(pages + RVC_PAGE, RVC_PAGE, PROT_NONE));
	memcpy(pages + RVC_PAGE - size, data, size);
	return pages + RVC_PAGE - size;
}

/* The same, and the kernel can read it but not write the answer. */
static inline void *rvt_read_only(struct __test_metadata *_metadata, const void *data, size_t size)
{
	uint8_t *p = rvt_at_page_end(_metadata, data, size);

	ASSERT_EQ(0, mprotect(p + size - RVC_PAGE, RVC_PAGE, PROT_READ));
	return p;
}

/*
 * Runs code in a forked child and gives its exit status, or 256 + the signal that
 * ended it.
 */
static inline int rvt_wait_child(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

#define RVT_IN_CHILD(expression)                                               \
	({                                                                     \
		pid_t pid_ = fork();                                           \
									       \
		if (!pid_)                                                     \
			_exit(expression);                                     \
		pid_ < 0 ? -errno : rvt_wait_child(pid_);                      \
	})

/* Without the module or the device there is nothing to test. */
static inline void rvt_require(void)
{
	struct rvc_port port;

	if (access(RV_FILE_NAME, F_OK)) {
		ksft_print_header();
		ksft_exit_skip("no %s\n", RV_FILE_NAME);
	}
	if (rvc_port_find(&port, rvc_dev_name())) {
		ksft_print_header();
		ksft_exit_fail_msg("%s has no RoCE v2 GID with an IPv4 address\n", rvc_dev_name());
	}
	if (rvc_registration_of_env()) {
		ksft_print_header();
		ksft_exit_fail_msg("RV_REGISTRATION cannot be set\n");
	}
}

#define RVT_MAIN                              \
	int main(int argc, char **argv)       \
	{                                     \
		rvt_require();                \
		return test_harness_run(argc, argv); \
	}

#endif
