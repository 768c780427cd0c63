// SPDX-License-Identifier: GPL-2.0
/*
 * What is common to all ioctls of /dev/rv: numbers that it does not know, bad
 * pointers, sizes, order of calls; and the exchange of revisions.
 */
#include "rv_i386.h"
#include "rv_test.h"

/* ---- numbers that are not there ------------------------------------------ */

/*
 * Applications probe with ioctls that a module may not have, and look for EINVAL.
 */
FIXTURE(unknown)
{
	struct rvc_port port;
	uint8_t buf[512];
};

FIXTURE_VARIANT(unknown)
{
	unsigned long cmd;
};

#define UNKNOWN(name, number) \
	FIXTURE_VARIANT_ADD(unknown, name) { .cmd = (number) }

UNKNOWN(never_used_f2, _IOW(RDMA_IOCTL_MAGIC, 0xf2, __u64));
UNKNOWN(no_size, _IO(RDMA_IOCTL_MAGIC, 0xf1));
UNKNOWN(attach_with_another_size, _IOC(_IOC_READ | _IOC_WRITE, RDMA_IOCTL_MAGIC, 0xf1, 168));
UNKNOWN(attach_with_another_direction, _IOC(_IOC_WRITE, RDMA_IOCTL_MAGIC, 0xf1, 160));
UNKNOWN(reg_mem_with_another_size, _IOC(_IOC_READ | _IOC_WRITE, RDMA_IOCTL_MAGIC, 0xf3, 72));
UNKNOWN(dereg_with_another_direction, _IOC(_IOC_READ | _IOC_WRITE, RDMA_IOCTL_MAGIC, 0xf4, 32));
UNKNOWN(capability_write_only, _IOC(_IOC_WRITE, RDMA_IOCTL_MAGIC, 0xfc, 64));
UNKNOWN(gpu_get_cache_stats, 0x81b01bef);
UNKNOWN(gpu_pin_mmap, 0xc0201bf5);
UNKNOWN(gpu_pin_mmap_r0, 0xc0181bf5);
UNKNOWN(gpu_munmap_unpin, 0x40181bee);
UNKNOWN(verbs_ioctl, 0xc0181b01);
UNKNOWN(another_magic, _IOC(_IOC_READ | _IOC_WRITE, 0x1c, 0xfc, 64));
UNKNOWN(tcgets, 0x5401);
#ifdef __x86_64__
UNKNOWN(reg_mem_r1_of_i386, 0xc0281bf3);
#else
UNKNOWN(reg_mem_of_x86_64, 0xc0401bf3);
#endif

FIXTURE_SETUP(unknown)
{
	rvt_find_port(_metadata, &self->port);
}

FIXTURE_TEARDOWN(unknown)
{
}

TEST_F(unknown, einval_before_attach)
{
	EXPECT_ERRNO(EINVAL, rvc_ioctl(rvt_open(_metadata), variant->cmd, self->buf));
}

TEST_F(unknown, einval_when_attached)
{
	EXPECT_ERRNO(EINVAL,
		     rvc_ioctl(rvt_attach(_metadata, &self->port), variant->cmd, self->buf));
}

/* ---- pointers, sizes, order ---------------------------------------------- */

/*
 * Every ioctl with a pointer that cannot be read comes back with EFAULT, whatever
 * the state of the file: copying in is the first step. And none reads or writes
 * a byte more than its size.
 */
FIXTURE(known)
{
	struct rvc_port port;
};

FIXTURE_VARIANT(known)
{
	unsigned long cmd;
	/* What zeros give before ATTACH, and after it. */
	int before;
	int after;
};

#define KNOWN(name, before_, after_)                                       \
	FIXTURE_VARIANT_ADD(known, name)                                   \
	{                                                                  \
		.cmd = RV_IOCTL_##name, .before = (before_), .after = (after_) \
	}

