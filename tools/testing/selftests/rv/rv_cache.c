// SPDX-License-Identifier: GPL-2.0
/*
 * The cache of registrations: what is a hit, what references do, what leaves when
 * the limit is reached or memory is unmapped, and a model that says what every
 * counter must be after every one of some thousand random steps.
 */
#include <pthread.h>
#include <time.h>

#include "rv_test.h"

#define MIB (1UL << 20)
#define QUARTER (MIB / 4)

/* A file with a cache of 1 MiB, and 4 MiB of memory. */
FIXTURE(cache)
{
	struct rvc_port port;
	struct rv_attach_params_in in;
	struct rv_cache_stats_params_out stats;
	uint8_t *buf;
	int fd;
};

FIXTURE_SETUP(cache)
{
	rvt_find_port(_metadata, &self->port);
	rvc_attach_init(&self->in, &self->port);
	self->in.mr_cache_size = 1;
	self->fd = rvt_attach_with(_metadata, &self->in);
	self->buf = rvt_alloc(_metadata, 4 * MIB);
}

FIXTURE_TEARDOWN(cache)
{
	close(self->fd);
}

static struct rvc_mr reg(struct __test_metadata *_metadata, int fd, const void *addr,
			 uint64_t length)
{
	struct rvc_mr mr;

	ASSERT_EQ(0, rvc_reg(fd, addr, length, RVC_ACCESS_TARGET, &mr));
	return mr;
}

/* Registers and lets go: an idle entry, the most recently used one. */
static struct rvc_mr reg_idle(struct __test_metadata *_metadata, int fd, const void *addr,
			      uint64_t length)
{
	struct rvc_mr mr = reg(_metadata, fd, addr, length);

	ASSERT_EQ(0, rvc_dereg(fd, &mr));
	return mr;
}

/* Whether a range is in the cache, found out without changing what is there. */
static bool is_cached(struct __test_metadata *_metadata, int fd, const void *addr, uint64_t length)
{
	struct rv_cache_stats_params_out before, after;

	ASSERT_EQ(0, rvc_cache_stats(fd, &before));
	reg_idle(_metadata, fd, addr, length);
	ASSERT_EQ(0, rvc_cache_stats(fd, &after));
	return after.hit == before.hit + 1;
}

static bool same(const struct rvc_mr *a, const struct rvc_mr *b)
{
	return a->handle == b->handle && a->iova == b->iova && a->lkey == b->lkey &&
	       a->rkey == b->rkey;
}

#define EXPECT_STAT(member, value)                                         \
	do {                                                               \
		ASSERT_EQ(0, rvc_cache_stats(self->fd, &self->stats));     \
		EXPECT_EQ(value, self->stats.member);                      \
	} while (0)

/* ---- hit and miss -------------------------------------------------------- */

TEST_F(cache, same_range)
{
	struct rvc_mr first = reg(_metadata, self->fd, self->buf, 4 * RVC_PAGE);
	struct rvc_mr second = reg(_metadata, self->fd, self->buf, 4 * RVC_PAGE);

	EXPECT_TRUE(same(&first, &second));
	EXPECT_STAT(hit, 1);
	EXPECT_STAT(miss, 1);
	EXPECT_STAT(count, 1);
	EXPECT_STAT(cache_size, 4 * RVC_PAGE);
}

TEST_F(cache, same_range_after_it_was_released)
{
	struct rvc_mr first = reg_idle(_metadata, self->fd, self->buf, 4 * RVC_PAGE);
	struct rvc_mr second = reg(_metadata, self->fd, self->buf, 4 * RVC_PAGE);

	EXPECT_TRUE(same(&first, &second));
	EXPECT_STAT(hit, 1);
	EXPECT_STAT(inuse, 1);
}

/* A part is a hit, and its iova is that of the byte asked for. */
TEST_F(cache, part_of_a_range)
{
	struct rvc_mr whole = reg(_metadata, self->fd, self->buf, 8 * RVC_PAGE);
	struct rvc_mr part = reg(_metadata, self->fd, self->buf + 2 * RVC_PAGE, 4 * RVC_PAGE);
	struct rvc_mr bytes = reg(_metadata, self->fd, self->buf + 5 * RVC_PAGE + 123, 77);

	EXPECT_EQ(whole.handle, part.handle);
	EXPECT_EQ(whole.rkey, part.rkey);
	EXPECT_EQ(whole.iova + 2 * RVC_PAGE, part.iova);
	EXPECT_EQ(whole.iova + 5 * RVC_PAGE + 123, bytes.iova);
	EXPECT_STAT(hit, 2);
	EXPECT_STAT(count, 1);
}

/* Ranges are rounded to pages, so two odd ones in one page are one entry. */
TEST_F(cache, odd_ranges_in_one_page)
{
	struct rvc_mr first = reg(_metadata, self->fd, self->buf + 100, 100);
	struct rvc_mr second = reg(_metadata, self->fd, self->buf + 3000, 1096);

	EXPECT_EQ(first.handle, second.handle);
	EXPECT_EQ(first.iova + 2900, second.iova);
	EXPECT_STAT(hit, 1);
	EXPECT_STAT(cache_size, RVC_PAGE);
}

TEST_F(cache, one_page_more)
{
	struct rvc_mr first = reg(_metadata, self->fd, self->buf, 4 * RVC_PAGE);
	struct rvc_mr second = reg(_metadata, self->fd, self->buf, 4 * RVC_PAGE + 1);

	EXPECT_NE(first.handle, second.handle);
	EXPECT_STAT(hit, 0);
	EXPECT_STAT(count, 2);
	EXPECT_STAT(cache_size, 9 * RVC_PAGE);
}

