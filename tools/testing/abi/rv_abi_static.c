// SPDX-License-Identifier: GPL-2.0
/*
 * The table of rv_abi_table.h as compile-time assertions. Compiles as C11, as
 * C++11, for 64 and for 32 bits; if it compiles, the ABI is right. No C library
 * is needed, so that "-m32 -fsyntax-only" works without one.
 *
 * -DRV_ABI_WRONG=1 falsifies one number of each kind: then it must not compile.
 */
#include <rdma/rv_user_ioctls.h>
#include <stddef.h>

#ifdef __cplusplus
#define CHECK(cond, text) static_assert(cond, text)
#define ALIGNOF(type) alignof(type)
#else
#define CHECK(cond, text) _Static_assert(cond, text)
#define ALIGNOF(type) _Alignof(type)
#endif

#ifndef RV_ABI_WRONG
#define RV_ABI_WRONG 0
#endif

#define DIR_R _IOC_READ
#define DIR_W _IOC_WRITE
#define DIR_RW (_IOC_READ | _IOC_WRITE)

#define IOCTL(name, nr, dir, size, value)                                      \
	CHECK(RV_IOCTL_##name == (value), "ioctl " #name ": value");           \
	CHECK(_IOC_NR(RV_IOCTL_##name) == (nr), "ioctl " #name ": number");    \
	CHECK(_IOC_DIR(RV_IOCTL_##name) == DIR_##dir,                          \
	      "ioctl " #name ": direction");                                   \
	CHECK(_IOC_SIZE(RV_IOCTL_##name) == (size), "ioctl " #name ": size");
#define STRUCT(type, size) \
	CHECK(sizeof(struct type) == (size), "size of " #type);
#define FIELD(type, member, offset, size)                                      \
	CHECK(offsetof(struct type, member) == (offset),                       \
	      "offset of " #type "." #member);                                 \
	CHECK(sizeof(((struct type *)0)->member) == (size),                    \
	      "size of " #type "." #member);
#define CONST(name, value) CHECK((name) == (value), #name);
#include "rv_abi_table.h"

CHECK(ALIGNOF(struct rv_event) == 1, "rv_event is not aligned");
CHECK(ALIGNOF(struct rv_attach_params) == 8, "rv_attach_params is aligned");

/* Both families of version macros must work in the preprocessor. */
#if RV_ABI_VERSION_CURRENT <= RV_ABI_VERSION(1, 5) || \
	RV_ABI_VER_MINOR_5 >= RV_ABI_VER_MINOR
#error "version macros do not compare"
#endif

#if RV_ABI_WRONG == 1
#define STRUCT(type, size) \
	CHECK(sizeof(struct type) == (size) + 1, "size of " #type);
#include "rv_abi_table.h"
#elif RV_ABI_WRONG == 2
#define FIELD(type, member, offset, size)                                      \
	CHECK(offsetof(struct type, member) == (offset) + 1,                   \
	      "offset of " #type "." #member);
#include "rv_abi_table.h"
#elif RV_ABI_WRONG == 3
#define IOCTL(name, nr, dir, size, value) \
	CHECK(RV_IOCTL_##name == (value) + 1, "ioctl " #name ": value");
#include "rv_abi_table.h"
#endif
