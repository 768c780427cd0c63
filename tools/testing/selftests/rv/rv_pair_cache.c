// SPDX-License-Identifier: GPL-2.0
/*
 * B01 and B27 with data: what arrives is what the process sees, whatever it did to
 * its memory since it was registered. See lib/rv_end.h for the command line.
 */
#include <sys/syscall.h>

#include "rv_pair_fixture.h"

/* ---- B01 with data ------------------------------------------------------- */

static void by_munmap(struct __test_metadata *_metadata, struct actor *actor, uint64_t addr,
		      uint64_t length)
{
	ASSERT_EQ(0, actor_munmap(actor, addr, length));
	ASSERT_EQ(addr, actor_alloc(actor, addr, length));
}

static void by_mmap_over(struct __test_metadata *_metadata, struct actor *actor, uint64_t addr,
			 uint64_t length)
{
	ASSERT_EQ(addr, actor_alloc(actor, addr, length));
}

static void by_mremap(struct __test_metadata *_metadata, struct actor *actor, uint64_t addr,
		      uint64_t length)
{
	uint64_t other = actor_alloc(actor, 0, length);

	ASSERT_NE(0, other);
	ASSERT_EQ(addr, (uint64_t)actor_syscall(actor, SYS_mremap, other, length, length,
						MREMAP_MAYMOVE | MREMAP_FIXED, addr, 0));
}

static void by_madv_dontneed(struct __test_metadata *_metadata, struct actor *actor, uint64_t addr,
			     uint64_t length)
{
	ASSERT_EQ(0, actor_syscall(actor, SYS_madvise, addr, length, MADV_DONTNEED, 0, 0, 0));
}

/* The child's copy must not be the one that the device goes on using. */
static void by_fork(struct __test_metadata *_metadata, struct actor *actor, uint64_t addr,
		    uint64_t length)
{
	(void)addr;
	(void)length;
	ASSERT_LT(0, actor_fork(actor));
}

FIXTURE(fresh)
{
	FIXTURE_DATA(pair) pair;
};

FIXTURE_VARIANT(fresh)
{
	void (*replace)(struct __test_metadata *metadata, struct actor *actor, uint64_t addr,
			uint64_t length);
};

FIXTURE_VARIANT_ADD(fresh, munmap) { .replace = by_munmap };
FIXTURE_VARIANT_ADD(fresh, mmap_over) { .replace = by_mmap_over };
FIXTURE_VARIANT_ADD(fresh, mremap) { .replace = by_mremap };
FIXTURE_VARIANT_ADD(fresh, madv_dontneed) { .replace = by_madv_dontneed };
FIXTURE_VARIANT_ADD(fresh, fork) { .replace = by_fork };

FIXTURE_SETUP(fresh)
{
	FIXTURE_VARIANT(pair) to_peer = { .from_remote = false };

	pair_setup(_metadata, &self->pair, &to_peer);
}

FIXTURE_TEARDOWN(fresh)
{
	actor_stop(&self->pair.from.actor);
	actor_stop(&self->pair.to.actor);
}

/* How often: some times, or until something rare would have shown. */
static int rounds(void)
{
	return getenv("RV_LONG") ? 1000 : 20;
}

/* The source is replaced: what is sent is what the process sees. */
TEST_F(fresh, source_that_was_idle)
{
	struct end *from = &self->pair.from, *to = &self->pair.to;
	struct buffer target = reg_buffer(_metadata, to, 4 * RVC_PAGE);
	struct buffer source = reg_buffer(_metadata, from, 4 * RVC_PAGE);
	const int last = rounds();

	for (int i = 0; i < last; i++) {
		ASSERT_EQ(0, actor_dereg(&from->actor, from->fd, &source.mr));
		variant->replace(_metadata, &from->actor, source.addr, source.length);
		ASSERT_EQ(0, actor_fill(&from->actor, source.addr, source.length, 100 + i, 0));
		ASSERT_EQ(0, actor_reg(&from->actor, from->fd, source.addr, source.length,
				       RVC_ACCESS_TARGET, &source.mr));
		write_once(_metadata, from, &source, to, &target);
		ASSERT_EQ(-1, actor_check(&to->actor, target.addr, target.length, 100 + i, 0))
			TH_LOG("round %d", i);
	}
}