KNOWN(CAPABILITY, -EINVAL, -EINVAL);
KNOWN(QUERY_R2, 0, 0);
KNOWN(ATTACH, -EINVAL, -EINVAL);
KNOWN(ATTACH_R5, -EINVAL, -EINVAL);
/* On the PD 0 of the uverbs file that standard input is not. */
KNOWN(REG_MEM, -EINVAL, -EFAULT);
KNOWN(REG_MEM_R4, -EINVAL, -EFAULT);
KNOWN(REG_MEM_R1, -EINVAL, -EFAULT);
KNOWN(DEREG_MEM, -EINVAL, -EINVAL);
KNOWN(EVICT, -EINVAL, -EINVAL);
KNOWN(GET_CACHE_STATS, 0, 0);
KNOWN(CONN_CREATE, -EINVAL, -EINVAL);
KNOWN(CONN_CONNECT, -EINVAL, -EINVAL);
KNOWN(CONN_CONNECTED, -EINVAL, -EINVAL);
KNOWN(POST_RDMA_WR_IMMED, -EINVAL, -EINVAL);
KNOWN(CONN_GET_STATS, -EINVAL, 0);
KNOWN(GET_EVENT_STATS, 0, 0);
KNOWN(CONN_GET_CONN_COUNT, -EINVAL, -EINVAL);

FIXTURE_SETUP(known)
{
	rvt_find_port(_metadata, &self->port);
}

FIXTURE_TEARDOWN(known)
{
}

TEST_F(known, bad_pointer_before_attach)
{
	EXPECT_ERRNO(EFAULT, rvc_ioctl(rvt_open(_metadata), variant->cmd, RVT_BAD_POINTER));
}

TEST_F(known, bad_pointer_when_attached)
{
	EXPECT_ERRNO(EFAULT, rvc_ioctl(rvt_attach(_metadata, &self->port), variant->cmd,
				       RVT_BAD_POINTER));
}

TEST_F(known, null_pointer)
{
	EXPECT_ERRNO(EFAULT, rvc_ioctl(rvt_attach(_metadata, &self->port), variant->cmd, NULL));
}

TEST_F(known, zeros_before_attach)
{
	static const uint8_t zeros[512];
	void *arg = rvt_at_page_end(_metadata, zeros, _IOC_SIZE(variant->cmd));

	EXPECT_EQ(variant->before, rvc_ioctl(rvt_open(_metadata), variant->cmd, arg));
}

TEST_F(known, zeros_when_attached)
{
	static const uint8_t zeros[512];
	void *arg = rvt_at_page_end(_metadata, zeros, _IOC_SIZE(variant->cmd));

	EXPECT_EQ(variant->after,
		  rvc_ioctl(rvt_attach(_metadata, &self->port), variant->cmd, arg));
}

/* ATTACH alone has a test before it copies in. */
TEST(attach_without_revision_does_not_look_at_its_data)
{
	int fd = rvc_open();

	ASSERT_LE(0, fd);
	EXPECT_ERRNO(EINVAL, rvc_ioctl(fd, RV_IOCTL_ATTACH, RVT_BAD_POINTER));
	EXPECT_ERRNO(EINVAL, rvc_ioctl(fd, RV_IOCTL_ATTACH_R5, RVT_BAD_POINTER));
}

/* ---- 32-bit callers ------------------------------------------------------ */

/*
 * Most tests of 32-bit callers are those of 64-bit callers, built once more: see
 * the Makefile. Here is what only a program can show that is both.
 */
#ifdef __x86_64__

