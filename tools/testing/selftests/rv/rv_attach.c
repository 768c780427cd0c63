// SPDX-License-Identifier: GPL-2.0
/*
 * ATTACH and ATTACH_R5: every check that can fail, with its errno; what comes
 * back; who shares a job with whom.
 */
#include <pthread.h>

#include "rv_test.h"

/* ---- refused ------------------------------------------------------------- */

/*
 * One row for each check. A row spoils a request that is valid otherwise, and the
 * test shows that it is: without the spoiling, the same file attaches at once.
 */
FIXTURE(refused)
{
	struct rvc_port port;
	struct rv_attach_params good;
	struct rv_attach_params params;
	struct rv_attach_params_r5 r5;
	int fd;
};

FIXTURE_VARIANT(refused)
{
	void (*spoil)(struct rv_attach_params_in *in);
	int error;
};

#define REFUSED(name, error_, statement)                                   \
	static void spoil_##name(struct rv_attach_params_in *in)           \
	{                                                                  \
		statement;                                                 \
	}                                                                  \
	FIXTURE_VARIANT_ADD(refused, name)                                 \
	{                                                                  \
		.spoil = spoil_##name, .error = (error_)                   \
	}

REFUSED(dev_name_empty, EINVAL, in->dev_name[0] = '\0');
REFUSED(dev_name_without_nul, EINVAL, memset(in->dev_name, 'r', sizeof(in->dev_name)));
REFUSED(mode_2, EINVAL, in->rdma_mode = 2);
REFUSED(mode_31, EINVAL, in->rdma_mode = 31);
REFUSED(mode_2_upsize_cpu, EINVAL, in->rdma_mode = 2 | RV_RDMA_MODE_UPSIZE_CPU);
REFUSED(mode_flag_upsize_gpu, EINVAL, in->rdma_mode |= 0x40);
REFUSED(mode_flag_gpu, EINVAL, in->rdma_mode |= 0x80);
REFUSED(port_num_0, EINVAL, in->port_num = 0);
REFUSED(num_conn_17, EINVAL, in->num_conn = 17);
REFUSED(num_conn_255, EINVAL, in->num_conn = 255);
REFUSED(index_bits_13, EINVAL, in->index_bits = 13);
REFUSED(index_bits_255, EINVAL, in->index_bits = 255);
REFUSED(job_key_len_17, EINVAL, in->job_key_len = 17);
REFUSED(job_key_len_255, EINVAL, in->job_key_len = 255);
REFUSED(cq_entries_10001, EINVAL, in->cq_entries = 10001);
REFUSED(cq_entries_max, EINVAL, in->cq_entries = ~0U);
REFUSED(q_depth_above_65536, EINVAL, in->q_depth = 65537);
REFUSED(mr_cache_size_above_1_tib, EINVAL, in->mr_cache_size = 1048577);
REFUSED(hb_interval_as_long_as_reconnect_timeout, EINVAL,
	in->reconnect_timeout = 1; in->hb_interval = 1000);
REFUSED(hb_interval_longer_than_reconnect_timeout, EINVAL,
	in->reconnect_timeout = 30; in->hb_interval = 30001);
REFUSED(dev_name_unknown, ENODEV, strcpy(in->dev_name, "no_such_device"));
REFUSED(dev_name_63_characters, ENODEV,
	memset(in->dev_name, 'r', 63); in->dev_name[63] = '\0');
REFUSED(dev_name_is_a_prefix, ENODEV, in->dev_name[strlen(in->dev_name) - 1] = '\0');
REFUSED(port_num_2, EINVAL, in->port_num = 2);
REFUSED(port_num_255, EINVAL, in->port_num = 255);
REFUSED(loc_gid_another, ENOENT, in->loc_gid[15] ^= 0x80);
REFUSED(loc_gid_zero, ENOENT, memset(in->loc_gid, 0, sizeof(in->loc_gid)));
REFUSED(loc_gid_index_unused, ENOENT, in->loc_gid_index = 255);
REFUSED(loc_gid_index_of_another_gid, ENOENT, in->loc_gid_index ^= 1);
REFUSED(loc_gid_index_outside_the_table, ENOENT, in->loc_gid_index = 65535);