/* The target is replaced: what arrives is where the process sees it. */
TEST_F(fresh, target_that_was_idle)
{
	struct end *from = &self->pair.from, *to = &self->pair.to;
	struct buffer target = reg_buffer(_metadata, to, 4 * RVC_PAGE);
	struct buffer source = reg_buffer(_metadata, from, 4 * RVC_PAGE);
	const int last = rounds();

	for (int i = 0; i < last; i++) {
		ASSERT_EQ(0, actor_dereg(&to->actor, to->fd, &target.mr));
		variant->replace(_metadata, &to->actor, target.addr, target.length);
		ASSERT_EQ(0, actor_fill(&to->actor, target.addr, target.length, 2, 0));
		ASSERT_EQ(0, actor_reg(&to->actor, to->fd, target.addr, target.length,
				       RVC_ACCESS_TARGET, &target.mr));
		ASSERT_EQ(0, actor_fill(&from->actor, source.addr, source.length, 100 + i, 0));
		write_once(_metadata, from, &source, to, &target);
		ASSERT_EQ(-1, actor_check(&to->actor, target.addr, target.length, 100 + i, 0))
			TH_LOG("round %d", i);
	}
}

/*
 * The source is replaced while a registration of it is held. The new one sends
 * the new data; a write through the old one sends what was there before.
 */
TEST_F(fresh, source_in_use)
{
	struct end *from = &self->pair.from, *to = &self->pair.to;
	struct buffer target = reg_buffer(_metadata, to, 4 * RVC_PAGE);
	struct buffer source = reg_buffer(_metadata, from, 4 * RVC_PAGE);
	struct buffer old;
	const int last = rounds();

	ASSERT_EQ(0, actor_fill(&from->actor, source.addr, source.length, 99, 0));
	for (int i = 0; i < last; i++) {
		old = source;
		variant->replace(_metadata, &from->actor, source.addr, source.length);
		ASSERT_EQ(0, actor_fill(&from->actor, source.addr, source.length, 100 + i, 0));
		ASSERT_EQ(0, actor_reg(&from->actor, from->fd, source.addr, source.length,
				       RVC_ACCESS_TARGET, &source.mr));
		write_once(_metadata, from, &source, to, &target);
		ASSERT_EQ(-1, actor_check(&to->actor, target.addr, target.length, 100 + i, 0))
			TH_LOG("round %d", i);
		ASSERT_EQ(0, actor_dereg(&from->actor, from->fd, &old.mr));
	}
}

/* Memory that goes while it is being sent: the write ends well all the same. */
TEST_F(pair, unmapped_while_it_is_sent)
{
	struct buffer target = reg_buffer(_metadata, &self->to, MIB);
	struct buffer source = reg_buffer(_metadata, &self->from, MIB);
	struct rv_post_write_params params;

	ASSERT_EQ(0, actor_fill(&self->from.actor, source.addr, source.length, 5, 0));
	write_init(&params, &self->from, &source, &self->to, &target, 0);
	ASSERT_EQ(0, post(&self->from, &params));
	ASSERT_EQ(0, actor_dereg(&self->from.actor, self->from.fd, &source.mr));
	ASSERT_EQ(0, actor_munmap(&self->from.actor, source.addr, source.length));
	EXPECT_EQ(0, next_event(_metadata, &self->from).wc.status);
	next_event(_metadata, &self->to);
	EXPECT_EQ(-1, actor_check(&self->to.actor, target.addr, target.length, 5, 0));
}

PAIR_MAIN
