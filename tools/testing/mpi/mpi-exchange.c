// SPDX-License-Identifier: GPL-2.0
/*
 * Exchanges data by MPI in three ways and compares every byte that arrives.
 *
 *	ring		what a rank sends goes once around, and must come back to it
 *	alltoall	every rank has other data for every rank
 *	halo		neighbours on a torus exchange the edges of their tiles; columns are strided
 *
 * Each way is one test in the TAP stream of rank 0. All data follow from the seed, the round,
 * the way, the size and the rank that made it, so that no message can pass for another.
 *
 * At the end each rank says what it sent to other hosts, so that one can tell from the counters
 * of what is underneath whether the messages went the way they should have. Alltoall counts as
 * one message from each rank to each: what the library makes of large blocks.
 *
 * Read from main() upwards.
 */
#include <errno.h>
#include <getopt.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SIZES	256
#define MAX_SIZE	(64UL << 20)
#define SHOWN_ERRORS	3	/* per rank and way; the rest is counted */
#define GUARD		64	/* bytes behind a buffer that nothing may touch */
#define GUARD_BYTE	0xa5

struct options {
	size_t sizes[MAX_SIZES];
	unsigned int num_sizes;
	unsigned int rounds;
	uint64_t seed;
	size_t threshold;
	const char *until;	/* go on until this file is there */
	const char *ways;
};

/* What a rank sent to ranks on other hosts. */
struct traffic {
	uint64_t messages;
	uint64_t bytes;
	uint64_t large_messages;	/* those above the threshold */
	uint64_t large_bytes;
};

struct rank {
	int number;
	int count;
	char host[MPI_MAX_PROCESSOR_NAME];
	bool *is_near;	/* by rank: on the same host */
	struct traffic sent;
};

/* One way of exchange of one size in one round. */
struct step {
	const struct options *options;
	struct rank *me;
	const char *way;
	size_t size;
	unsigned int round;
	uint64_t errors;	/* of this way so far */
};

/* ---- ends ------------------------------------------------------------------ */

/* One line, then the end of all ranks. */
static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list args;
	char text[256];
	int rank = 0;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	fprintf(stderr, "mpi-exchange: rank %d: %s\n", rank, text);
	MPI_Abort(MPI_COMM_WORLD, 2);
	abort();
}

static void __attribute__((format(printf, 2, 3))) mismatch(struct step *step, const char *format, ...)
{
	va_list args;
	char text[256];

	if (step->errors++ >= SHOWN_ERRORS)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "mpi-exchange: rank %d on %s: %s of %zu bytes, round %u: %s\n",
		step->me->number, step->me->host, step->way, step->size, step->round, text);
}

/* ---- data ------------------------------------------------------------------ */

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

/* The key of the data that @from made, the @part-th of them in this step. */
static uint64_t key_of(const struct step *step, int from, unsigned int part)
{
	uint64_t key = mix(step->options->seed ^ step->way[0]);

	key = mix(key ^ step->size);
	key = mix(key ^ step->round);
	return mix(key ^ ((uint64_t)from << 32 | part));
}

/* The index-th word of the data of a key; cheap, as all of it is made twice. */
static uint64_t word_of(uint64_t key, size_t index)
{
	uint64_t x = (key + index) * 0x9e3779b97f4a7c15;

	return x ^ (x >> 29);
}

static void fill(uint8_t *data, size_t size, uint64_t key)
{
	uint64_t word;
	size_t i;

	for (i = 0; i + sizeof(word) <= size; i += sizeof(word)) {
		word = word_of(key, i / sizeof(word));
		memcpy(data + i, &word, sizeof(word));
	}
	word = word_of(key, i / sizeof(word));
	memcpy(data + i, &word, size - i);
}

/* The index of the first wrong byte, or @size. */
static size_t first_wrong(const uint8_t *data, size_t size, uint64_t key)
{
	uint8_t right[sizeof(uint64_t)];
	uint64_t word, is;
	size_t i, left;

	for (i = 0; i < size; i += sizeof(word)) {
		left = size - i < sizeof(word) ? size - i : sizeof(word);
		word = word_of(key, i / sizeof(word));
		memcpy(&is, data + i, left);
		if (!memcmp(&is, &word, left))
			continue;
		memcpy(right, &word, sizeof(word));
		while (data[i] == right[i % sizeof(word)])
			i++;
		return i;
	}
	return size;
}

