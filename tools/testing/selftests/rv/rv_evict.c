// SPDX-License-Identifier: GPL-2.0
/*
 * EVICT: what each type removes, what it leaves, what it answers; and that the
 * memory is no longer pinned when it returns.
 */
#include <pthread.h>

#include "rv_test.h"

#define MIB (1UL << 20)
#define BUFFER_PAGES 64
#define ALL (~0ULL)

FIXTURE(evict)
{
	struct rvc_port port;
	struct rv_cache_stats_params_out stats;
	struct rv_evict_params params;
	uint8_t *buf;
	int fd;
};

FIXTURE_SETUP(evict)
{
	rvt_find_port(_metadata, &self->port);
	self->fd = rvt_attach(_metadata, &self->port);
	self->buf = rvt_alloc(_metadata, BUFFER_PAGES * RVC_PAGE);
}

FIXTURE_TEARDOWN(evict)
{
	close(self->fd);
}

/* By pages of the buffer. */
static struct rvc_mr reg_pages(struct __test_metadata *_metadata, FIXTURE_DATA(evict) *self,
			       unsigned int first, unsigned int pages, uint32_t access)
{
	struct rvc_mr mr;

	ASSERT_EQ(0, rvc_reg(self->fd, self->buf + first * RVC_PAGE, pages * RVC_PAGE, access,
			     &mr));
	return mr;
}

static void idle_pages(struct __test_metadata *_metadata, FIXTURE_DATA(evict) *self,
		       unsigned int first, unsigned int pages)
{
	struct rvc_mr mr = reg_pages(_metadata, self, first, pages, RVC_ACCESS_TARGET);

	ASSERT_EQ(0, rvc_dereg(self->fd, &mr));
}

static uint64_t page(const FIXTURE_DATA(evict) *self, unsigned int number)
{
	return (uintptr_t)self->buf + number * RVC_PAGE;
}

static long pinned_pages(void)
{
	return rvc_proc_number("/proc/self/status", "VmPin") / 4;
}

#define EXPECT_EVICTED(bytes_, count_, call)               \
	do {                                               \
		struct rv_evict_params_out out_ = { 0 };   \
							   \
		EXPECT_EQ(0, call);                        \
		EXPECT_EQ((uint64_t)(bytes_), out_.bytes); \
		EXPECT_EQ((uint32_t)(count_), out_.count); \
		EXPECT_EQ(0, out_.hole0);                  \
	} while (0)

#define EXPECT_STAT(member, value)                                     \
	do {                                                           \
		ASSERT_EQ(0, rvc_cache_stats(self->fd, &self->stats)); \
		EXPECT_EQ(value, self->stats.member);                  \
	} while (0)

#define EXACT(first, pages, access) \
	rvc_evict_exact(self->fd, page(self, first), (pages) * RVC_PAGE, access, &out_)
#define RANGE(first, pages) \
	rvc_evict_range(self->fd, page(self, first), (pages) * RVC_PAGE, &out_)
#define AMOUNT(bytes, count) rvc_evict_amount(self->fd, bytes, count, &out_)

#define EXPECT_ENOENT(call)                              \
	do {                                             \
		struct rv_evict_params_out out_;         \
							 \
		EXPECT_ERRNO(ENOENT, call);              \
	} while (0)

/* ---- types --------------------------------------------------------------- */

/* All types but three are refused, those of GPU memory too. */
TEST_F(evict, unknown_types)
{
	idle_pages(_metadata, self, 0, 4);
	for (int type = 0; type < 256; type++) {
		if (type >= RV_EVICT_TYPE_SEARCH_EXACT && type <= RV_EVICT_TYPE_AMOUNT)
			continue;
		self->params = (struct rv_evict_params){ .in.type = type };
		EXPECT_ERRNO(EINVAL, rvc_ioctl(self->fd, RV_IOCTL_EVICT, &self->params))
			TH_LOG("type %d", type);
	}
	EXPECT_STAT(count, 1);
	EXPECT_STAT(evict, 0);
}

/* What is reserved may hold anything, and the gap of the answer comes back zero. */
TEST_F(evict, holes)
{
	idle_pages(_metadata, self, 0, 4);
	memset(&self->params, 0xa5, sizeof(self->params));
	self->params.in.type = RV_EVICT_TYPE_AMOUNT;
	self->params.in.amount.bytes = 1;
	self->params.in.amount.count = 1;
	ASSERT_EQ(0, rvc_ioctl(self->fd, RV_IOCTL_EVICT, &self->params));
	EXPECT_EQ(4 * RVC_PAGE, self->params.out.bytes);
	EXPECT_EQ(1, self->params.out.count);
	EXPECT_EQ(0, self->params.out.hole0);
}

