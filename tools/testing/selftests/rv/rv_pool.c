// SPDX-License-Identifier: GPL-2.0
/*
 * The pool of regions for fast registration: regions are used again with new keys,
 * their memory is not pinned longer than they are valid, and whatever is too much
 * for the pool is registered without it.
 *
 * A key consists of an index, which names the region, and eight bits that change
 * with every use: that is how a test sees which region it got.
 */
#include "rv_reload.h"
#include "rv_test.h"

#define INDEX(key) ((key) >> 8)
#define LIST_LEN 8

FIXTURE(pool)
{
	struct rvc_port port;
	struct rv_attach_params_in in;
	struct rv_cache_stats_params_out stats;
	uint8_t *buf;
	int fd;
};

FIXTURE_SETUP(pool)
{
	ASSERT_EQ(0, rvc_registration("fast"));
	rvt_find_port(_metadata, &self->port);
	rvc_attach_init(&self->in, &self->port);
	self->in.fr_page_list_len = LIST_LEN;
	self->fd = rvt_attach_with(_metadata, &self->in);
	self->buf = rvt_alloc(_metadata, 64 * RVC_PAGE);
}

FIXTURE_TEARDOWN(pool)
{
	close(self->fd);
	rvc_registration("auto");
}

static bool nothing_is_pinned(void)
{
	return rvc_proc_number("/proc/self/status", "VmPin") == 0;
}

/* Registers, lets go, and replaces the memory: the region goes. Gives its key. */
static uint32_t use_once(struct __test_metadata *_metadata, int fd, void *buf, unsigned int pages)
{
	struct rvc_mr mr;

	ASSERT_EQ(0, rvc_reg(fd, buf, pages * RVC_PAGE, RVC_ACCESS_TARGET, &mr));
	ASSERT_EQ(0, rvc_dereg(fd, &mr));
	ASSERT_EQ(buf, rvc_alloc_at(buf, pages * RVC_PAGE));
	ASSERT_TRUE(RVC_WAIT_FOR(nothing_is_pinned()));
	return mr.rkey;
}

/* Uses regions until one was used before, or this many. */
static bool is_used_again(struct __test_metadata *_metadata, int fd, void *buf, unsigned int pages,
			  int times)
{
	uint32_t last = use_once(_metadata, fd, buf, pages);

	for (int i = 0; i < times; i++) {
		uint32_t key = use_once(_metadata, fd, buf, pages);

		if (INDEX(key) == INDEX(last))
			return true;
		last = key;
	}
	return false;
}

#define MANY 1000
#define FEW 20

/* ---- used again ---------------------------------------------------------- */

/* Whenever a region comes back, it has the next key: 256 times another one. */
TEST_F(pool, keys_advance)
{
	static uint32_t last[1 << 24];
	int again = 0;

	for (int i = 0; i < MANY && again < 300; i++) {
		uint32_t key = use_once(_metadata, self->fd, self->buf, 1);
		uint32_t before = last[INDEX(key)];

		if (before) {
			ASSERT_EQ((before & ~0xffU) | ((before + 1) & 0xff), key);
			again++;
		}
		last[INDEX(key)] = key;
	}
	EXPECT_EQ(300, again);
}

/* For any number of pages that a region of the pool lists, and with other pages. */
TEST_F(pool, all_lengths)
{
	for (int pages = 1; pages <= LIST_LEN; pages++) {
		EXPECT_TRUE(is_used_again(_metadata, self->fd, self->buf, pages, MANY))
			TH_LOG("%d pages", pages);
	}
}

/* Longer ones are registered all the same, in regions that are not kept. */
TEST_F(pool, longer_than_the_list)
{
	EXPECT_FALSE(is_used_again(_metadata, self->fd, self->buf, LIST_LEN + 1, FEW));
	EXPECT_FALSE(is_used_again(_metadata, self->fd, self->buf, 64, FEW));
	EXPECT_TRUE(is_used_again(_metadata, self->fd, self->buf, LIST_LEN, MANY));
}

/* An entry that leaves at its last release gives its region back, too. */
TEST_F(pool, last_release_of_what_has_changed)
{
	uint32_t last = 0;
	struct rvc_mr mr;
	bool again = false;

	for (int i = 0; i < MANY && !again; i++) {
		ASSERT_EQ(0, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
		ASSERT_EQ(self->buf, rvc_alloc_at(self->buf, RVC_PAGE));
		ASSERT_EQ(0, rvc_dereg(self->fd, &mr));
		ASSERT_TRUE(RVC_WAIT_FOR(nothing_is_pinned()));
		again = INDEX(mr.rkey) == INDEX(last);
		last = mr.rkey;
	}
	EXPECT_TRUE(again);
}

/* EVICT does not wait for a queue pair: it deregisters. */
TEST_F(pool, evicted)
{
	struct rv_evict_params_out out;
	struct rvc_mr mr;

	ASSERT_TRUE(is_used_again(_metadata, self->fd, self->buf, 1, MANY));
	for (int i = 0; i < FEW; i++) {
		ASSERT_EQ(0, rvc_reg(self->fd, self->buf, RVC_PAGE, RVC_ACCESS_TARGET, &mr));
		ASSERT_EQ(0, rvc_dereg(self->fd, &mr));
		ASSERT_EQ(0, rvc_evict_amount(self->fd, 0, 0, &out));
		ASSERT_TRUE(nothing_is_pinned());
	}
}

/* ---- too much for the pool ----------------------------------------------- */

#define HELD 400

/* More than there are regions, all at once; and then all go at once. */
TEST_F(pool, exhausted)
{
	uint8_t *buf = rvt_alloc(_metadata, 2 * HELD * RVC_PAGE);
	static struct rvc_mr mr[HELD];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < HELD; i++) {
			ASSERT_EQ(0, rvc_reg(self->fd, buf + 2 * i * RVC_PAGE, RVC_PAGE,
					     RVC_ACCESS_TARGET, &mr[i]))
				TH_LOG("registration %d", i);
		}
		for (int i = 0; i < HELD; i++)
			for (int j = 0; j < i; j++)
				ASSERT_NE(INDEX(mr[i].rkey), INDEX(mr[j].rkey));
		for (int i = 0; i < HELD; i++)
			ASSERT_EQ(0, rvc_dereg(self->fd, &mr[i]));
		ASSERT_EQ(buf, rvc_alloc_at(buf, 2 * HELD * RVC_PAGE));
		ASSERT_TRUE(RVC_WAIT_FOR(nothing_is_pinned()));
	}
	ASSERT_EQ(0, rvc_cache_stats(self->fd, &self->stats));
	EXPECT_EQ(0, self->stats.count);
	EXPECT_EQ(3 * HELD, self->stats.remove);
	EXPECT_EQ(0, self->stats.failed);
}