/* Two entries that meet do not cover a range that spans both. */
TEST_F(cache, range_over_two_entries)
{
	reg(_metadata, self->fd, self->buf, 2 * RVC_PAGE);
	reg(_metadata, self->fd, self->buf + 2 * RVC_PAGE, 2 * RVC_PAGE);
	reg(_metadata, self->fd, self->buf + RVC_PAGE, 2 * RVC_PAGE);
	EXPECT_STAT(hit, 0);
	EXPECT_STAT(count, 3);
}

TEST_F(cache, other_access)
{
	struct rvc_mr mr;

	reg(_metadata, self->fd, self->buf, RVC_PAGE);
	ASSERT_EQ(0, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_SOURCE, &mr));
	EXPECT_STAT(hit, 0);
	EXPECT_STAT(count, 2);
}

/* The range inside came first, so both are there; the one outside serves both. */
TEST_F(cache, nested_ranges)
{
	struct rvc_mr inner = reg(_metadata, self->fd, self->buf + 2 * RVC_PAGE, 4 * RVC_PAGE);
	struct rvc_mr outer = reg(_metadata, self->fd, self->buf, 8 * RVC_PAGE);
	struct rvc_mr again = reg(_metadata, self->fd, self->buf + 3 * RVC_PAGE, RVC_PAGE);

	EXPECT_EQ(outer.handle, again.handle);
	EXPECT_EQ(0, rvc_dereg(self->fd, &inner));
	EXPECT_EQ(0, rvc_dereg(self->fd, &again));
	EXPECT_EQ(0, rvc_dereg(self->fd, &outer));
	EXPECT_STAT(inuse, 0);
}

/* Files do not share entries: each has its own cache. */
TEST_F(cache, another_file)
{
	int other = rvt_attach_with(_metadata, &self->in);
	struct rvc_mr first = reg(_metadata, self->fd, self->buf, RVC_PAGE);
	struct rvc_mr second = reg(_metadata, other, self->buf, RVC_PAGE);

	EXPECT_NE(first.rkey, second.rkey);
	EXPECT_STAT(hit, 0);
	EXPECT_STAT(count, 1);
}

/* ---- references ---------------------------------------------------------- */

TEST_F(cache, references_are_counted)
{
	struct rvc_mr mr;

	for (int i = 0; i < 5; i++)
		mr = reg(_metadata, self->fd, self->buf, 2 * RVC_PAGE);
	EXPECT_STAT(max_refcount, 5);
	EXPECT_STAT(inuse, 1);
	EXPECT_STAT(inuse_bytes, 2 * RVC_PAGE);
	for (int i = 0; i < 4; i++)
		ASSERT_EQ(0, rvc_dereg(self->fd, &mr));
	EXPECT_STAT(inuse, 1);
	ASSERT_EQ(0, rvc_dereg(self->fd, &mr));
	EXPECT_STAT(inuse, 0);
	EXPECT_STAT(inuse_bytes, 0);
	EXPECT_STAT(count, 1);
	EXPECT_STAT(max_refcount, 5);
}

TEST_F(cache, peaks_stay)
{
	struct rvc_mr mr[3];

	for (int i = 0; i < 3; i++)
		mr[i] = reg(_metadata, self->fd, self->buf + 4 * i * RVC_PAGE, 2 * RVC_PAGE);
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, rvc_dereg(self->fd, &mr[i]));
	ASSERT_EQ(0, munmap(self->buf, 16 * RVC_PAGE));
	EXPECT_STAT(count, 0);
	EXPECT_STAT(max_count, 3);
	EXPECT_STAT(cache_size, 0);
	EXPECT_STAT(max_cache_size, 6 * RVC_PAGE);
	EXPECT_STAT(inuse, 0);
	EXPECT_STAT(max_inuse, 3);
	EXPECT_STAT(max_inuse_bytes, 6 * RVC_PAGE);
}

/* Several entries cover the range: the handle says which one loses a reference. */
TEST_F(cache, dereg_goes_by_the_handle)
{
	struct rvc_mr inner = reg(_metadata, self->fd, self->buf + 2 * RVC_PAGE, 4 * RVC_PAGE);
	struct rvc_mr outer = reg(_metadata, self->fd, self->buf, 8 * RVC_PAGE);

	EXPECT_EQ(0, rvc_dereg_raw(self->fd, inner.handle, inner.addr, inner.length,
				   inner.access));
	EXPECT_STAT(inuse_bytes, 8 * RVC_PAGE);
	EXPECT_ERRNO(EINVAL, rvc_dereg_raw(self->fd, inner.handle, inner.addr, inner.length,
					   inner.access));
	EXPECT_STAT(inuse_bytes, 8 * RVC_PAGE);
	EXPECT_EQ(0, rvc_dereg_raw(self->fd, outer.handle, inner.addr, inner.length,
				   inner.access));
	EXPECT_STAT(inuse_bytes, 0);
}

/* ---- limit --------------------------------------------------------------- */

TEST_F(cache, limit_is_reached_exactly)
{
	for (int i = 0; i < 4; i++)
		reg(_metadata, self->fd, self->buf + i * QUARTER, QUARTER);
	EXPECT_STAT(cache_size, MIB);
	EXPECT_STAT(evict, 0);
	EXPECT_STAT(full, 0);
}