FIXTURE_SETUP(refused)
{
	rvt_find_port(_metadata, &self->port);
	rvc_attach_init(&self->good.in, &self->port);
	self->params = self->good;
	variant->spoil(&self->params.in);
	rvc_attach_to_r5(&self->r5, &self->params);
	self->fd = rvt_open(_metadata);
}

FIXTURE_TEARDOWN(refused)
{
	close(self->fd);
}

TEST_F(refused, attach)
{
	EXPECT_ERRNO(variant->error, rvc_attach(self->fd, &self->params));
	EXPECT_EQ(0, rvc_attach(self->fd, &self->good));
}

TEST_F(refused, attach_r5)
{
	EXPECT_ERRNO(variant->error, rvc_attach_r5(self->fd, &self->r5));
	rvc_attach_to_r5(&self->r5, &self->good);
	EXPECT_EQ(0, rvc_attach_r5(self->fd, &self->r5));
}

/* What was refused left nothing behind: the first slot of the job is free. */
TEST_F(refused, takes_no_slot)
{
	EXPECT_ERRNO(variant->error, rvc_attach(self->fd, &self->params));
	ASSERT_EQ(0, rvc_attach(self->fd, &self->good));
	EXPECT_EQ(0, self->good.out.rv_index);
}

/* ---- accepted ------------------------------------------------------------ */

/* The largest values, and those that another mode or build gives a meaning. */
FIXTURE(accepted)
{
	struct rvc_port port;
	struct rv_attach_params params;
	int fd;
};

FIXTURE_VARIANT(accepted)
{
	void (*change)(struct rv_attach_params_in *in);
};

#define ACCEPTED(name, statement)                                          \
	static void change_##name(struct rv_attach_params_in *in)          \
	{                                                                  \
		statement;                                                 \
	}                                                                  \
	FIXTURE_VARIANT_ADD(accepted, name)                                \
	{                                                                  \
		.change = change_##name                                    \
	}

ACCEPTED(as_it_is, (void)in);
ACCEPTED(num_conn_0, in->num_conn = 0);
ACCEPTED(num_conn_16, in->num_conn = 16);
ACCEPTED(index_bits_0, in->index_bits = 0);
ACCEPTED(index_bits_12, in->index_bits = 12);
ACCEPTED(job_key_len_0, in->job_key_len = 0; memset(in->job_key, 0, 16));
ACCEPTED(job_key_len_1, in->job_key_len = 1);
ACCEPTED(cq_entries_0, in->cq_entries = 0);
ACCEPTED(cq_entries_1, in->cq_entries = 1);
ACCEPTED(cq_entries_10000, in->cq_entries = 10000);
ACCEPTED(q_depth_0, in->q_depth = 0);
ACCEPTED(q_depth_1, in->q_depth = 1);
ACCEPTED(q_depth_65536, in->q_depth = 65536);
ACCEPTED(mr_cache_size_0, in->mr_cache_size = 0);
ACCEPTED(mr_cache_size_1_tib, in->mr_cache_size = 1048576);
ACCEPTED(upsize_cpu, in->rdma_mode |= RV_RDMA_MODE_UPSIZE_CPU);
ACCEPTED(service_id_0, in->service_id = 0);
ACCEPTED(service_id_given, in->service_id = 0x1000125500000077);
ACCEPTED(loc_addr_0, in->loc_addr = 0);
ACCEPTED(context, in->context = ~0ULL);
ACCEPTED(gpu_cache_size, in->pad = 1024);
ACCEPTED(fr_page_list_len_of_the_device, in->fr_page_list_len = 512);
ACCEPTED(fr_page_list_len_above_the_device, in->fr_page_list_len = 1 << 20);
ACCEPTED(recovery, in->reconnect_timeout = 30; in->hb_interval = 1000);
ACCEPTED(heartbeat_just_below_recovery, in->reconnect_timeout = 1; in->hb_interval = 999);
ACCEPTED(heartbeat_without_recovery, in->hb_interval = 5000);
/* 1000 times this is 704 in 32 bits. */
ACCEPTED(reconnect_timeout_large, in->reconnect_timeout = 4294968; in->hb_interval = 1000);
ACCEPTED(holes_filled, in->hole0 = in->hole1 = 0xff; memset(in->hole2, 0xff, sizeof(in->hole2));
	 in->hole3 = ~0U);