/* All but REG_MEM is the same for both: the same number, the same outcome. */
TEST_F(known, from_i386_entry)
{
	/* The longest REG_MEM of i386 has the size of our second. */
	bool is_unknown = variant->cmd == RV_IOCTL_REG_MEM;
	int expected = is_unknown ? -EINVAL : variant->after;
	int fd = rvt_attach(_metadata, &self->port);
	uint8_t *low = mmap(NULL, 2 * RVC_PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	ASSERT_NE(MAP_FAILED, (void *)low);
	if (RVT_IN_CHILD(getpid_of_i386() == getpid() ? 0 : 1))
		SKIP(return, "this kernel has no i386 system calls");
	EXPECT_EQ(expected, ioctl_of_i386(fd, variant->cmd, low));
	/* Not a byte more than the number says. */
	ASSERT_EQ(0, mprotect(low + RVC_PAGE, RVC_PAGE, PROT_NONE));
	low += RVC_PAGE - _IOC_SIZE(variant->cmd);
	memset(low, 0, _IOC_SIZE(variant->cmd));
	EXPECT_EQ(expected, ioctl_of_i386(fd, variant->cmd, low));
	/* Copying in comes first, unless the number is none. */
	EXPECT_EQ(is_unknown ? -EINVAL : -EFAULT,
		  ioctl_of_i386(fd, variant->cmd, RVT_BAD_POINTER));
}

/* REG_MEM of i386 has the number of the 64-bit REG_MEM_R4. */
TEST_F(unknown, reg_mem_of_i386)
{
	static const struct {
		unsigned int cmd;
		unsigned int size;
	} forms[] = { { 0xc0381bf3, 56 }, { 0xc0301bf3, 48 }, { 0xc0281bf3, 40 } };
	int fd = rvt_attach(_metadata, &self->port);
	struct rv_cache_stats_params_out stats;
	uint8_t *low = mmap(NULL, 2 * RVC_PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	uint8_t *buf = rvt_alloc(_metadata, RVC_PAGE);

	ASSERT_NE(MAP_FAILED, (void *)low);
	if (RVT_IN_CHILD(getpid_of_i386() == getpid() ? 0 : 1))
		SKIP(return, "this kernel has no i386 system calls");
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct rv_mem_params_in in = {
			.addr = (uintptr_t)buf,
			.length = RVC_PAGE,
			.access = RVC_ACCESS_TARGET,
		};
		struct rv_mem_params_out out;

		memset(low, 0xff, RVC_PAGE);
		memcpy(low, &in, offsetof(struct rv_mem_params_in, ulen));
		ASSERT_EQ(0, ioctl_of_i386(fd, forms[i].cmd, low));
		memcpy(&out, low, sizeof(out));
		EXPECT_NE(0, out.mr_handle);
		EXPECT_NE(0, out.iova);
	}
	ASSERT_EQ(0, rvc_cache_stats(fd, &stats));
	EXPECT_EQ(1, stats.miss);
	EXPECT_EQ(2, stats.hit);
}

#endif

/* ---- the file itself ----------------------------------------------------- */

TEST(the_file_cannot_be_read_or_written)
{
	int fd = rvt_open(_metadata);
	char c = 0;

	EXPECT_EQ(-1, read(fd, &c, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(fd, &c, 1));
	EXPECT_EQ(EINVAL, errno);
}

/* ---- CAPABILITY and QUERY_R2 --------------------------------------------- */

FIXTURE(revision)
{
	struct rvc_port port;
	int fd;
};

FIXTURE_VARIANT(revision)
{
	uint16_t major;
	uint16_t minor;
	int ret;
};

#define REVISION(major_, minor_, ret_)                                     \
	FIXTURE_VARIANT_ADD(revision, major_##_##minor_)                   \
	{                                                                  \
		.major = major_, .minor = minor_, .ret = (ret_)            \
	}

/* Before 1.3 there was only QUERY. Revisions compare as pairs. */
REVISION(0, 0, -EINVAL);
REVISION(0, 9, -EINVAL);
REVISION(0, 65535, -EINVAL);
REVISION(1, 0, -EINVAL);
REVISION(1, 1, -EINVAL);
REVISION(1, 2, -EINVAL);
REVISION(1, 3, 0);
REVISION(1, 4, 0);
REVISION(1, 5, 0);
REVISION(1, 6, 0);
REVISION(1, 7, 0);
REVISION(1, 10, 0);
REVISION(2, 0, 0);
REVISION(2, 1, 0);
REVISION(65535, 65535, 0);

FIXTURE_SETUP(revision)
{
	rvt_find_port(_metadata, &self->port);
	self->fd = rvc_open();
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(revision)
{
	close(self->fd);
}

TEST_F(revision, accepted_or_refused)
{
	EXPECT_EQ(variant->ret, rvc_capability(self->fd, variant->major, variant->minor));
}

/* What was refused was not stored: ATTACH still lacks a revision. */
TEST_F(revision, decides_about_attach)
{
	struct rv_attach_params params;

	rvc_capability(self->fd, variant->major, variant->minor);
	rvc_attach_init(&params.in, &self->port);
	EXPECT_EQ(variant->ret, rvc_attach(self->fd, &params));
}

/* What was refused did not replace what was there. */
TEST_F(revision, after_a_good_one)
{
	struct rv_attach_params params;

	ASSERT_EQ(0, rvc_capability(self->fd, 1, 6));
	EXPECT_EQ(variant->ret, rvc_capability(self->fd, variant->major, variant->minor));
	rvc_attach_init(&params.in, &self->port);
	EXPECT_EQ(0, rvc_attach(self->fd, &params));
}

/* max_fmr_size came with 1.4; an application that does not know it gets 0. */
TEST_F(revision, decides_about_max_fmr_size)
{
	bool knows = variant->major > 1 || variant->minor > 3;
	struct rv_attach_params params;

	if (variant->ret)
		return;
	ASSERT_EQ(0, rvc_capability(self->fd, variant->major, variant->minor));
	rvc_attach_init(&params.in, &self->port);
	/* The name lies where max_fmr_size will be: it must be overwritten. */
	memset(params.in.dev_name + 16, 'x', 16);
	ASSERT_EQ(0, rvc_attach(self->fd, &params));
	EXPECT_EQ(knows, params.out.max_fmr_size != 0);
}

/*
 * An application of an older revision is served to the end: it attaches and registers
 * with the forms that its header has.
 */
TEST_F(revision, is_served)
{
	bool old_attach = variant->major == 1 && variant->minor <= 5;
	bool old_reg_mem = variant->major == 1 && variant->minor <= 4;
	unsigned int cmd = old_reg_mem ? RV_IOCTL_REG_MEM_R4 : RV_IOCTL_REG_MEM;
	uint8_t *buf = rvt_alloc(_metadata, RVC_PAGE);
	struct rv_attach_params params;
	struct rv_attach_params_r5 r5;
	struct rv_mem_params mem = { .in = {
		.addr = (uintptr_t)buf,
		.length = RVC_PAGE,
		.access = RVC_ACCESS_TARGET,
	} };
	struct rv_dereg_params_in dereg = {
		.addr = (uintptr_t)buf,
		.length = RVC_PAGE,
		.access = RVC_ACCESS_TARGET,
	};

	if (variant->ret)
		return;
	ASSERT_EQ(0, rvc_capability(self->fd, variant->major, variant->minor));
	rvc_attach_init(&params.in, &self->port);
	rvc_attach_to_r5(&r5, &params);
	ASSERT_EQ(0, old_attach ? rvc_attach_r5(self->fd, &r5) : rvc_attach(self->fd, &params));
	ASSERT_EQ(0, rvc_ioctl(self->fd, cmd, &mem));
	EXPECT_NE(0, mem.out.mr_handle);
	EXPECT_NE(0, mem.out.rkey);
	dereg.mr_handle = mem.out.mr_handle;
	EXPECT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_DEREG_MEM, &dereg));
}

FIXTURE(capability)
{
	int fd;
	struct rv_capability_params params;
};

FIXTURE_SETUP(capability)
{
	self->fd = rvc_open();
	ASSERT_LE(0, self->fd);
	self->params = (struct rv_capability_params){ .major_rev = 1, .minor_rev = 6 };
}

FIXTURE_TEARDOWN(capability)
{
	close(self->fd);
}

TEST_F(capability, answers_1_6)
{
	self->params.minor_rev = 3;
	ASSERT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_CAPABILITY, &self->params));
	EXPECT_EQ(1, self->params.major_rev);
	EXPECT_EQ(6, self->params.minor_rev);
}