/* The entries are gone, whether or not the answer arrives. */
TEST_F(evict, unwritable_answer)
{
	idle_pages(_metadata, self, 0, 4);
	self->params = (struct rv_evict_params){ .in.type = RV_EVICT_TYPE_AMOUNT };
	EXPECT_ERRNO(EFAULT, rvc_ioctl(self->fd, RV_IOCTL_EVICT,
				       rvt_read_only(_metadata, &self->params,
						     sizeof(self->params))));
	EXPECT_STAT(count, 0);
	EXPECT_STAT(evict, 1);
}

TEST(before_attach)
{
	struct rv_evict_params params = { .in.type = RV_EVICT_TYPE_AMOUNT };

	EXPECT_ERRNO(EINVAL, rvc_ioctl(rvt_open(_metadata), RV_IOCTL_EVICT, &params));
}

TEST_F(evict, forked_child)
{
	struct rv_evict_params_out out;

	idle_pages(_metadata, self, 0, 4);
	EXPECT_EQ(EINVAL, RVT_IN_CHILD(-rvc_evict_amount(self->fd, 0, 0, &out)));
	EXPECT_STAT(evict, 0);
}

/* ---- SEARCH_EXACT -------------------------------------------------------- */

TEST_F(evict, exact)
{
	idle_pages(_metadata, self, 0, 4);
	idle_pages(_metadata, self, 8, 4);
	EXPECT_EVICTED(4 * RVC_PAGE, 1, EXACT(8, 4, RVC_ACCESS_TARGET));
	EXPECT_EQ(4, pinned_pages());
	EXPECT_STAT(count, 1);
	EXPECT_STAT(cache_size, 4 * RVC_PAGE);
	EXPECT_STAT(evict, 1);
	EXPECT_STAT(remove, 0);
	EXPECT_ENOENT(EXACT(8, 4, RVC_ACCESS_TARGET));
	EXPECT_STAT(evict, 1);
}

/* Any part names it; the answer is the length that was asked for. */
TEST_F(evict, exact_by_a_part)
{
	struct rv_evict_params_out out;

	idle_pages(_metadata, self, 0, 8);
	ASSERT_EQ(0, rvc_evict_exact(self->fd, page(self, 3) + 17, 100, RVC_ACCESS_TARGET, &out));
	EXPECT_EQ(100, out.bytes);
	EXPECT_EQ(1, out.count);
	EXPECT_EQ(0, pinned_pages());
	EXPECT_STAT(cache_size, 0);
}

TEST_F(evict, exact_must_cover)
{
	idle_pages(_metadata, self, 4, 4);
	EXPECT_ENOENT(EXACT(3, 4, RVC_ACCESS_TARGET));
	EXPECT_ENOENT(EXACT(5, 4, RVC_ACCESS_TARGET));
	EXPECT_ENOENT(EXACT(3, 6, RVC_ACCESS_TARGET));
	EXPECT_STAT(count, 1);
}

TEST_F(evict, exact_compares_access)
{
	idle_pages(_metadata, self, 0, 4);
	EXPECT_ENOENT(EXACT(0, 4, RVC_ACCESS_SOURCE));
	EXPECT_ENOENT(EXACT(0, 4, RVC_ACCESS_TARGET & ~IBV_ACCESS_KERNEL));
	EXPECT_EVICTED(4 * RVC_PAGE, 1, EXACT(0, 4, RVC_ACCESS_TARGET));
}

/* One in use is passed over, and an idle one behind it found. */
TEST_F(evict, exact_skips_what_is_in_use)
{
	struct rvc_mr used = reg_pages(_metadata, self, 4, 4, RVC_ACCESS_TARGET);

	EXPECT_ENOENT(EXACT(4, 4, RVC_ACCESS_TARGET));
	idle_pages(_metadata, self, 0, 16);
	EXPECT_EVICTED(4 * RVC_PAGE, 1, EXACT(4, 4, RVC_ACCESS_TARGET));
	EXPECT_STAT(cache_size, 4 * RVC_PAGE);
	EXPECT_EQ(0, rvc_dereg(self->fd, &used));
}