/* Nothing idle to remove: the registration fails, and nothing else changes. */
TEST_F(cache, limit_with_everything_in_use)
{
	struct rvc_mr mr[4], fifth;

	for (int i = 0; i < 4; i++)
		mr[i] = reg(_metadata, self->fd, self->buf + i * QUARTER, QUARTER);
	EXPECT_ERRNO(ENOMEM, rvc_reg(self->fd, self->buf + MIB, RVC_PAGE, RVC_ACCESS_TARGET,
				     &fifth));
	EXPECT_STAT(full, 1);
	EXPECT_STAT(failed, 0);
	EXPECT_STAT(evict, 0);
	EXPECT_STAT(count, 4);
	EXPECT_STAT(miss, 4);
	/* What is there can still be had, and room is made as soon as one is idle. */
	reg(_metadata, self->fd, self->buf, QUARTER);
	ASSERT_EQ(0, rvc_dereg(self->fd, &mr[3]));
	reg(_metadata, self->fd, self->buf + MIB, RVC_PAGE);
	EXPECT_STAT(evict, 1);
}

TEST_F(cache, refused_for_the_limit_pins_nothing)
{
	struct rvc_mr mr;

	reg(_metadata, self->fd, self->buf, MIB);
	ASSERT_EQ(1024, rvc_proc_number("/proc/self/status", "VmPin"));
	ASSERT_ERRNO(ENOMEM, rvc_reg(self->fd, self->buf + MIB, MIB, RVC_ACCESS_TARGET, &mr));
	EXPECT_TRUE(RVC_WAIT_FOR(rvc_proc_number("/proc/self/status", "VmPin") == 1024));
}

/* The entry released longest ago goes first. */
TEST_F(cache, least_recently_released_goes_first)
{
	static const int order[] = { 2, 0, 3, 1 };
	struct rvc_mr mr[4];

	for (int i = 0; i < 4; i++)
		mr[i] = reg(_metadata, self->fd, self->buf + i * QUARTER, QUARTER);
	for (int i = 0; i < 4; i++)
		ASSERT_EQ(0, rvc_dereg(self->fd, &mr[order[i]]));
	reg(_metadata, self->fd, self->buf + MIB, QUARTER);
	EXPECT_STAT(evict, 1);
	EXPECT_TRUE(is_cached(_metadata, self->fd, self->buf, QUARTER));
	EXPECT_TRUE(is_cached(_metadata, self->fd, self->buf + QUARTER, QUARTER));
	EXPECT_TRUE(is_cached(_metadata, self->fd, self->buf + 3 * QUARTER, QUARTER));
	EXPECT_FALSE(is_cached(_metadata, self->fd, self->buf + 2 * QUARTER, QUARTER));
}

TEST_F(cache, hit_makes_an_entry_recent)
{
	for (int i = 0; i < 4; i++)
		reg_idle(_metadata, self->fd, self->buf + i * QUARTER, QUARTER);
	/* The oldest is used again; now the second is the oldest. */
	reg_idle(_metadata, self->fd, self->buf, QUARTER);
	reg(_metadata, self->fd, self->buf + MIB, QUARTER);
	EXPECT_STAT(evict, 1);
	EXPECT_TRUE(is_cached(_metadata, self->fd, self->buf, QUARTER));
	EXPECT_FALSE(is_cached(_metadata, self->fd, self->buf + QUARTER, QUARTER));
}

TEST_F(cache, entry_in_use_is_passed_over)
{
	reg(_metadata, self->fd, self->buf, QUARTER);
	for (int i = 1; i < 4; i++)
		reg_idle(_metadata, self->fd, self->buf + i * QUARTER, QUARTER);
	reg(_metadata, self->fd, self->buf + MIB, QUARTER);
	EXPECT_STAT(evict, 1);
	EXPECT_TRUE(is_cached(_metadata, self->fd, self->buf, QUARTER));
	EXPECT_FALSE(is_cached(_metadata, self->fd, self->buf + QUARTER, QUARTER));
}

/* As many as it takes, and no more. */
TEST_F(cache, several_go_for_a_large_one)
{
	for (int i = 0; i < 16; i++)
		reg_idle(_metadata, self->fd, self->buf + i * MIB / 16, MIB / 16);
	reg(_metadata, self->fd, self->buf + MIB, MIB / 4 + RVC_PAGE);
	EXPECT_STAT(evict, 5);
	EXPECT_STAT(count, 12);
	EXPECT_STAT(cache_size, 11 * MIB / 16 + MIB / 4 + RVC_PAGE);
}

/* The idle ones went for nothing. */
TEST_F(cache, too_few_idle_ones)
{
	struct rvc_mr mr;

	reg(_metadata, self->fd, self->buf, MIB / 2);
	reg_idle(_metadata, self->fd, self->buf + 2 * QUARTER, QUARTER);
	reg_idle(_metadata, self->fd, self->buf + 3 * QUARTER, QUARTER);
	EXPECT_ERRNO(ENOMEM, rvc_reg(self->fd, self->buf + MIB, 3 * QUARTER, RVC_ACCESS_TARGET,
				     &mr));
	EXPECT_STAT(full, 1);
	EXPECT_STAT(evict, 2);
	EXPECT_STAT(count, 1);
	EXPECT_STAT(cache_size, MIB / 2);
}

TEST_F(cache, larger_than_the_limit)
{
	struct rvc_mr mr;

	EXPECT_ERRNO(ENOMEM, rvc_reg(self->fd, self->buf, MIB + 1, RVC_ACCESS_TARGET, &mr));
	EXPECT_STAT(full, 1);
	EXPECT_STAT(count, 0);
}

/* ---- B01: memory that is replaced ---------------------------------------- */

static int by_munmap(void *addr, size_t length)
{
	return munmap(addr, length) || !rvc_alloc_at(addr, length);
}

static int by_mmap_over(void *addr, size_t length)
{
	return !rvc_alloc_at(addr, length);
}

static int by_mremap_away(void *addr, size_t length)
{
	return mremap(addr, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
		      rvc_alloc(length)) == MAP_FAILED || !rvc_alloc_at(addr, length);
}

static int by_mremap_onto(void *addr, size_t length)
{
	return mremap(rvc_alloc(length), length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
		      addr) == MAP_FAILED;
}

