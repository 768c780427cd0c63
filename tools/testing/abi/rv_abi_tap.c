// SPDX-License-Identifier: GPL-2.0
/*
 * The table of rv_abi_table.h as a program: one TAP line for each ioctl and each
 * structure, with every number that differs spelled out above it. The assertions
 * of rv_abi_static.c stop at the first compiler error; this one shows everything.
 *
 * It also finds what a list of known fields cannot: bytes of a structure that no
 * field covers.
 */
#include <rdma/rv_user_ioctls.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The results of one line are collected until it is printed. */
static bool line_ok;
static unsigned int lines, failed, fields;
static uint8_t covered[4096];

static void expect(const char *what, uint64_t is, uint64_t want)
{
	if (is == want)
		return;
	line_ok = false;
	printf("# %s: %llu (%#llx), want %llu (%#llx)\n", what,
	       (unsigned long long)is, (unsigned long long)is,
	       (unsigned long long)want, (unsigned long long)want);
}

static void begin(void)
{
	line_ok = true;
	fields = 0;
	memset(covered, 0, sizeof(covered));
}

static void cover(size_t offset, size_t size)
{
	fields++;
	if (offset + size <= sizeof(covered))
		memset(covered + offset, 1, size);
}

static void expect_no_gap(const char *type, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (covered[i])
			continue;
		line_ok = false;
		printf("# %s: byte %zu belongs to no field\n", type, i);
	}
}

static void end(const char *kind, const char *name)
{
	lines++;
	if (!line_ok)
		failed++;
	printf("%sok %u %s %s\n", line_ok ? "" : "not ", lines, kind, name);
}

static void check_ioctls(void)
{
#define DIR_R _IOC_READ
#define DIR_W _IOC_WRITE
#define DIR_RW (_IOC_READ | _IOC_WRITE)
#define IOCTL(name, nr, dir, size, value)                                      \
	begin();                                                               \
	expect("value", RV_IOCTL_##name, value);                               \
	expect("type", _IOC_TYPE(RV_IOCTL_##name), 0x1b);                      \
	expect("number", _IOC_NR(RV_IOCTL_##name), nr);                        \
	expect("direction", _IOC_DIR(RV_IOCTL_##name), DIR_##dir);             \
	expect("size", _IOC_SIZE(RV_IOCTL_##name), size);                      \
	end("ioctl", #name);
#include "rv_abi_table.h"
}

static void check_structs(void)
{
#define STRUCT(type, size) \
	begin();           \
	expect("size of " #type, sizeof(struct type), size);
#define FIELD(type, member, offset, size)                                      \
	expect("offset of " #type "." #member, offsetof(struct type, member),  \
	       offset);                                                        \
	expect("size of " #type "." #member,                                   \
	       sizeof(((struct type *)0)->member), size);                      \
	cover(offset, size);
#define END(type)                                       \
	expect_no_gap(#type, sizeof(struct type));      \
	end("struct", #type);
#include "rv_abi_table.h"
}

static void check_constants(void)
{
	begin();
#define CONST(name, value) expect(#name, name, value);
#include "rv_abi_table.h"
	end("constants", "macros and limits");
}

/*
 * What an application does with an entry of the ring: take a copy of it and read
 * its members. The bytes are laid out here by hand.
 */
static void check_event_bytes(void)
{
	static const uint8_t bytes[65] = {
		1, 12, 0, 0, 0x78, 0x56, 0x34, 0x12, 0,
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
		0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01,
		0x04, 0x03, 0x02, 0x01,
	};
	struct rv_event event;

	begin();
	memcpy(&event, bytes, sizeof(bytes));
	expect("event_type", event.event_type, RV_WC_RECV_RDMA_WITH_IMM);
	expect("wc.status", event.wc.status, 12);
	expect("wc.imm_data", event.wc.imm_data, 0x12345678);
	expect("wc.wr_id", event.wc.wr_id, 0x1122334455667788);
	expect("wc.conn_handle", event.wc.conn_handle, 0x0123456789abcdef);
	expect("wc.byte_len", event.wc.byte_len, 0x01020304);
	end("bytes", "of an rv_event");
}

int main(void)
{
	printf("TAP version 13\n");
	check_ioctls();
	check_structs();
	check_constants();
	check_event_bytes();
	printf("1..%u\n", lines);
	return failed ? 1 : 0;
}