/* Of several only the first. */
TEST_F(evict, exact_takes_the_lowest)
{
	idle_pages(_metadata, self, 2, 8);
	idle_pages(_metadata, self, 1, 7);
	idle_pages(_metadata, self, 0, 6);
	EXPECT_STAT(count, 3);
	EXPECT_EVICTED(RVC_PAGE, 1, EXACT(3, 1, RVC_ACCESS_TARGET));
	EXPECT_STAT(cache_size, 15 * RVC_PAGE);
	EXPECT_EVICTED(RVC_PAGE, 1, EXACT(3, 1, RVC_ACCESS_TARGET));
	EXPECT_STAT(cache_size, 8 * RVC_PAGE);
}

/* ---- SEARCH_RANGE -------------------------------------------------------- */

TEST_F(evict, range)
{
	for (int i = 0; i < 8; i++)
		idle_pages(_metadata, self, 8 * i, 4);
	EXPECT_EVICTED(8 * RVC_PAGE, 2, RANGE(16, 12));
	EXPECT_EQ(24, pinned_pages());
	EXPECT_STAT(count, 6);
	EXPECT_STAT(evict, 2);
	EXPECT_EVICTED(0, 0, RANGE(16, 12));
	EXPECT_STAT(evict, 2);
}

/* A byte in common is enough, and none is not. */
TEST_F(evict, range_edges)
{
	struct rv_evict_params_out out;

	idle_pages(_metadata, self, 4, 4);
	ASSERT_EQ(0, rvc_evict_range(self->fd, page(self, 3), RVC_PAGE, &out));
	EXPECT_EQ(0, out.count);
	ASSERT_EQ(0, rvc_evict_range(self->fd, page(self, 8), RVC_PAGE, &out));
	EXPECT_EQ(0, out.count);
	ASSERT_EQ(0, rvc_evict_range(self->fd, page(self, 5), 0, &out));
	EXPECT_EQ(0, out.count);
	ASSERT_EQ(0, rvc_evict_range(self->fd, page(self, 8) - 1, 1, &out));
	EXPECT_EQ(1, out.count);
	EXPECT_EQ(4 * RVC_PAGE, out.bytes);
	idle_pages(_metadata, self, 4, 4);
	ASSERT_EQ(0, rvc_evict_range(self->fd, page(self, 3), RVC_PAGE + 1, &out));
	EXPECT_EQ(1, out.count);
}

/* Whatever the access; only what is in use stays. */
TEST_F(evict, range_ignores_access)
{
	struct rvc_mr source = reg_pages(_metadata, self, 0, 4, RVC_ACCESS_SOURCE);
	struct rvc_mr used = reg_pages(_metadata, self, 2, 4, RVC_ACCESS_TARGET);

	ASSERT_EQ(0, rvc_dereg(self->fd, &source));
	idle_pages(_metadata, self, 1, 2);
	EXPECT_EVICTED(6 * RVC_PAGE, 2, RANGE(0, 8));
	EXPECT_STAT(count, 1);
	EXPECT_STAT(inuse, 1);
	/* It was not touched: it is still found, and can be released. */
	reg_pages(_metadata, self, 2, 4, RVC_ACCESS_TARGET);
	EXPECT_STAT(hit, 1);
	EXPECT_EQ(0, rvc_dereg(self->fd, &used));
	EXPECT_EQ(0, rvc_dereg(self->fd, &used));
	EXPECT_EVICTED(4 * RVC_PAGE, 1, RANGE(0, 8));
}

/* All there is, far more than what is taken out at a time. */
TEST_F(evict, range_of_all_memory)
{
	struct rv_evict_params_out out;
	struct rvc_mr used;

	for (int i = 0; i < BUFFER_PAGES; i++)
		idle_pages(_metadata, self, i, 1);
	for (int i = 0; i + 1 < BUFFER_PAGES; i++)
		idle_pages(_metadata, self, i, 2);
	used = reg_pages(_metadata, self, 5, 2, RVC_ACCESS_TARGET);
	ASSERT_EQ(0, rvc_evict_range(self->fd, 0, ALL, &out));
	EXPECT_EQ(2 * BUFFER_PAGES - 2, out.count);
	EXPECT_EQ((3 * BUFFER_PAGES - 4) * RVC_PAGE, out.bytes);
	EXPECT_EQ(2, pinned_pages());
	EXPECT_EQ(0, rvc_dereg(self->fd, &used));
}