static int by_madv_dontneed(void *addr, size_t length)
{
	if (madvise(addr, length, MADV_DONTNEED))
		return 1;
	memset(addr, 0, length);
	return 0;
}

static int by_mprotect(void *addr, size_t length)
{
	return mprotect(addr, length, PROT_NONE) || mprotect(addr, length, PROT_READ | PROT_WRITE);
}

/* What a process does to memory under the eyes of the cache. */
FIXTURE(replaced)
{
	FIXTURE_DATA(cache) cache;
};

FIXTURE_VARIANT(replaced)
{
	int (*replace)(void *addr, size_t length);
};

FIXTURE_VARIANT_ADD(replaced, munmap) { .replace = by_munmap };
FIXTURE_VARIANT_ADD(replaced, mmap_over) { .replace = by_mmap_over };
FIXTURE_VARIANT_ADD(replaced, mremap_away) { .replace = by_mremap_away };
FIXTURE_VARIANT_ADD(replaced, mremap_onto) { .replace = by_mremap_onto };
FIXTURE_VARIANT_ADD(replaced, madv_dontneed) { .replace = by_madv_dontneed };
FIXTURE_VARIANT_ADD(replaced, mprotect) { .replace = by_mprotect };

FIXTURE_SETUP(replaced)
{
	cache_setup(_metadata, &self->cache, NULL);
}

FIXTURE_TEARDOWN(replaced)
{
	close(self->cache.fd);
}

/* The idle entry is gone at once, and the next registration is a new one. */
TEST_F(replaced, idle)
{
	FIXTURE_DATA(cache) *cache = &self->cache;
	struct rvc_mr old = reg_idle(_metadata, cache->fd, cache->buf, 8 * RVC_PAGE);
	struct rvc_mr new;

	ASSERT_EQ(0, variant->replace(cache->buf, 8 * RVC_PAGE));
	ASSERT_EQ(0, rvc_cache_stats(cache->fd, &cache->stats));
	EXPECT_EQ(0, cache->stats.count);
	EXPECT_EQ(0, cache->stats.cache_size);
	EXPECT_EQ(1, cache->stats.remove);
	new = reg(_metadata, cache->fd, cache->buf, 8 * RVC_PAGE);
	EXPECT_NE(old.handle, new.handle);
	ASSERT_EQ(0, rvc_cache_stats(cache->fd, &cache->stats));
	EXPECT_EQ(0, cache->stats.hit);
	EXPECT_EQ(2, cache->stats.miss);
}

/* One page of it is enough. */
TEST_F(replaced, idle_and_only_one_page)
{
	FIXTURE_DATA(cache) *cache = &self->cache;

	reg_idle(_metadata, cache->fd, cache->buf, 8 * RVC_PAGE);
	ASSERT_EQ(0, variant->replace(cache->buf + 7 * RVC_PAGE, RVC_PAGE));
	EXPECT_FALSE(is_cached(_metadata, cache->fd, cache->buf, 8 * RVC_PAGE));
}

/* The pages beside it are no part of it. */
TEST_F(replaced, neighbours)
{
	FIXTURE_DATA(cache) *cache = &self->cache;

	reg_idle(_metadata, cache->fd, cache->buf + RVC_PAGE, 8 * RVC_PAGE);
	ASSERT_EQ(0, variant->replace(cache->buf, RVC_PAGE));
	ASSERT_EQ(0, variant->replace(cache->buf + 9 * RVC_PAGE, RVC_PAGE));
	EXPECT_TRUE(is_cached(_metadata, cache->fd, cache->buf + RVC_PAGE, 8 * RVC_PAGE));
}

/*
 * The entry in use belongs to its holder alone: a new registration is not
 * answered with it, the holder can release it, and then it is gone.
 */
TEST_F(replaced, in_use)
{
	FIXTURE_DATA(cache) *cache = &self->cache;
	struct rvc_mr old = reg(_metadata, cache->fd, cache->buf, 8 * RVC_PAGE);
	struct rvc_mr new;

	ASSERT_EQ(0, variant->replace(cache->buf, 8 * RVC_PAGE));
	ASSERT_EQ(0, rvc_cache_stats(cache->fd, &cache->stats));
	EXPECT_EQ(1, cache->stats.count);
	EXPECT_EQ(1, cache->stats.inuse);
	EXPECT_EQ(0, cache->stats.remove);
	new = reg(_metadata, cache->fd, cache->buf, 8 * RVC_PAGE);
	EXPECT_NE(old.handle, new.handle);
	EXPECT_NE(old.rkey, new.rkey);
	ASSERT_EQ(0, rvc_cache_stats(cache->fd, &cache->stats));
	EXPECT_EQ(0, cache->stats.hit);
	EXPECT_EQ(2, cache->stats.inuse);
	EXPECT_EQ(0, rvc_dereg(cache->fd, &old));
	ASSERT_EQ(0, rvc_cache_stats(cache->fd, &cache->stats));
	EXPECT_EQ(1, cache->stats.evict);
	EXPECT_EQ(1, cache->stats.count);
	EXPECT_ERRNO(EINVAL, rvc_dereg(cache->fd, &old));
	EXPECT_EQ(0, rvc_dereg(cache->fd, &new));
	EXPECT_TRUE(is_cached(_metadata, cache->fd, cache->buf, 8 * RVC_PAGE));
}

