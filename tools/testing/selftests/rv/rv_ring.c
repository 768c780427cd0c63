// SPDX-License-Identifier: GPL-2.0
/*
 * The event ring as memory: who may map what, and for how long it lives. Events
 * in it need a peer and are in rv_pair.c.
 */
#include <sys/resource.h>

#include "rv_test.h"

#define ENTRIES 1000
#define LENGTH RV_RING_ALLOC_LEN(ENTRIES)	/* 65064: 16 pages, not whole ones */
#define ROUNDED (16 * RVC_PAGE)

FIXTURE(ring)
{
	struct rvc_port port;
	struct rv_attach_params_in in;
	int fd;
};

FIXTURE_SETUP(ring)
{
	rvt_find_port(_metadata, &self->port);
	rvc_attach_init(&self->in, &self->port);
	self->in.cq_entries = ENTRIES;
	self->fd = rvt_attach_with(_metadata, &self->in);
}

FIXTURE_TEARDOWN(ring)
{
	close(self->fd);
}

/* The address, or -errno. */
static long map(int fd, size_t length, int prot, int flags, off_t offset)
{
	void *p = mmap(NULL, length, prot, flags, fd, offset);

	return p == MAP_FAILED ? -errno : (long)p;
}

static long map_ring(int fd, size_t length)
{
	return map(fd, length, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
}

/* ---- refused ------------------------------------------------------------- */

TEST(map_before_attach)
{
	EXPECT_EQ(-EINVAL, map_ring(rvt_open(_metadata), RVC_PAGE));
}

TEST_F(ring, map_without_ring)
{
	int fd;

	self->in.cq_entries = 0;
	fd = rvt_attach_with(_metadata, &self->in);
	EXPECT_EQ(-EINVAL, map_ring(fd, RVC_PAGE));
}

TEST_F(ring, map_too_little)
{
	EXPECT_EQ(-EINVAL, map_ring(self->fd, RVC_PAGE));
	EXPECT_EQ(-EINVAL, map_ring(self->fd, ROUNDED - RVC_PAGE));
	EXPECT_LT(0, map_ring(self->fd, ROUNDED));
}

TEST_F(ring, map_at_an_offset)
{
	EXPECT_EQ(-EINVAL, map(self->fd, ROUNDED, PROT_READ, MAP_SHARED, RVC_PAGE));
	EXPECT_EQ(-EINVAL, map(self->fd, ROUNDED, PROT_READ, MAP_SHARED, 1L << 40));
	EXPECT_LT(0, map_ring(self->fd, ROUNDED));
}

TEST_F(ring, map_twice)
{
	EXPECT_LT(0, map_ring(self->fd, LENGTH));
	EXPECT_EQ(-EINVAL, map_ring(self->fd, LENGTH));
}

/* Once is once, even if the first mapping is gone. */
TEST_F(ring, map_again_after_unmap)
{
	long addr = map_ring(self->fd, LENGTH);

	ASSERT_LT(0, addr);
	ASSERT_EQ(0, munmap((void *)addr, LENGTH));
	EXPECT_EQ(-EINVAL, map_ring(self->fd, LENGTH));
}

/* A copy of the pages could not be grown or moved over other memory. */
TEST_F(ring, mapping_cannot_be_expanded)
{
	long addr = map_ring(self->fd, LENGTH);

	ASSERT_LT(0, addr);
	EXPECT_EQ(MAP_FAILED, mremap((void *)addr, ROUNDED, 2 * ROUNDED, MREMAP_MAYMOVE));
}

/* ---- accepted ------------------------------------------------------------ */

/* The length that the header gives need not be whole pages. */
TEST_F(ring, map_its_length)
{
	EXPECT_LT(0, map_ring(self->fd, LENGTH));
}

TEST_F(ring, map_as_psm3_does)
{
	EXPECT_LT(0, map(self->fd, LENGTH, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_POPULATE | MAP_LOCKED, 0));
}

TEST_F(ring, map_for_reading)
{
	long addr = map(self->fd, LENGTH, PROT_READ, MAP_SHARED, 0);

	ASSERT_LT(0, addr);
	EXPECT_EQ(0, ((struct rv_ring_header *)addr)->tail);
}

TEST_F(ring, sizes)
{
	static const uint32_t entries[] = { 1, 2, 61, 62, 192, 4096, 10000 };

	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		struct rv_ring_header *header;
		int fd;

		self->in.cq_entries = entries[i];
		fd = rvt_attach_with(_metadata, &self->in);
		header = (void *)map_ring(fd, RV_RING_ALLOC_LEN(entries[i]));
		ASSERT_LT(0, (long)header)
			TH_LOG("%u entries", entries[i]);
		/* The last entry is there, and memory. */
		memset(&header->entries[entries[i] - 1], 0x5a, sizeof(struct rv_event));
	}
}