FIXTURE_SETUP(accepted)
{
	rvt_find_port(_metadata, &self->port);
	rvc_attach_init(&self->params.in, &self->port);
	variant->change(&self->params.in);
	self->fd = rvt_open(_metadata);
}

FIXTURE_TEARDOWN(accepted)
{
	close(self->fd);
}

TEST_F(accepted, attach)
{
	EXPECT_EQ(0, rvc_attach(self->fd, &self->params));
}

TEST_F(accepted, attach_r5)
{
	struct rv_attach_params_r5 r5;

	rvc_attach_to_r5(&r5, &self->params);
	EXPECT_EQ(0, rvc_attach_r5(self->fd, &r5));
}

/* ---- the answer, and the steps around it --------------------------------- */

FIXTURE(attach)
{
	struct rvc_port port;
	struct rv_attach_params params;
	int fd;
};

FIXTURE_SETUP(attach)
{
	rvt_find_port(_metadata, &self->port);
	rvc_attach_init(&self->params.in, &self->port);
	self->fd = rvt_open(_metadata);
}

FIXTURE_TEARDOWN(attach)
{
	close(self->fd);
}

TEST_F(attach, answers_what_is_in_force)
{
	self->params.in.mr_cache_size = 7;
	self->params.in.q_depth = 100;
	ASSERT_EQ(0, rvc_attach(self->fd, &self->params));
	EXPECT_EQ(0, self->params.out.rv_index);
	EXPECT_EQ(7, self->params.out.mr_cache_size);
	EXPECT_EQ(100, self->params.out.q_depth);
}

TEST_F(attach, answers_the_defaults)
{
	self->params.in.mr_cache_size = 0;
	self->params.in.q_depth = 0;
	ASSERT_EQ(0, rvc_attach(self->fd, &self->params));
	EXPECT_EQ(256, self->params.out.mr_cache_size);
	EXPECT_EQ(4000, self->params.out.q_depth);
}

TEST_F(attach, upsize_cpu_enlarges_the_default)
{
	self->params.in.rdma_mode |= RV_RDMA_MODE_UPSIZE_CPU;
	ASSERT_EQ(0, rvc_attach(self->fd, &self->params));
	EXPECT_EQ(1024, self->params.out.mr_cache_size);
}

TEST_F(attach, upsize_cpu_leaves_a_given_size)
{
	self->params.in.rdma_mode |= RV_RDMA_MODE_UPSIZE_CPU;
	self->params.in.mr_cache_size = 7;
	ASSERT_EQ(0, rvc_attach(self->fd, &self->params));
	EXPECT_EQ(7, self->params.out.mr_cache_size);
}

/* No recovery in this release, and an application must be able to see that. */
TEST_F(attach, says_that_there_is_no_recovery)
{
	self->params.in.reconnect_timeout = 30;
	self->params.in.hb_interval = 1000;
	ASSERT_EQ(0, rvc_attach(self->fd, &self->params));
	EXPECT_EQ(30, self->params.out.reconnect_timeout);
}

/* rxe takes 512 pages in one fast registration. */
TEST_F(attach, answers_the_limit_of_the_device)
{
	ASSERT_EQ(0, rvc_attach(self->fd, &self->params));
	EXPECT_EQ(512 * RVC_PAGE, self->params.out.max_fmr_size);
}

/* The limit in force is that of GET_CACHE_STATS too. */
TEST_F(attach, sets_the_limit_of_the_cache)
{
	struct rv_cache_stats_params_out stats;

	self->params.in.mr_cache_size = 7;
	ASSERT_EQ(0, rvc_attach(self->fd, &self->params));
	ASSERT_EQ(0, rvc_cache_stats(self->fd, &stats));
	EXPECT_EQ(7, stats.limit_cache_size);
}

TEST_F(attach, reads_160_bytes)
{
	void *arg = rvt_at_page_end(_metadata, &self->params, 152);

	EXPECT_ERRNO(EFAULT, rvc_ioctl(self->fd, RV_IOCTL_ATTACH, arg));
}

TEST_F(attach, r5_reads_152_bytes)
{
	void *arg = rvt_at_page_end(_metadata, &self->params, 152);

	EXPECT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_ATTACH_R5, arg));
}