static void check(struct step *step, const uint8_t *data, size_t size, int from, unsigned int part)
{
	uint64_t key = key_of(step, from, part);
	size_t wrong = first_wrong(data, size, key);
	uint64_t word = word_of(key, wrong / sizeof(word));

	if (wrong == size)
		return;
	mismatch(step, "byte %zu of part %u made by rank %d is 0x%02x, not 0x%02x", wrong, part,
		 from, data[wrong], ((uint8_t *)&word)[wrong % sizeof(word)]);
}

/* Memory of @size bytes with a guard behind it. */
static uint8_t *allocate(size_t size)
{
	uint8_t *data = malloc(size + GUARD);

	if (!data)
		die("no memory for %zu bytes", size);
	memset(data, 0, size);
	memset(data + size, GUARD_BYTE, GUARD);
	return data;
}

static void release(struct step *step, uint8_t *data, size_t size)
{
	for (size_t i = 0; i < GUARD; i++) {
		if (data[size + i] == GUARD_BYTE)
			continue;
		mismatch(step, "byte %zu behind a buffer of %zu bytes was overwritten", i, size);
		break;
	}
	free(data);
}

static void count_sent(struct rank *me, int to, size_t size, size_t threshold)
{
	if (me->is_near[to])
		return;
	me->sent.messages++;
	me->sent.bytes += size;
	if (size <= threshold)
		return;
	me->sent.large_messages++;
	me->sent.large_bytes += size;
}

/* ---- the three ways -------------------------------------------------------- */