TEST_F(capability, answers_1_6_to_a_newer_application)
{
	self->params.major_rev = 7;
	ASSERT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_CAPABILITY, &self->params));
	EXPECT_EQ(1, self->params.major_rev);
	EXPECT_EQ(6, self->params.minor_rev);
}

/* What there is, and never a GPU bit. */
TEST_F(capability, offers_only_what_is_there)
{
	self->params.capability = ~0ULL;
	ASSERT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_CAPABILITY, &self->params));
	EXPECT_EQ(RV_CAP_USER_MR | RV_CAP_EVICT, self->params.capability);
}

TEST_F(capability, accepts_gpu_bits)
{
	self->params.capability = 7ULL << 61 | RV_CAP_EVICT;
	EXPECT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_CAPABILITY, &self->params));
}

/* GPU builds keep a second revision there: it comes back as it was given. */
TEST_F(capability, echoes_what_it_does_not_know)
{
	self->params.pad = 0x00050001;
	for (int i = 0; i < 6; i++)
		self->params.resv2[i] = 0x0123456789abcdef + i;
	ASSERT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_CAPABILITY, &self->params));
	EXPECT_EQ(0x00050001, self->params.pad);
	for (int i = 0; i < 6; i++)
		EXPECT_EQ(0x0123456789abcdef + i, self->params.resv2[i]);
}