TEST_F(attach, r5_answers_24_bytes)
{
	struct rv_attach_params_r5 r5;

	rvc_attach_to_r5(&r5, &self->params);
	ASSERT_EQ(0, rvc_attach_r5(self->fd, &r5));
	EXPECT_EQ(0, r5.out.rv_index);
	EXPECT_EQ(256, r5.out.mr_cache_size);
	EXPECT_EQ(64, r5.out.q_depth);
	EXPECT_EQ(0, r5.out.reconnect_timeout);
	EXPECT_EQ(512 * RVC_PAGE, r5.out.max_fmr_size);
}

/* What comes behind the answer is the application's. */
TEST_F(attach, writes_24_bytes)
{
	struct rv_attach_params before;

	memset(self->params.in.dev_name + strlen(self->port.dev) + 1, 'x',
	       RV_MAX_DEV_NAME_LEN - strlen(self->port.dev) - 1);
	before = self->params;
	ASSERT_EQ(0, rvc_attach(self->fd, &self->params));
	EXPECT_EQ(0, memcmp((char *)&self->params + 24, (char *)&before + 24,
			    sizeof(before) - 24));
}

TEST_F(attach, unwritable_answer_undoes_everything)
{
	struct rv_cache_stats_params_out stats;

	EXPECT_ERRNO(EFAULT,
		     rvc_ioctl(self->fd, RV_IOCTL_ATTACH,
			       rvt_read_only(_metadata, &self->params, sizeof(self->params))));
	/* Not attached: no limit, no ring, and it can be done again. */
	ASSERT_EQ(0, rvc_cache_stats(self->fd, &stats));
	EXPECT_EQ(0, stats.limit_cache_size);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, RV_RING_ALLOC_LEN(64), PROT_READ, MAP_SHARED,
				   self->fd, 0));
	EXPECT_EQ(0, rvc_attach(self->fd, &self->params));
}

TEST_F(attach, second_time)
{
	struct rv_attach_params again = self->params;

	ASSERT_EQ(0, rvc_attach(self->fd, &self->params));
	EXPECT_ERRNO(EBUSY, rvc_attach(self->fd, &again));
}

/* The arguments are checked before the state of the file, the device after. */
TEST_F(attach, second_time_with_a_wrong_argument)
{
	struct rv_attach_params again = self->params;

	ASSERT_EQ(0, rvc_attach(self->fd, &self->params));
	again.in.port_num = 0;
	EXPECT_ERRNO(EINVAL, rvc_attach(self->fd, &again));
}

TEST_F(attach, second_time_with_an_unknown_device)
{
	struct rv_attach_params again = self->params;

	ASSERT_EQ(0, rvc_attach(self->fd, &self->params));
	strcpy(again.in.dev_name, "no_such_device");
	EXPECT_ERRNO(EBUSY, rvc_attach(self->fd, &again));
}

/* ---- jobs ---------------------------------------------------------------- */

/* Two files with equal keys are in one job: the second gets the next index. */
static int second_index(struct __test_metadata *_metadata, const struct rv_attach_params_in *first,
			const struct rv_attach_params_in *second)
{
	struct rv_attach_params params = { .in = *second };
	int fd = rvt_attach_with(_metadata, first);
	int other = rvt_open(_metadata);
	int ret = rvc_attach(other, &params);

	close(fd);
	close(other);
	return ret ? ret : (int)params.out.rv_index;
}

/* What must be equal in all files of a job. */
FIXTURE(job)
{
	struct rvc_port port;
	struct rv_attach_params_in first;
	struct rv_attach_params_in second;
};

FIXTURE_VARIANT(job)
{
	void (*change)(struct rv_attach_params_in *in);
	/* The index of the second file: 1 in the same job, 0 in another; or -errno. */
	int index;
};

#define JOB(name, index_, statement)                                       \
	static void change_job_##name(struct rv_attach_params_in *in)      \
	{                                                                  \
		statement;                                                 \
	}                                                                  \
	FIXTURE_VARIANT_ADD(job, name)                                     \
	{                                                                  \
		.change = change_job_##name, .index = (index_)             \
	}