static void ring(struct step *step)
{
	struct rank *me = step->me;
	int right = (me->number + 1) % me->count;
	int left = (me->number + me->count - 1) % me->count;
	uint8_t *in = allocate(step->size), *out = allocate(step->size), *swap;

	fill(out, step->size, key_of(step, me->number, 0));
	for (int hop = 1; hop <= me->count; hop++) {
		MPI_Sendrecv(out, step->size, MPI_BYTE, right, hop, in, step->size, MPI_BYTE, left,
			     hop, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		count_sent(me, right, step->size, step->options->threshold);
		check(step, in, step->size, (me->number + me->count - hop) % me->count, 0);
		swap = in;
		in = out;
		out = swap;
		memset(in, 0, step->size);
	}
	release(step, in, step->size);
	release(step, out, step->size);
}

static void alltoall(struct step *step)
{
	struct rank *me = step->me;
	size_t size = step->size, all = size * me->count;
	uint8_t *in = allocate(all), *out = allocate(all);

	for (int to = 0; to < me->count; to++) {
		fill(out + to * size, size, key_of(step, me->number, to));
		if (to != me->number)
			count_sent(me, to, size, step->options->threshold);
	}
	MPI_Alltoall(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD);
	for (int from = 0; from < me->count; from++)
		check(step, in + from * size, size, from, me->number);
	release(step, in, all);
	release(step, out, all);
}

/*
 * A tile of cells with a border of one cell for what the neighbours have: a row is contiguous,
 * a column is strided.
 *
 *	. n n .		k inner cells in each direction, as many as divide the size,
 *	w i i e		1 to 4; an edge of k cells is one message of that size
 *	w i i e
 *	. s s .
 */
struct tile {
	unsigned int inner;	/* k */
	unsigned int width;	/* k + 2 */
	size_t cell;		/* bytes */
	uint8_t *data;
	size_t size;
};

enum edge { WEST, EAST, NORTH, SOUTH, EDGES };

static void tile_make(struct tile *tile, size_t size)
{
	tile->inner = 4;
	while (size % tile->inner)
		tile->inner--;
	tile->width = tile->inner + 2;
	tile->cell = size / tile->inner;
	tile->size = tile->width * tile->width * tile->cell;
	tile->data = allocate(tile->size);
}

static uint8_t *tile_at(const struct tile *tile, unsigned int row, unsigned int column)
{
	return tile->data + (row * tile->width + column) * tile->cell;
}

/* The i-th cell of an edge: of the border (@depth 0), or of the inner cells beside it (1). */
static uint8_t *edge_at(const struct tile *tile, enum edge edge, unsigned int depth, unsigned int i)
{
	unsigned int far = tile->width - 1 - depth;

	switch (edge) {
	case WEST:
		return tile_at(tile, i + 1, depth);
	case EAST:
		return tile_at(tile, i + 1, far);
	case NORTH:
		return tile_at(tile, depth, i + 1);
	default:
		return tile_at(tile, far, i + 1);
	}
}

static unsigned int part_of(const struct tile *tile, unsigned int row, unsigned int column)
{
	return (row - 1) * tile->inner + column - 1;
}

static void tile_fill(struct step *step, const struct tile *tile)
{
	for (unsigned int row = 1; row <= tile->inner; row++) {
		for (unsigned int column = 1; column <= tile->inner; column++)
			fill(tile_at(tile, row, column), tile->cell,
			     key_of(step, step->me->number, part_of(tile, row, column)));
	}
}

static void tile_check(struct step *step, const struct tile *tile, const int next[EDGES])
{
	unsigned int k = tile->inner;

	for (unsigned int i = 0; i < k; i++) {
		check(step, edge_at(tile, WEST, 0, i), tile->cell, next[WEST],
		      part_of(tile, i + 1, k));
		check(step, edge_at(tile, EAST, 0, i), tile->cell, next[EAST],
		      part_of(tile, i + 1, 1));
		check(step, edge_at(tile, NORTH, 0, i), tile->cell, next[NORTH],
		      part_of(tile, k, i + 1));
		check(step, edge_at(tile, SOUTH, 0, i), tile->cell, next[SOUTH],
		      part_of(tile, 1, i + 1));
		for (unsigned int column = 1; column <= k; column++)
			check(step, tile_at(tile, i + 1, column), tile->cell, step->me->number,
			      part_of(tile, i + 1, column));
	}
}

static void halo_exchange(struct step *step, const struct tile *tile, MPI_Comm torus,
			  const int next[EDGES])
{
	static const enum edge across[EDGES] = { EAST, WEST, SOUTH, NORTH };
	MPI_Datatype row, column;
	MPI_Request requests[2 * EDGES];
	unsigned int n = 0;

	MPI_Type_contiguous(step->size, MPI_BYTE, &row);
	MPI_Type_vector(tile->inner, tile->cell, tile->width * tile->cell, MPI_BYTE, &column);
	MPI_Type_commit(&row);
	MPI_Type_commit(&column);
	for (enum edge edge = 0; edge < EDGES; edge++) {
		MPI_Datatype type = edge == WEST || edge == EAST ? column : row;

		/* The tag is the edge of the receiver. */
		MPI_Irecv(edge_at(tile, edge, 0, 0), 1, type, next[edge], edge, torus,
			  &requests[n++]);
		MPI_Isend(edge_at(tile, edge, 1, 0), 1, type, next[edge], across[edge], torus,
			  &requests[n++]);
		count_sent(step->me, next[edge], step->size, step->options->threshold);
	}
	MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
	MPI_Type_free(&row);
	MPI_Type_free(&column);
}

static void halo(struct step *step)
{
	int sizes[2] = { 0, 0 }, periods[2] = { 1, 1 }, next[EDGES];
	struct tile tile;
	MPI_Comm torus;

	/* Not reordered: the ranks are those of the world. */
	MPI_Dims_create(step->me->count, 2, sizes);
	MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 0, &torus);
	MPI_Cart_shift(torus, 0, 1, &next[NORTH], &next[SOUTH]);
	MPI_Cart_shift(torus, 1, 1, &next[WEST], &next[EAST]);
	tile_make(&tile, step->size);
	tile_fill(step, &tile);
	halo_exchange(step, &tile, torus, next);
	tile_check(step, &tile, next);
	release(step, tile.data, tile.size);
	MPI_Comm_free(&torus);
}

static const struct {
	const char *name;
	void (*exchange)(struct step *step);
} ways[] = {
	{ "ring", ring },
	{ "alltoall", alltoall },
	{ "halo", halo },
};

#define WAYS	(sizeof(ways) / sizeof(ways[0]))

static bool is_chosen(const struct options *options, const char *way)
{
	const char *at = strstr(options->ways, way);
	size_t len = strlen(way);

	while (at && !((at == options->ways || at[-1] == ',') && (!at[len] || at[len] == ',')))
		at = strstr(at + 1, way);
	return at;
}

/* ---- the run --------------------------------------------------------------- */