/* Again and again, with two holders of the old one. */
TEST_F(replaced, in_use_many_times)
{
	FIXTURE_DATA(cache) *cache = &self->cache;
	struct rvc_mr old = reg(_metadata, cache->fd, cache->buf, 4 * RVC_PAGE);
	struct rvc_mr new;

	for (int i = 0; i < 100; i++) {
		reg(_metadata, cache->fd, cache->buf + RVC_PAGE, RVC_PAGE);
		ASSERT_EQ(0, variant->replace(cache->buf, 4 * RVC_PAGE));
		new = reg(_metadata, cache->fd, cache->buf, 4 * RVC_PAGE);
		ASSERT_NE(old.handle, new.handle);
		ASSERT_EQ(0, rvc_dereg(cache->fd, &old));
		ASSERT_EQ(0, rvc_dereg(cache->fd, &old));
		ASSERT_ERRNO(EINVAL, rvc_dereg(cache->fd, &old));
		old = new;
	}
	ASSERT_EQ(0, rvc_cache_stats(cache->fd, &cache->stats));
	EXPECT_EQ(1, cache->stats.count);
	EXPECT_EQ(100, cache->stats.evict);
	EXPECT_EQ(101, cache->stats.miss);
	EXPECT_EQ(100, cache->stats.hit);
}

/* ---- the least that PSM3 takes ------------------------------------------- */

#define WINDOW (128UL * 1024)
#define WINDOWS 160

/*
 * PSM3 refuses to run with less than 20 MiB: 32 windows that are received and 128
 * that are sent, at once. So many must fit, and not one more.
 */
TEST_F(cache, least_size_of_psm3)
{
	uint8_t *buf = rvt_alloc(_metadata, (WINDOWS + 1) * WINDOW);
	static struct rvc_mr mr[WINDOWS + 1];
	int fd;

	self->in.mr_cache_size = 20;
	fd = rvt_attach_with(_metadata, &self->in);
	for (int i = 0; i < WINDOWS; i++)
		mr[i] = reg(_metadata, fd, buf + i * WINDOW, WINDOW);
	EXPECT_ERRNO(ENOMEM, rvc_reg(fd, buf + WINDOWS * WINDOW, WINDOW, RVC_ACCESS_TARGET,
				     &mr[WINDOWS]));
	ASSERT_EQ(0, rvc_cache_stats(fd, &self->stats));
	EXPECT_EQ(20 * MIB, self->stats.cache_size);
	EXPECT_EQ(20 * MIB, self->stats.max_inuse_bytes);
	EXPECT_EQ(20, self->stats.limit_cache_size);
	EXPECT_EQ(1, self->stats.full);
	EXPECT_EQ(0, self->stats.failed);
	/* One that goes makes room for one. */
	ASSERT_EQ(0, rvc_dereg(fd, &mr[77]));
	mr[WINDOWS] = reg(_metadata, fd, buf + WINDOWS * WINDOW, WINDOW);
	ASSERT_EQ(0, rvc_cache_stats(fd, &self->stats));
	EXPECT_EQ(1, self->stats.evict);
	EXPECT_EQ(20 * MIB, self->stats.max_cache_size);
	EXPECT_EQ(WINDOWS, self->stats.count);
	EXPECT_ERRNO(EINVAL, rvc_dereg(fd, &mr[77]));
	close(fd);
}

/* ---- threads ------------------------------------------------------------- */

#define THREADS 4

struct worker {
	pthread_t thread;
	uint8_t *buf;
	unsigned int seed;
	int fd;
	int good;
	int error;
};

/* Registers and releases ranges that those of other threads overlap. */
static void *work(void *arg)
{
	struct worker *worker = arg;
	struct rvc_mr held[4] = { 0 };
	int ret;

	for (int i = 0; i < 400 && !worker->error; i++) {
		struct rvc_mr *mr = &held[i % 4];

		if (mr->handle)
			worker->error = -rvc_dereg(worker->fd, mr);
		mr->handle = 0;
		ret = rvc_reg(worker->fd, worker->buf + rand_r(&worker->seed) % 32 * RVC_PAGE,
			      (1 + rand_r(&worker->seed) % 8) * RVC_PAGE, RVC_ACCESS_TARGET, mr);
		/* The cache is small, and another thread replaces the memory. */
		if (ret && ret != -ENOMEM && ret != -EFAULT && ret != -EAGAIN && ret != -EBUSY)
			worker->error = -ret;
		worker->good += !ret;
	}
	for (int i = 0; i < 4; i++)
		if (held[i].handle && rvc_dereg(worker->fd, &held[i]))
			worker->error = EINVAL;
	return NULL;
}

/* Whatever they do to one another, at the end nobody holds anything. */
TEST_F(cache, threads)
{
	struct worker worker[THREADS];
	int good = 0;

	for (int i = 0; i < THREADS; i++) {
		worker[i] = (struct worker){ .buf = self->buf, .seed = i, .fd = self->fd };
		ASSERT_EQ(0, pthread_create(&worker[i].thread, NULL, work, &worker[i]));
	}
	for (int i = 0; i < 200; i++)
		ASSERT_NE(NULL, rvc_alloc_at(self->buf + i % 40 * RVC_PAGE, RVC_PAGE));
	for (int i = 0; i < THREADS; i++) {
		pthread_join(worker[i].thread, NULL);
		EXPECT_EQ(0, worker[i].error);
		good += worker[i].good;
	}
	EXPECT_LT(0, good);
	EXPECT_STAT(inuse, 0);
	EXPECT_STAT(hit + self->stats.miss, good);
	ASSERT_EQ(0, munmap(self->buf, 40 * RVC_PAGE));
	EXPECT_STAT(count, 0);
	EXPECT_STAT(cache_size, 0);
	EXPECT_EQ(self->stats.miss, self->stats.remove + self->stats.evict);
	EXPECT_TRUE(RVC_WAIT_FOR(rvc_proc_number("/proc/self/status", "VmPin") == 0));
}

/* ---- the model ----------------------------------------------------------- */