JOB(all_equal, 1, (void)in);
JOB(another_key, 0, in->job_key[15] ^= 1);
JOB(shorter_key, 0, in->job_key_len = 15);
JOB(no_key, 0, in->job_key_len = 0);
JOB(another_loc_addr, 0, in->loc_addr++);
JOB(other_num_conn, -EBUSY, in->num_conn = 2);
JOB(default_num_conn, -EBUSY, in->num_conn = 0);
JOB(other_index_bits, -EBUSY, in->index_bits = 9);
JOB(other_loc_gid, -EBUSY, in->loc_gid[15] ^= 0x80);
JOB(other_service_id, -EBUSY, in->service_id = 0x1000125500000077);
JOB(service_id_that_is_the_default, 1, in->service_id = 0x1000125500000001);
JOB(other_q_depth, -EBUSY, in->q_depth = 65);
JOB(other_reconnect_timeout, -EBUSY, in->reconnect_timeout = 31);
JOB(other_hb_interval, -EBUSY, in->hb_interval = 1001);
JOB(other_cq_entries, 1, in->cq_entries = 0);
JOB(other_mr_cache_size, 1, in->mr_cache_size = 9);
JOB(other_context, 1, in->context = 9);
JOB(other_fr_page_list_len, 1, in->fr_page_list_len = 16);

FIXTURE_SETUP(job)
{
	rvt_find_port(_metadata, &self->port);
	rvc_attach_init(&self->first, &self->port);
	self->first.reconnect_timeout = 30;
	self->first.hb_interval = 1000;
	self->second = self->first;
	variant->change(&self->second);
}

FIXTURE_TEARDOWN(job)
{
}

TEST_F(job, second_file)
{
	EXPECT_EQ(variant->index, second_index(_metadata, &self->first, &self->second));
}

/* When the job is over, the same key may have any parameters, at once. */
TEST_F(job, after_the_first_file_closed)
{
	struct rv_attach_params params = { .in = self->second };
	int fd = rvt_attach_with(_metadata, &self->first);
	int other = rvt_open(_metadata);
	/* A GID that is not ours is refused for itself. */
	int want = !memcmp(self->second.loc_gid, self->port.gid, 16) ? 0 : -ENOENT;

	close(fd);
	ASSERT_EQ(want, rvc_attach(other, &params));
	EXPECT_TRUE(want || params.out.rv_index == 0);
}

FIXTURE(jobs)
{
	struct rvc_port port;
	struct rv_attach_params_in in;
};

FIXTURE_SETUP(jobs)
{
	rvt_find_port(_metadata, &self->port);
	rvc_attach_init(&self->in, &self->port);
}

FIXTURE_TEARDOWN(jobs)
{
}

TEST_F(jobs, key_bytes_past_its_length_do_not_count)
{
	struct rv_attach_params_in second;

	self->in.job_key_len = 12;
	second = self->in;
	memset(second.job_key + 12, 0xff, 4);
	EXPECT_EQ(1, second_index(_metadata, &self->in, &second));
}

/* Defaults count as the values that they stand for. */
TEST_F(jobs, default_q_depth_is_4000)
{
	struct rv_attach_params_in second;

	self->in.q_depth = 0;
	second = self->in;
	second.q_depth = 4000;
	EXPECT_EQ(1, second_index(_metadata, &self->in, &second));
}

TEST_F(jobs, default_num_conn_is_4)
{
	struct rv_attach_params_in second;

	self->in.num_conn = 0;
	second = self->in;
	second.num_conn = 4;
	EXPECT_EQ(1, second_index(_metadata, &self->in, &second));
}

/* Another user with the same key is in another job. */
TEST_F(jobs, other_user)
{
	struct rv_attach_params params = { .in = self->in };
	int fd = rvt_attach_with(_metadata, &self->in);

	EXPECT_EQ(0, RVT_IN_CHILD(({
			  /* The mode of the node is another matter. */
			  int other = rvt_open(_metadata);

			  setgid(65534) || setuid(65534) || rvc_attach(other, &params) ||
				  params.out.rv_index;
		  })));
	close(fd);
}

/* The indices of a job: in turn, and a free one only when its turn comes. */
TEST_F(jobs, indices_go_round)
{
	struct rv_attach_params params = { .in = self->in };
	int keep, fd;

	params.in.index_bits = 2;
	self->in = params.in;
	keep = rvt_open(_metadata);
	ASSERT_EQ(0, rvc_attach(keep, &params));
	ASSERT_EQ(0, params.out.rv_index);
	for (unsigned int i = 0; i < 7; i++) {
		params.in = self->in;
		fd = rvt_open(_metadata);
		ASSERT_EQ(0, rvc_attach(fd, &params));
		EXPECT_EQ(1 + i % 3, params.out.rv_index);
		close(fd);
	}
	close(keep);
}