/* Rank 0 knows whether it is enough, and tells the others. */
static bool go_on(const struct options *options, const struct rank *me, unsigned int round)
{
	int more = round < options->rounds;

	if (options->until) {
		more = me->number == 0 && access(options->until, F_OK) != 0;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	return more;
}

/* One round of one way, all sizes. Returns the errors of all ranks. */
static uint64_t run_way(const struct options *options, struct rank *me, unsigned int way,
			unsigned int round)
{
	struct step step = { .options = options, .me = me, .round = round };
	uint64_t errors;
	double start = MPI_Wtime();

	step.way = ways[way].name;
	for (unsigned int i = 0; i < options->num_sizes; i++) {
		step.size = options->sizes[i];
		ways[way].exchange(&step);
	}
	if (step.errors > SHOWN_ERRORS)
		fprintf(stderr, "mpi-exchange: rank %d on %s: %s: %llu errors in all\n",
			me->number, me->host, step.way, (unsigned long long)step.errors);
	MPI_Allreduce(&step.errors, &errors, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	if (me->number == 0) {
		printf("# round %u, %s: %u sizes from %zu to %zu bytes in %.1f s, %llu errors\n",
		       round, step.way, options->num_sizes, options->sizes[0],
		       options->sizes[options->num_sizes - 1], MPI_Wtime() - start,
		       (unsigned long long)errors);
		fflush(stdout);
	}
	return errors;
}

/* Each pair of ranks talks once in both directions, so that all connections are there. */
static void meet(const struct rank *me)
{
	char in, out = 1;

	for (int shift = 1; shift < me->count; shift++)
		MPI_Sendrecv(&out, 1, MPI_CHAR, (me->number + shift) % me->count, 0, &in, 1,
			     MPI_CHAR, (me->number + me->count - shift) % me->count, 0,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
}

static bool run(const struct options *options, struct rank *me)
{
	uint64_t errors[WAYS] = { 0 }, all = 0;
	unsigned int round, number = 0;

	meet(me);
	for (round = 0; go_on(options, me, round); round++) {
		for (unsigned int way = 0; way < WAYS; way++) {
			if (is_chosen(options, ways[way].name))
				errors[way] += run_way(options, me, way, round);
		}
	}
	for (unsigned int way = 0; way < WAYS; way++) {
		all += errors[way];
		if (me->number == 0 && is_chosen(options, ways[way].name))
			printf("%sok %u %s, %u rounds of %u sizes\n", errors[way] ? "not " : "",
			       ++number, ways[way].name, round, options->num_sizes);
	}
	if (me->number == 0)
		printf("1..%u\n", number);
	return !all;
}

static void find_ranks(struct rank *me)
{
	char (*hosts)[MPI_MAX_PROCESSOR_NAME];
	int length;

	MPI_Comm_rank(MPI_COMM_WORLD, &me->number);
	MPI_Comm_size(MPI_COMM_WORLD, &me->count);
	MPI_Get_processor_name(me->host, &length);
	hosts = calloc(me->count, sizeof(*hosts));
	me->is_near = calloc(me->count, sizeof(*me->is_near));
	if (!hosts || !me->is_near)
		die("no memory for %d ranks", me->count);
	MPI_Allgather(me->host, sizeof(*hosts), MPI_CHAR, hosts, sizeof(*hosts), MPI_CHAR,
		      MPI_COMM_WORLD);
	for (int i = 0; i < me->count; i++)
		me->is_near[i] = !strcmp(hosts[i], me->host);
	free(hosts);
}

/* In order of the ranks, by rank 0. */
static void report(const struct rank *me)
{
	enum { TEXT = MPI_MAX_PROCESSOR_NAME + 256 };
	char text[TEXT], *all = NULL;
	const struct traffic *sent = &me->sent;

	snprintf(text, sizeof(text),
		 "# rank %d on %s pid %d sent to other hosts: %llu messages, %llu bytes, large: %llu messages, %llu bytes",
		 me->number, me->host, getpid(), (unsigned long long)sent->messages,
		 (unsigned long long)sent->bytes, (unsigned long long)sent->large_messages,
		 (unsigned long long)sent->large_bytes);
	if (me->number == 0) {
		all = calloc(me->count, TEXT);
		if (!all)
			die("no memory for %d ranks", me->count);
	}
	MPI_Gather(text, TEXT, MPI_CHAR, all, TEXT, MPI_CHAR, 0, MPI_COMM_WORLD);
	for (int i = 0; all && i < me->count; i++)
		printf("%s\n", all + i * TEXT);
	fflush(stdout);
	free(all);
}

/* ---- options --------------------------------------------------------------- */

static const char usage[] =
"usage: mpirun ... mpi-exchange [options]\n"
"  --sizes N,N,...    bytes of a message; K and M behind a number are 2^10 and 2^20\n"
"  --min N, --max N   instead: all powers of two from N to N, and N-1 and N+1 of each\n"
"                     (1 to 8M)\n"
"  --rounds N         how often everything is done (1)\n"
"  --until FILE       instead: again and again until rank 0 finds this file\n"
"  --ways NAME,...    which of ring,alltoall,halo\n"
"  --seed N           of all data (1)\n"
"  --threshold N      messages above it are counted as large (64000)\n";

static uint64_t number(const char *text, uint64_t most)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (end == text || errno || *text == '-')
		die("%s is no number", text);
	if (*end == 'K' || *end == 'M') {
		unsigned int shift = *end++ == 'K' ? 10 : 20;

		if (value > (most >> shift))
			die("%s is more than %llu", text, (unsigned long long)most);
		value <<= shift;
	}
	if (*end)
		die("%s is no number", text);
	if (value > most)
		die("%s is more than %llu", text, (unsigned long long)most);
	return value;
}

static void add_size(struct options *options, size_t size)
{
	if (size == 0)
		die("a message of 0 bytes has nothing to compare");
	if (options->num_sizes == MAX_SIZES)
		die("more than %d sizes", MAX_SIZES);
	options->sizes[options->num_sizes++] = size;
}

static void list_of_sizes(struct options *options, char *text)
{
	char *save, *word;

	options->num_sizes = 0;
	for (word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save))
		add_size(options, number(word, MAX_SIZE));
	if (!options->num_sizes)
		die("--sizes names none");
}

/* 1 2 3 4 5 7 8 9 15 16 17 ...: the neighbours of small powers of two coincide. */
static void powers_of_two(struct options *options, size_t min, size_t max)
{
	size_t last = 0;

	if (min > max)
		die("--min is more than --max");
	for (size_t power = 1; power - 1 <= max; power *= 2) {
		for (size_t size = power - 1; size <= power + 1; size++) {
			if (size <= last || size < min || size > max)
				continue;
			add_size(options, size);
			last = size;
		}
	}
	if (!options->num_sizes)
		die("no power of two and no neighbour of one from %zu to %zu", min, max);
}

static void parse(struct options *options, int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "sizes", required_argument, NULL, 's' },
		{ "min", required_argument, NULL, 'm' },
		{ "max", required_argument, NULL, 'M' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "until", required_argument, NULL, 'u' },
		{ "ways", required_argument, NULL, 'w' },
		{ "seed", required_argument, NULL, 'S' },
		{ "threshold", required_argument, NULL, 't' },
		{ }
	};
	size_t min = 1, max = 8UL << 20;
	int option;

	*options = (struct options) { .rounds = 1, .seed = 1, .threshold = 64000,
				      .ways = "ring,alltoall,halo" };
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (option) {
		case 's':
			list_of_sizes(options, optarg);
			break;
		case 'm':
			min = number(optarg, MAX_SIZE);
			break;
		case 'M':
			max = number(optarg, MAX_SIZE);
			break;
		case 'r':
			options->rounds = number(optarg, UINT32_MAX);
			break;
		case 'u':
			options->until = optarg;
			break;
		case 'w':
			options->ways = optarg;
			break;
		case 'S':
			options->seed = number(optarg, UINT64_MAX);
			break;
		case 't':
			options->threshold = number(optarg, MAX_SIZE);
			break;
		default:
			die("do not know %s\n%s", argv[optind - 1], usage);
		}
	}
	if (optind < argc)
		die("do not know %s\n%s", argv[optind], usage);
	if (!options->num_sizes)
		powers_of_two(options, min, max);
	for (unsigned int i = 0; i < WAYS; i++) {
		if (is_chosen(options, ways[i].name))
			return;
	}
	die("--ways %s names none of ring,alltoall,halo", options->ways);
}

int main(int argc, char **argv)
{
	struct options options;
	struct rank me = { };
	bool fine;

	MPI_Init(&argc, &argv);
	parse(&options, argc, argv);
	find_ranks(&me);
	if (me.number == 0)
		printf("TAP version 13\n# %d ranks, seed %llu\n", me.count,
		       (unsigned long long)options.seed);
	fine = run(&options, &me);
	report(&me);
	free(me.is_near);
	MPI_Finalize();
	return fine ? 0 : 1;
}
