// SPDX-License-Identifier: GPL-2.0
/*
 * Parameters of the module: each is in force from the load on, for applications that
 * say nothing else. Those of the pool of regions are tested in rv_pool.
 */
#include "rv_reload.h"
#include "rv_test.h"

FIXTURE(param)
{
	struct rvc_port port;
	struct rv_attach_params params;
	uint8_t *buf;
	int fd;
};

FIXTURE_SETUP(param)
{
	rvt_find_port(_metadata, &self->port);
	rvc_attach_init(&self->params.in, &self->port);
	self->buf = rvt_alloc(_metadata, RVC_PAGE);
	self->fd = -1;
}

FIXTURE_TEARDOWN(param)
{
	close(self->fd);
}

/* Loads the module and opens a file of it. */
static void load(struct __test_metadata *_metadata, FIXTURE_DATA(param) *self,
		 const char *parameters)
{
	ASSERT_EQ(0, rvt_reload(parameters));
	self->fd = rvt_open(_metadata);
}

/* ---- enable_user_mr ------------------------------------------------------ */

TEST_F(param, no_user_mr_is_no_capability)
{
	struct rv_capability_params capability = { .major_rev = 1, .minor_rev = 6 };
	struct rv_query_params_out query;

	load(_metadata, self, "enable_user_mr=0");
	ASSERT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_CAPABILITY, &capability));
	EXPECT_EQ(RV_CAP_EVICT, capability.capability);
	ASSERT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_QUERY_R2, &query));
	EXPECT_EQ(RV_CAP_EVICT, query.capability);
}

TEST_F(param, no_user_mr_is_no_user_mode)
{
	load(_metadata, self, "enable_user_mr=0");
	self->params.in.rdma_mode = RV_RDMA_MODE_USER;
	EXPECT_ERRNO(EINVAL, rvc_attach(self->fd, &self->params));
	self->params.in.rdma_mode = RV_RDMA_MODE_USER | RV_RDMA_MODE_UPSIZE_CPU;
	EXPECT_ERRNO(EINVAL, rvc_attach(self->fd, &self->params));
	/* The file is as it was. */
	rvc_attach_init(&self->params.in, &self->port);
	EXPECT_EQ(0, rvc_attach(self->fd, &self->params));
}

/* A bad descriptor is EFAULT where applications' protection domains are allowed. */
TEST_F(param, no_user_mr_leaves_kernel_mode)
{
	uint32_t access = RVC_ACCESS_TARGET & ~IBV_ACCESS_KERNEL;
	struct rv_mem_params mem = { .in = {
		.cmd_fd_int = -1,
		.addr = (uintptr_t)self->buf,
		.length = RVC_PAGE,
		.access = access,
	} };
	struct rvc_mr mr;

	load(_metadata, self, "enable_user_mr=1");
	ASSERT_EQ(0, rvc_attach(self->fd, &self->params));
	EXPECT_ERRNO(EFAULT, rvc_ioctl(self->fd, RV_IOCTL_REG_MEM, &mem));
	close(self->fd);
	load(_metadata, self, "enable_user_mr=0");
	rvc_attach_init(&self->params.in, &self->port);
	ASSERT_EQ(0, rvc_attach(self->fd, &self->params));
	EXPECT_ERRNO(EINVAL, rvc_ioctl(self->fd, RV_IOCTL_REG_MEM, &mem));
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	EXPECT_EQ(0, rvc_dereg(self->fd, &mr));
}

/* ---- what applications leave open ---------------------------------------- */

#define DEBUGFS "/sys/kernel/debug"

/* Whether the one job has all these words in its line of debugfs. */
static bool job_has(const char *words)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "mountpoint -q " DEBUGFS " || mount -t debugfs debugfs " DEBUGFS ";"
		 " for word in %s; do grep -qw -- \"$word\" " DEBUGFS "/rv/jobs ||"
		 " { echo \"no $word in:\"; cat " DEBUGFS "/rv/jobs; exit 1; }; done >&2", words);
	return system(command) == 0;
}

#define PARAMETERS "num_conn=1 q_depth=77 mr_cache_size=9 mr_cache_size_gpu=11 service_id=0x4711"

TEST_F(param, defaults_are_those_of_the_load)
{
	struct rv_cache_stats_params_out stats;

	load(_metadata, self, PARAMETERS);
	self->params.in.num_conn = 0;
	self->params.in.q_depth = 0;
	self->params.in.mr_cache_size = 0;
	self->params.in.service_id = 0;
	ASSERT_EQ(0, rvc_attach(self->fd, &self->params));
	EXPECT_EQ(77, self->params.out.q_depth);
	EXPECT_EQ(9, self->params.out.mr_cache_size);
	ASSERT_EQ(0, rvc_cache_stats(self->fd, &stats));
	EXPECT_EQ(9, stats.limit_cache_size);
	EXPECT_TRUE(job_has("num_conn=1 q_depth=77 service_id=0x4711"));
}

TEST_F(param, upsize_has_a_default_of_its_own)
{
	load(_metadata, self, PARAMETERS);
	self->params.in.rdma_mode |= RV_RDMA_MODE_UPSIZE_CPU;
	self->params.in.mr_cache_size = 0;
	ASSERT_EQ(0, rvc_attach(self->fd, &self->params));
	EXPECT_EQ(11, self->params.out.mr_cache_size);
}

TEST_F(param, applications_may_say_otherwise)
{
	load(_metadata, self, PARAMETERS);
	self->params.in.num_conn = 3;
	self->params.in.q_depth = 5;
	self->params.in.mr_cache_size = 7;
	self->params.in.service_id = 0x4712;
	ASSERT_EQ(0, rvc_attach(self->fd, &self->params));
	EXPECT_EQ(5, self->params.out.q_depth);
	EXPECT_EQ(7, self->params.out.mr_cache_size);
	EXPECT_TRUE(job_has("num_conn=3 q_depth=5 service_id=0x4712"));
}

RVT_MAIN