TEST_F(jobs, all_indices_in_use)
{
	struct rv_attach_params params = { .in = self->in };
	int fds[4], fd;

	params.in.index_bits = 2;
	self->in = params.in;
	for (unsigned int i = 0; i < 4; i++) {
		params.in = self->in;
		fds[i] = rvt_open(_metadata);
		ASSERT_EQ(0, rvc_attach(fds[i], &params));
		EXPECT_EQ(i, params.out.rv_index);
	}
	params.in = self->in;
	fd = rvt_open(_metadata);
	EXPECT_ERRNO(ENOMEM, rvc_attach(fd, &params));
	/* One leaves, and the file that was refused takes its place. */
	close(fds[2]);
	params.in = self->in;
	EXPECT_EQ(0, rvc_attach(fd, &params));
	EXPECT_EQ(2, params.out.rv_index);
}

TEST_F(jobs, no_index_bits_means_one_file)
{
	struct rv_attach_params params = { .in = self->in };
	int fd, other;

	params.in.index_bits = 0;
	self->in = params.in;
	fd = rvt_open(_metadata);
	ASSERT_EQ(0, rvc_attach(fd, &params));
	EXPECT_EQ(0, params.out.rv_index);
	other = rvt_open(_metadata);
	params.in = self->in;
	EXPECT_ERRNO(ENOMEM, rvc_attach(other, &params));
	close(fd);
	params.in = self->in;
	EXPECT_EQ(0, rvc_attach(other, &params));
}

TEST_F(jobs, one_process_may_have_many_files)
{
	struct rv_attach_params params;

	for (unsigned int i = 0; i < 20; i++) {
		params.in = self->in;
		ASSERT_EQ(0, rvc_attach(rvt_open(_metadata), &params));
		EXPECT_EQ(i, params.out.rv_index);
	}
}

/* ---- two threads --------------------------------------------------------- */

struct race {
	pthread_barrier_t *barrier;
	struct rv_attach_params params;
	int fd;
	int ret;
};

static void *race_attach(void *arg)
{
	struct race *race = arg;

	pthread_barrier_wait(race->barrier);
	race->ret = rvc_attach(race->fd, &race->params);
	return NULL;
}

/* One of them attaches, the other is told so; nobody waits for ever. */
TEST_F(jobs, two_threads_attach_one_file)
{
	pthread_barrier_t barrier;
	struct race race[2];
	pthread_t thread[2];
	int fd;

	ASSERT_EQ(0, pthread_barrier_init(&barrier, NULL, 2));
	for (int round = 0; round < 30; round++) {
		fd = rvt_open(_metadata);
		for (int i = 0; i < 2; i++) {
			race[i] = (struct race){ .barrier = &barrier, .fd = fd };
			race[i].params.in = self->in;
			ASSERT_EQ(0, pthread_create(&thread[i], NULL, race_attach, &race[i]));
		}
		for (int i = 0; i < 2; i++)
			pthread_join(thread[i], NULL);
		EXPECT_EQ(-EBUSY, race[0].ret + race[1].ret)
			TH_LOG("round %d: %d and %d", round, race[0].ret, race[1].ret);
		close(fd);
	}
}

static void *map_and_unmap(void *arg)
{
	while (!__atomic_load_n((bool *)arg, __ATOMIC_RELAXED))
		munmap(mmap(NULL, 64 * RVC_PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0),
		       64 * RVC_PAGE);
	return NULL;
}

/* ATTACH needs the address space for itself for a moment; others want it too. */
TEST_F(jobs, attach_while_another_thread_maps_memory)
{
	struct rv_attach_params params;
	pthread_t thread;
	bool stop = false;
	int fd;

	ASSERT_EQ(0, pthread_create(&thread, NULL, map_and_unmap, &stop));
	for (int round = 0; round < 30; round++) {
		params.in = self->in;
		fd = rvt_open(_metadata);
		EXPECT_EQ(0, rvc_attach(fd, &params));
		close(fd);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

RVT_MAIN