/*
 * A model of the cache that is too simple to be wrong: an array of entries, looked
 * through from end to end. Every step is made on both, and all counters must be
 * equal after it.
 */
#define PAGES 512
#define ENTRIES 256
#define LIMIT_PAGES 256

struct entry {
	bool present;
	bool freeing;
	unsigned int first;	/* page */
	unsigned int pages;
	uint32_t access;
	unsigned int references;
	uint64_t handle;
	uint64_t iova;
	uint64_t born;
	uint64_t released;	/* step of the last release: the order of leaving */
};

struct model {
	struct entry entry[ENTRIES];
	struct rv_cache_stats_params_out stats;
	bool mapped[PAGES];
	uint64_t clock;
	uint64_t random;
	uint8_t *buf;
	int fd;
};

static const uint32_t access_of[] = {
	RVC_ACCESS_TARGET,
	RVC_ACCESS_SOURCE,
	IBV_ACCESS_KERNEL | IB_UVERBS_ACCESS_LOCAL_WRITE,
};

static unsigned int draw(struct model *model, unsigned int below)
{
	model->random = model->random * 6364136223846793005 + 1442695040888963407;
	return (model->random >> 33) % below;
}

static bool covers(const struct entry *entry, unsigned int first, unsigned int pages,
		   uint32_t access)
{
	return entry->present && entry->access == access && entry->first <= first &&
	       first + pages <= entry->first + entry->pages;
}

static bool overlaps(const struct entry *entry, unsigned int first, unsigned int pages)
{
	return entry->present && entry->first < first + pages &&
	       first < entry->first + entry->pages;
}

/* Counters that follow from the entries. */
static void count_entries(struct model *model)
{
	struct rv_cache_stats_params_out *stats = &model->stats;

	stats->cache_size = stats->inuse_bytes = stats->count = stats->inuse = 0;
	for (int i = 0; i < ENTRIES; i++) {
		struct entry *entry = &model->entry[i];

		if (!entry->present)
			continue;
		stats->count++;
		stats->cache_size += entry->pages * RVC_PAGE;
		if (!entry->references)
			continue;
		stats->inuse++;
		stats->inuse_bytes += entry->pages * RVC_PAGE;
		if (entry->references > stats->max_refcount)
			stats->max_refcount = entry->references;
	}
	if (stats->count > stats->max_count)
		stats->max_count = stats->count;
	if (stats->cache_size > stats->max_cache_size)
		stats->max_cache_size = stats->cache_size;
	if (stats->inuse > stats->max_inuse)
		stats->max_inuse = stats->inuse;
	if (stats->inuse_bytes > stats->max_inuse_bytes)
		stats->max_inuse_bytes = stats->inuse_bytes;
}

/* The entry that leaves next for the limit. */
static struct entry *oldest(struct model *model)
{
	struct entry *found = NULL;

	for (int i = 0; i < ENTRIES; i++) {
		struct entry *entry = &model->entry[i];

		if (entry->present && !entry->references &&
		    (!found || entry->released < found->released))
			found = entry;
	}
	return found;
}

/* Makes room for pages; false if there is not enough. */
static bool make_room(struct model *model, unsigned int pages)
{
	struct entry *entry;

	count_entries(model);
	while (model->stats.cache_size / RVC_PAGE + pages > LIMIT_PAGES) {
		entry = oldest(model);
		if (!entry)
			return false;
		entry->present = false;
		model->stats.evict++;
		count_entries(model);
	}
	return true;
}

/* Looks for entries that answer a registration; tells the lowest start. */
static bool is_hit(struct model *model, unsigned int first, unsigned int pages, uint32_t access,
		   unsigned int *lowest)
{
	bool found = false;

	for (int i = 0; i < ENTRIES; i++) {
		struct entry *entry = &model->entry[i];

		if (!covers(entry, first, pages, access) || entry->freeing)
			continue;
		if (!found || entry->first < *lowest)
			*lowest = entry->first;
		found = true;
	}
	return found;
}

static struct entry *entry_of(struct model *model, uint64_t handle)
{
	for (int i = 0; i < ENTRIES; i++)
		if (model->entry[i].present && model->entry[i].handle == handle)
			return &model->entry[i];
	return NULL;
}

static struct entry *free_entry(struct model *model)
{
	for (int i = 0; i < ENTRIES; i++)
		if (!model->entry[i].present)
			return &model->entry[i];
	return NULL;
}

static bool all_mapped(struct model *model, unsigned int first, unsigned int pages)
{
	for (unsigned int i = first; i < first + pages; i++)
		if (!model->mapped[i])
			return false;
	return true;
}

static void step_reg(struct __test_metadata *_metadata, struct model *model)
{
	unsigned int first = draw(model, PAGES - 64);
	unsigned int start = first * RVC_PAGE + draw(model, 2) * draw(model, RVC_PAGE);
	unsigned int length = 1 + draw(model, draw(model, 8) ? 8 * RVC_PAGE : 60 * RVC_PAGE);
	unsigned int pages = (start + length + RVC_PAGE - 1) / RVC_PAGE - first;
	uint32_t access = access_of[draw(model, ARRAY_SIZE(access_of))];
	unsigned int lowest = 0;
	struct entry *entry;
	struct rvc_mr mr;
	int ret = rvc_reg(model->fd, model->buf + start, length, access, &mr);

	if (is_hit(model, first, pages, access, &lowest)) {
		ASSERT_EQ(0, ret);
		entry = entry_of(model, mr.handle);
		ASSERT_NE(NULL, entry);
		ASSERT_TRUE(covers(entry, first, pages, access));
		ASSERT_FALSE(entry->freeing);
		ASSERT_EQ(lowest, entry->first);
		ASSERT_EQ(entry->iova + start - entry->first * RVC_PAGE, mr.iova);
		entry->references++;
		model->stats.hit++;
		return;
	}
	if (!all_mapped(model, first, pages)) {
		ASSERT_EQ(-EFAULT, ret);
		model->stats.failed++;
		return;
	}
	if (!make_room(model, pages)) {
		ASSERT_EQ(-ENOMEM, ret);
		model->stats.full++;
		return;
	}
	ASSERT_EQ(0, ret);
	ASSERT_NE(0, mr.handle);
	ASSERT_EQ(NULL, entry_of(model, mr.handle));
	entry = free_entry(model);
	ASSERT_NE(NULL, entry);
	*entry = (struct entry){
		.present = true,
		.first = first,
		.pages = pages,
		.access = access,
		.references = 1,
		.born = ++model->clock,
		.handle = mr.handle,
		.iova = mr.iova - (start - first * RVC_PAGE),
	};
	model->stats.miss++;
}