TEST_F(evict, ranges_that_wrap)
{
	struct rv_evict_params_out out;

	idle_pages(_metadata, self, 0, 1);
	EXPECT_ERRNO(EINVAL, rvc_evict_range(self->fd, page(self, 0), ALL, &out));
	EXPECT_ERRNO(EINVAL, rvc_evict_range(self->fd, ALL, ALL, &out));
	EXPECT_ERRNO(EINVAL, rvc_evict_exact(self->fd, page(self, 0), ALL, RVC_ACCESS_TARGET,
					     &out));
	EXPECT_STAT(count, 1);
}

/* ---- AMOUNT -------------------------------------------------------------- */

/* No goal is one entry: the one whose last use is longest ago. */
TEST_F(evict, amount_of_nothing)
{
	idle_pages(_metadata, self, 0, 1);
	idle_pages(_metadata, self, 8, 2);
	idle_pages(_metadata, self, 16, 4);
	/* Used again, so no longer the oldest. */
	idle_pages(_metadata, self, 0, 1);
	EXPECT_EVICTED(2 * RVC_PAGE, 1, AMOUNT(0, 0));
	EXPECT_EVICTED(4 * RVC_PAGE, 1, AMOUNT(0, 0));
	EXPECT_EVICTED(RVC_PAGE, 1, AMOUNT(0, 0));
	EXPECT_ENOENT(AMOUNT(0, 0));
	EXPECT_STAT(evict, 3);
	EXPECT_EQ(0, pinned_pages());
}

TEST_F(evict, amount_of_bytes)
{
	for (int i = 0; i < 8; i++)
		idle_pages(_metadata, self, 8 * i, 2);
	EXPECT_EVICTED(4 * RVC_PAGE, 2, AMOUNT(2 * RVC_PAGE + 1, 0));
	EXPECT_EVICTED(2 * RVC_PAGE, 1, AMOUNT(2 * RVC_PAGE, 0));
	EXPECT_EVICTED(2 * RVC_PAGE, 1, AMOUNT(1, 1));
}

TEST_F(evict, amount_of_entries)
{
	for (int i = 0; i < 8; i++)
		idle_pages(_metadata, self, 8 * i, 2);
	EXPECT_EVICTED(6 * RVC_PAGE, 3, AMOUNT(0, 3));
	/* Both goals must be reached. */
	EXPECT_EVICTED(4 * RVC_PAGE, 2, AMOUNT(1, 2));
	EXPECT_EVICTED(4 * RVC_PAGE, 2, AMOUNT(3 * RVC_PAGE, 1));
	/* All there is, if that is less. */
	EXPECT_EVICTED(2 * RVC_PAGE, 1, AMOUNT(0, 3));
	EXPECT_ENOENT(AMOUNT(0, 3));
}

/* Goals have 64 bits: what is beyond 32 is no small goal. */
TEST_F(evict, amount_beyond_32_bits)
{
	for (int i = 0; i < 8; i++)
		idle_pages(_metadata, self, 8 * i, 2);
	EXPECT_EVICTED(16 * RVC_PAGE, 8, AMOUNT(1ULL << 32, 0));
	for (int i = 0; i < 8; i++)
		idle_pages(_metadata, self, 8 * i, 2);
	EXPECT_EVICTED(16 * RVC_PAGE, 8, AMOUNT(ALL, ~0U));
}

TEST_F(evict, amount_leaves_what_is_in_use)
{
	struct rvc_mr used = reg_pages(_metadata, self, 0, 4, RVC_ACCESS_TARGET);

	EXPECT_ENOENT(AMOUNT(ALL, ~0U));
	idle_pages(_metadata, self, 8, 4);
	EXPECT_EVICTED(4 * RVC_PAGE, 1, AMOUNT(ALL, ~0U));
	EXPECT_STAT(inuse, 1);
	EXPECT_EQ(0, rvc_dereg(self->fd, &used));
}

/* ---- what follows from it ------------------------------------------------ */