/* The file is closed while regions are on their way back. */
TEST_F(pool, closed_meanwhile)
{
	uint8_t *buf = rvt_alloc(_metadata, 2 * HELD * RVC_PAGE);
	struct rvc_mr mr;

	for (int round = 0; round < 5; round++) {
		int fd = rvt_attach_with(_metadata, &self->in);

		for (int i = 0; i < HELD; i++) {
			ASSERT_EQ(0, rvc_reg(fd, buf + 2 * i * RVC_PAGE, RVC_PAGE,
					     RVC_ACCESS_TARGET, &mr));
			ASSERT_EQ(0, rvc_dereg(fd, &mr));
		}
		if (round)
			ASSERT_EQ(buf, rvc_alloc_at(buf, 2 * HELD * RVC_PAGE));
		ASSERT_EQ(0, close(fd));
		ASSERT_TRUE(RVC_WAIT_FOR(nothing_is_pinned()));
	}
}

/* ---- no pool ------------------------------------------------------------- */

/* Regions longer than the device allows: no pool, and nothing else is missing. */
TEST_F(pool, longer_than_the_device_allows)
{
	static const uint32_t lengths[] = { 1 << 20, ~0U };

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		int fd;

		self->in.fr_page_list_len = lengths[i];
		fd = rvt_attach_with(_metadata, &self->in);
		EXPECT_FALSE(is_used_again(_metadata, fd, self->buf, 1, FEW));
		EXPECT_FALSE(is_used_again(_metadata, fd, self->buf, 64, FEW));
		close(fd);
	}
}

/* As long as the device allows is not too long. */
TEST_F(pool, as_long_as_the_device_allows)
{
	struct rv_attach_params params = { .in = self->in };
	int fd = rvt_open(_metadata);

	ASSERT_EQ(0, rvc_attach(fd, &params));
	ASSERT_NE(0, params.out.max_fmr_size);
	close(fd);
	self->in.fr_page_list_len = params.out.max_fmr_size / RVC_PAGE;
	fd = rvt_attach_with(_metadata, &self->in);
	EXPECT_TRUE(is_used_again(_metadata, fd, self->buf, 64, MANY));
	close(fd);
}

/* Caches of which the pool has other sizes do not get in each other's way. */
TEST_F(pool, several_files)
{
	int fd[4];

	for (int i = 0; i < 4; i++) {
		self->in.fr_page_list_len = 1 << i;
		fd[i] = rvt_attach_with(_metadata, &self->in);
	}
	for (int i = 0; i < 4; i++) {
		EXPECT_TRUE(is_used_again(_metadata, fd[i], self->buf, 1 << i, MANY));
		EXPECT_FALSE(is_used_again(_metadata, fd[i], self->buf, (1 << i) + 1, FEW));
	}
	for (int i = 0; i < 4; i++)
		close(fd[i]);
}

/* ---- parameters of the module -------------------------------------------- */

/* A file of an application that leaves the length of regions open. */
static int load(struct __test_metadata *_metadata, FIXTURE_DATA(pool) *self,
		const char *parameters)
{
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(0, rvt_reload(parameters));
	ASSERT_EQ(0, rvc_registration("fast"));
	self->in.fr_page_list_len = 0;
	self->fd = rvt_attach_with(_metadata, &self->in);
	return self->fd;
}

TEST_F(pool, parameter_of_no_pool)
{
	int fd = load(_metadata, self, "fr_batch_size=0 fr_page_list_len=8");

	EXPECT_FALSE(is_used_again(_metadata, fd, self->buf, 1, MANY));
	ASSERT_EQ(0, rvc_cache_stats(fd, &self->stats));
	EXPECT_EQ(0, self->stats.failed);
}

TEST_F(pool, parameter_of_the_list)
{
	int fd = load(_metadata, self, "fr_batch_size=64 fr_pool_wm_lo=8 fr_page_list_len=8");

	EXPECT_TRUE(is_used_again(_metadata, fd, self->buf, 8, MANY));
	EXPECT_FALSE(is_used_again(_metadata, fd, self->buf, 9, MANY));
}

/* An application's own length is the one that counts. */
TEST_F(pool, parameter_of_the_list_is_a_default)
{
	load(_metadata, self, "fr_page_list_len=8");
	close(self->fd);
	self->in.fr_page_list_len = 4;
	self->fd = rvt_attach_with(_metadata, &self->in);
	EXPECT_TRUE(is_used_again(_metadata, self->fd, self->buf, 4, MANY));
	EXPECT_FALSE(is_used_again(_metadata, self->fd, self->buf, 5, MANY));
}

RVT_MAIN