/* An entry of the wanted kind, from a random place on. */
static struct entry *any_entry(struct model *model, bool in_use)
{
	unsigned int from = draw(model, ENTRIES);

	for (unsigned int i = 0; i < ENTRIES; i++) {
		struct entry *entry = &model->entry[(from + i) % ENTRIES];

		if (entry->present && !!entry->references == in_use)
			return entry;
	}
	return NULL;
}

static void step_dereg(struct __test_metadata *_metadata, struct model *model)
{
	struct entry *entry = any_entry(model, true);
	unsigned int skip, length;

	if (!entry)
		return;
	skip = draw(model, entry->pages * RVC_PAGE);
	length = draw(model, entry->pages * RVC_PAGE - skip + 1);
	ASSERT_EQ(0, rvc_dereg_raw(model->fd, entry->handle,
				   (uintptr_t)model->buf + entry->first * RVC_PAGE + skip, length,
				   entry->access));
	if (--entry->references)
		return;
	entry->released = ++model->clock;
	if (entry->freeing) {
		entry->present = false;
		model->stats.evict++;
	}
}

/* Releases that must fail: one too many, another's handle, another access. */
static void step_wrong_dereg(struct __test_metadata *_metadata, struct model *model)
{
	struct entry *entry = any_entry(model, draw(model, 2));
	struct entry *other = any_entry(model, true);
	uint64_t handle, addr;
	uint32_t access;

	if (!entry)
		return;
	handle = entry->handle;
	access = entry->access;
	addr = (uintptr_t)model->buf + entry->first * RVC_PAGE;
	if (entry->references) {
		if (other && !covers(other, entry->first, 1, access))
			handle = other->handle;
		else
			access ^= IB_UVERBS_ACCESS_REMOTE_READ;
	}
	ASSERT_EQ(-EINVAL, rvc_dereg_raw(model->fd, handle, addr, 1, access));
}

static void invalidate(struct model *model, unsigned int first, unsigned int pages)
{
	for (int i = 0; i < ENTRIES; i++) {
		struct entry *entry = &model->entry[i];

		if (!overlaps(entry, first, pages))
			continue;
		if (entry->references) {
			entry->freeing = true;
		} else {
			entry->present = false;
			model->stats.remove++;
		}
	}
}

static void evict(struct model *model, struct entry *entry)
{
	entry->present = false;
	model->stats.evict++;
}

/* The first in the tree: the lowest start, and of those the one that came first. */
static struct entry *first_idle(struct model *model, unsigned int first, unsigned int pages,
				uint32_t access)
{
	struct entry *found = NULL;

	for (int i = 0; i < ENTRIES; i++) {
		struct entry *entry = &model->entry[i];

		if (entry->references || !covers(entry, first, pages, access))
			continue;
		if (!found || entry->first < found->first ||
		    (entry->first == found->first && entry->born < found->born))
			found = entry;
	}
	return found;
}

static void step_evict_exact(struct __test_metadata *_metadata, struct model *model)
{
	struct entry *target = any_entry(model, false);
	unsigned int first = target ? target->first : draw(model, PAGES - 8);
	uint32_t access = access_of[draw(model, ARRAY_SIZE(access_of))];
	uint64_t addr = (uintptr_t)model->buf + first * RVC_PAGE;
	uint64_t length = draw(model, 2 * RVC_PAGE) + 1;
	struct rv_evict_params_out out;
	int ret = rvc_evict_exact(model->fd, addr, length, access, &out);
	struct entry *entry = first_idle(model, first, (length + RVC_PAGE - 1) / RVC_PAGE, access);

	if (!entry) {
		ASSERT_EQ(-ENOENT, ret);
		return;
	}
	ASSERT_EQ(0, ret);
	ASSERT_EQ(length, out.bytes);
	ASSERT_EQ(1, out.count);
	evict(model, entry);
}

static void step_evict_range(struct __test_metadata *_metadata, struct model *model)
{
	unsigned int first = draw(model, PAGES - 16);
	unsigned int pages = draw(model, 16);
	uint64_t bytes = 0, count = 0;
	struct rv_evict_params_out out;

	ASSERT_EQ(0, rvc_evict_range(model->fd, (uintptr_t)model->buf + first * RVC_PAGE,
				     pages * RVC_PAGE, &out));
	for (int i = 0; i < ENTRIES; i++) {
		struct entry *entry = &model->entry[i];

		if (!pages || entry->references || !overlaps(entry, first, pages))
			continue;
		bytes += entry->pages * RVC_PAGE;
		count++;
		evict(model, entry);
	}
	ASSERT_EQ(bytes, out.bytes);
	ASSERT_EQ(count, out.count);
}