/* What was evicted is registered anew, under another handle and address. */
TEST_F(evict, registered_again)
{
	struct rvc_mr first = reg_pages(_metadata, self, 0, 4, RVC_ACCESS_TARGET);
	struct rvc_mr second;

	ASSERT_EQ(0, rvc_dereg(self->fd, &first));
	EXPECT_EVICTED(4 * RVC_PAGE, 1, EXACT(0, 4, RVC_ACCESS_TARGET));
	EXPECT_ERRNO(EINVAL, rvc_dereg(self->fd, &first));
	second = reg_pages(_metadata, self, 0, 4, RVC_ACCESS_TARGET);
	EXPECT_NE(first.handle, second.handle);
	EXPECT_NE(first.iova, second.iova);
	EXPECT_STAT(miss, 2);
	EXPECT_STAT(hit, 0);
}

/* Evicting makes room under the limit of the cache. */
TEST_F(evict, makes_room)
{
	uint8_t *buf = rvt_alloc(_metadata, MIB);
	struct rv_evict_params_out out;
	struct rv_attach_params_in in;
	struct rvc_mr mr, other;
	int fd;

	rvc_attach_init(&in, &self->port);
	in.mr_cache_size = 1;
	fd = rvt_attach_with(_metadata, &in);
	ASSERT_EQ(0, rvc_reg(fd, buf, MIB, RVC_ACCESS_TARGET, &mr));
	EXPECT_ERRNO(ENOMEM, rvc_reg(fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &other));
	ASSERT_EQ(0, rvc_dereg(fd, &mr));
	ASSERT_EQ(0, rvc_evict_exact(fd, (uintptr_t)buf, MIB, RVC_ACCESS_TARGET, &out));
	ASSERT_EQ(0, rvc_reg(fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &other));
	ASSERT_EQ(0, rvc_cache_stats(fd, &self->stats));
	EXPECT_EQ(1, self->stats.full);
	EXPECT_EQ(1, self->stats.evict);
	EXPECT_EQ(RVC_PAGE, self->stats.cache_size);
	close(fd);
}

#define THREADS 4

struct worker {
	pthread_t thread;
	FIXTURE_DATA(evict) *self;
	unsigned int seed;
	uint64_t evicted;
	int error;
};

static void *register_and_evict(void *arg)
{
	struct worker *worker = arg;
	FIXTURE_DATA(evict) *self = worker->self;
	struct rv_evict_params_out out;
	struct rvc_mr mr;
	int ret;

	for (int i = 0; i < 300 && !worker->error; i++) {
		unsigned int first = rand_r(&worker->seed) % (BUFFER_PAGES - 8);
		unsigned int pages = 1 + rand_r(&worker->seed) % 8;

		ret = rvc_reg(self->fd, (void *)(uintptr_t)page(self, first), pages * RVC_PAGE,
			      RVC_ACCESS_TARGET, &mr);
		if (!ret)
			ret = rvc_dereg(self->fd, &mr);
		if (ret)
			worker->error = -ret;
		switch (rand_r(&worker->seed) % 4) {
		case 0:
			ret = rvc_evict_exact(self->fd, page(self, first), pages * RVC_PAGE,
					      RVC_ACCESS_TARGET, &out);
			break;
		case 1:
			ret = rvc_evict_range(self->fd, page(self, first), pages * RVC_PAGE, &out);
			break;
		case 2:
			ret = rvc_evict_amount(self->fd, 2 * RVC_PAGE, 2, &out);
			break;
		default:
			continue;
		}
		if (!ret)
			worker->evicted += out.count;
		else if (ret != -ENOENT)
			worker->error = -ret;
	}
	return NULL;
}

/* However threads get in each other's way, every entry is counted once. */
TEST_F(evict, threads)
{
	struct worker worker[THREADS];
	struct rv_evict_params_out out = { 0 };
	uint64_t evicted = 0;
	int ret;

	for (int i = 0; i < THREADS; i++) {
		worker[i] = (struct worker){ .self = self, .seed = i };
		ASSERT_EQ(0, pthread_create(&worker[i].thread, NULL, register_and_evict,
					    &worker[i]));
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(worker[i].thread, NULL);
		EXPECT_EQ(0, worker[i].error);
		evicted += worker[i].evicted;
	}
	ret = rvc_evict_amount(self->fd, ALL, ~0U, &out);
	EXPECT_TRUE(!ret || ret == -ENOENT);
	EXPECT_STAT(evict, evicted + out.count);
	EXPECT_EQ(self->stats.miss, self->stats.evict);
	EXPECT_EQ(0, self->stats.count);
	EXPECT_EQ(0, self->stats.cache_size);
	EXPECT_EQ(0, self->stats.inuse);
	EXPECT_EQ(0, pinned_pages());
}

RVT_MAIN