TEST_F(capability, can_be_asked_again)
{
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(0, rvc_capability(self->fd, 1, 6));
}

/* The answer cannot be written, but the revision has been stored. */
TEST_F(capability, unwritable_answer)
{
	struct rv_attach_params params;
	struct rvc_port port;

	EXPECT_ERRNO(EFAULT,
		     rvc_ioctl(self->fd, RV_IOCTL_CAPABILITY,
			       rvt_read_only(_metadata, &self->params, sizeof(self->params))));
	rvt_find_port(_metadata, &port);
	rvc_attach_init(&params.in, &port);
	EXPECT_EQ(0, rvc_attach(self->fd, &params));
}

TEST_F(capability, query_answers_1_6_and_zeros)
{
	struct rv_query_params_out out;

	memset(&out, 0xaa, sizeof(out));
	ASSERT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_QUERY_R2, &out));
	EXPECT_EQ(1, out.major_rev);
	EXPECT_EQ(6, out.minor_rev);
	EXPECT_EQ(0, out.pad);
	EXPECT_EQ(RV_CAP_USER_MR | RV_CAP_EVICT, out.capability);
	for (int i = 0; i < 6; i++)
		EXPECT_EQ(0, out.resv2[i]);
}

/* QUERY is the call of applications up to 1.2: they know no max_fmr_size. */
TEST_F(capability, query_stores_1_2)
{
	struct rv_attach_params params;
	struct rv_query_params_out out;
	struct rvc_port port;

	ASSERT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_QUERY_R2, &out));
	rvt_find_port(_metadata, &port);
	rvc_attach_init(&params.in, &port);
	ASSERT_EQ(0, rvc_attach(self->fd, &params));
	EXPECT_EQ(0, params.out.max_fmr_size);
}

TEST_F(capability, the_last_revision_counts)
{
	struct rv_attach_params params;
	struct rv_query_params_out out;
	struct rvc_port port;

	ASSERT_EQ(0, rvc_capability(self->fd, 1, 6));
	ASSERT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_QUERY_R2, &out));
	rvt_find_port(_metadata, &port);
	rvc_attach_init(&params.in, &port);
	ASSERT_EQ(0, rvc_attach(self->fd, &params));
	EXPECT_EQ(0, params.out.max_fmr_size);
}

TEST_F(capability, works_when_attached)
{
	struct rvc_port port;
	int fd;

	rvt_find_port(_metadata, &port);
	fd = rvt_attach(_metadata, &port);
	EXPECT_EQ(0, rvc_capability(fd, 1, 6));
	EXPECT_EQ(0, rvc_ioctl(fd, RV_IOCTL_QUERY_R2, &self->params));
	EXPECT_ERRNO(EINVAL, rvc_capability(fd, 1, 2));
}

RVT_MAIN