TEST_F(ring, starts_empty_and_zero)
{
	long addr = map_ring(self->fd, LENGTH);
	static const uint8_t zeros[ROUNDED];

	ASSERT_LT(0, addr);
	EXPECT_EQ(0, memcmp((void *)addr, zeros, ROUNDED));
}

/* Written by the application, and so shared memory and not a copy. */
TEST_F(ring, is_shared_with_a_forked_child)
{
	struct rv_ring_header *header = (void *)map_ring(self->fd, LENGTH);

	ASSERT_LT(0, (long)header);
	header->head = 5;
	EXPECT_EQ(5, RVT_IN_CHILD(({
			  uint32_t seen = header->head;

			  header->head = 7;
			  (int)seen;
		  })));
	EXPECT_EQ(7, header->head);
}

static int touch(const volatile uint8_t *p)
{
	return *p;
}

/* A longer mapping is accepted; there is nothing behind the ring. */
TEST_F(ring, longer_mapping_ends_with_sigbus)
{
	long addr = map_ring(self->fd, 4 * ROUNDED);

	ASSERT_LT(0, addr);
	EXPECT_EQ(0, RVT_IN_CHILD(touch((void *)(addr + ROUNDED - 1))));
	EXPECT_EQ(256 + SIGBUS, RVT_IN_CHILD(touch((void *)(addr + ROUNDED))));
	EXPECT_EQ(256 + SIGBUS, RVT_IN_CHILD(touch((void *)(addr + 4 * ROUNDED - 1))));
}

/* The ring is the application's own business: every byte may be scribbled on. */
TEST_F(ring, scribbling_is_harmless)
{
	struct rv_event_stats_params_out stats;
	long addr = map_ring(self->fd, LENGTH);

	ASSERT_LT(0, addr);
	memset((void *)addr, 0xff, ROUNDED);
	EXPECT_EQ(0, rvc_event_stats(self->fd, &stats));
	EXPECT_EQ(0, close(self->fd));
	memset((void *)addr, 0xff, ROUNDED);
	EXPECT_EQ(0, munmap((void *)addr, ROUNDED));
}

/* ---- life ---------------------------------------------------------------- */

/* A mapping holds the file: the place in the job stays taken until it goes. */
TEST_F(ring, mapping_outlives_the_descriptor)
{
	struct rv_attach_params params;
	int fd, other;
	long addr;

	rvc_job_key(self->in.job_key);
	self->in.index_bits = 0;
	fd = rvt_attach_with(_metadata, &self->in);
	addr = map_ring(fd, LENGTH);
	ASSERT_LT(0, addr);
	close(fd);
	EXPECT_EQ(0, ((struct rv_ring_header *)addr)->tail);
	other = rvt_open(_metadata);
	params.in = self->in;
	EXPECT_ERRNO(ENOMEM, rvc_attach(other, &params));
	ASSERT_EQ(0, munmap((void *)addr, LENGTH));
	params.in = self->in;
	EXPECT_EQ(0, rvc_attach(other, &params));
}

/* Part of the mapping is enough to hold it. */
TEST_F(ring, part_of_the_mapping_outlives_the_descriptor)
{
	long addr = map_ring(self->fd, LENGTH);

	ASSERT_LT(0, addr);
	ASSERT_EQ(0, munmap((void *)addr, ROUNDED - RVC_PAGE));
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(0, touch((void *)(addr + ROUNDED - RVC_PAGE)));
}

/* A ring of the largest size is no burden for memory that is in pieces. */
TEST_F(ring, many_large_rings)
{
	self->in.cq_entries = RV_MAX_CQ_ENTRIES;
	for (int i = 0; i < 20; i++) {
		int fd = rvt_attach_with(_metadata, &self->in);

		ASSERT_LT(0, map_ring(fd, RV_RING_ALLOC_LEN(RV_MAX_CQ_ENTRIES)));
	}
}

RVT_MAIN