static void step_evict_amount(struct __test_metadata *_metadata, struct model *model)
{
	uint64_t goal_bytes = draw(model, 16 * RVC_PAGE), goal_count = draw(model, 4);
	uint64_t bytes = 0, count = 0;
	struct rv_evict_params_out out;
	struct entry *entry;
	int ret = rvc_evict_amount(model->fd, goal_bytes, goal_count, &out);

	do {
		entry = oldest(model);
		if (!entry)
			break;
		bytes += entry->pages * RVC_PAGE;
		count++;
		evict(model, entry);
	} while (bytes < goal_bytes || count < goal_count);
	if (!count) {
		ASSERT_EQ(-ENOENT, ret);
		return;
	}
	ASSERT_EQ(0, ret);
	ASSERT_EQ(bytes, out.bytes);
	ASSERT_EQ(count, out.count);
}

static void step_evict(struct __test_metadata *_metadata, struct model *model)
{
	switch (draw(model, 3)) {
	case 0:
		return step_evict_exact(_metadata, model);
	case 1:
		return step_evict_range(_metadata, model);
	default:
		return step_evict_amount(_metadata, model);
	}
}

static void step_memory(struct __test_metadata *_metadata, struct model *model)
{
	unsigned int first = draw(model, PAGES - 8);
	unsigned int pages = 1 + draw(model, 8);
	void *addr = model->buf + first * RVC_PAGE;
	bool mapped = true;

	switch (draw(model, 4)) {
	case 0:
		ASSERT_EQ(0, munmap(addr, pages * RVC_PAGE));
		mapped = false;
		break;
	case 1:
		if (!all_mapped(model, first, pages))
			return;
		ASSERT_EQ(0, by_madv_dontneed(addr, pages * RVC_PAGE));
		break;
	default:
		ASSERT_NE(NULL, rvc_alloc_at(addr, pages * RVC_PAGE));
	}
	invalidate(model, first, pages);
	for (unsigned int i = first; i < first + pages; i++)
		model->mapped[i] = mapped;
}

static void compare(struct __test_metadata *_metadata, struct model *model, uint64_t seed, int step)
{
	struct rv_cache_stats_params_out stats;

	count_entries(model);
	ASSERT_EQ(0, rvc_cache_stats(model->fd, &stats));
#define SAME(member)                                                       \
	ASSERT_EQ(model->stats.member, stats.member)                       \
		TH_LOG(#member " differs in step %d; repeat with RV_SEED=%llu", step, \
		       (unsigned long long)seed)
	SAME(cache_size);
	SAME(max_cache_size);
	SAME(limit_cache_size);
	SAME(count);
	SAME(max_count);
	SAME(inuse);
	SAME(max_inuse);
	SAME(hole0);
	SAME(inuse_bytes);
	SAME(max_inuse_bytes);
	SAME(max_refcount);
	SAME(hole1);
	SAME(hit);
	SAME(miss);
	SAME(full);
	SAME(failed);
	SAME(remove);
	SAME(evict);
#undef SAME
}

static void run_model(struct __test_metadata *_metadata, FIXTURE_DATA(cache) *cache, uint64_t seed,
		      int steps)
{
	struct model *model = calloc(1, sizeof(*model));

	ASSERT_NE(NULL, model);
	TH_LOG("RV_SEED=%llu", (unsigned long long)seed);
	model->random = seed;
	model->fd = cache->fd;
	model->buf = cache->buf;
	model->stats.limit_cache_size = 1;
	memset(model->mapped, true, sizeof(model->mapped));
	for (int step = 0; step < steps; step++) {
		/* By turns more registrations than releases and fewer: full, then idle. */
		unsigned int regs = step / 100 % 2 ? 5 : 15;
		unsigned int kind = draw(model, 21);

		if (kind < regs)
			step_reg(_metadata, model);
		else if (kind < 17)
			step_dereg(_metadata, model);
		else if (kind < 18)
			step_wrong_dereg(_metadata, model);
		else if (kind < 19)
			step_evict(_metadata, model);
		else
			step_memory(_metadata, model);
		compare(_metadata, model, seed, step);
	}
	/* It went everywhere. */
	EXPECT_LT(0, model->stats.hit);
	EXPECT_LT(0, model->stats.full);
	EXPECT_LT(0, model->stats.failed);
	EXPECT_LT(0, model->stats.remove);
	EXPECT_LT(0, model->stats.evict);
	while (any_entry(model, true))
		step_dereg(_metadata, model);
	ASSERT_EQ(0, munmap(model->buf, PAGES * RVC_PAGE));
	invalidate(model, 0, PAGES);
	compare(_metadata, model, seed, steps);
	ASSERT_EQ(0, model->stats.count);
	EXPECT_TRUE(RVC_WAIT_FOR(rvc_proc_number("/proc/self/status", "VmPin") == 0));
	free(model);
}

FIXTURE(random_steps)
{
	FIXTURE_DATA(cache) cache;
};

FIXTURE_VARIANT(random_steps)
{
	uint64_t seed;
};

FIXTURE_VARIANT_ADD(random_steps, seed_1) { .seed = 1 };
FIXTURE_VARIANT_ADD(random_steps, seed_2) { .seed = 2 };
FIXTURE_VARIANT_ADD(random_steps, seed_3) { .seed = 3 };
/* RV_SEED of the environment, or one of its own for every run. */
FIXTURE_VARIANT_ADD(random_steps, seed_new) { .seed = 0 };

FIXTURE_SETUP(random_steps)
{
	cache_setup(_metadata, &self->cache, NULL);
}

FIXTURE_TEARDOWN(random_steps)
{
	close(self->cache.fd);
}

TEST_F(random_steps, counters_follow_the_model)
{
	const char *given = getenv("RV_SEED");
	uint64_t seed = variant->seed;

	if (!seed)
		seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	run_model(_metadata, &self->cache, seed, 2500);
}

RVT_MAIN
