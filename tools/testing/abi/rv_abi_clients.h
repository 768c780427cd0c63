/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How the two generations of PSM3 choose between the forms of an ioctl, by the
 * macros of the header and by the revision that rv answered.
 *
 * RV_ABI_FAMILY 1: libfabric up to 2.4, which asks #ifdef RV_ABI_VER_MINOR_<n>.
 * RV_ABI_FAMILY 2: libfabric from 2.5, which compares RV_ABI_VERSION_CURRENT in #if
 * and has no other way to find out what the header has.
 */
#ifndef RV_ABI_CLIENTS_H
#define RV_ABI_CLIENTS_H

#include <rdma/rv_user_ioctls.h>

#if RV_ABI_FAMILY == 1

#ifdef RV_ABI_VER_MINOR_3
#define RV_CLIENT_KNOWS_MAX_FMR_SIZE
#endif
#ifdef RV_ABI_VER_MINOR_4
#define RV_CLIENT_KNOWS_REG_MEM_R4
#endif
#ifdef RV_ABI_VER_MINOR_5
#define RV_CLIENT_KNOWS_ATTACH_R5
#endif
#define RV_CLIENT_AT_MOST(major, minor, than)                                             \
	((major) <= RV_ABI_VER_MAJOR_1 && (minor) <= RV_ABI_VER_MINOR_##than)

#else

#if RV_ABI_VERSION_CURRENT > RV_ABI_VERSION(1, 3)
#define RV_CLIENT_KNOWS_MAX_FMR_SIZE
#endif
#if RV_ABI_VERSION_CURRENT > RV_ABI_VERSION(1, 4)
#define RV_CLIENT_KNOWS_REG_MEM_R4
#endif
#if RV_ABI_VERSION_CURRENT > RV_ABI_VERSION(1, 5)
#define RV_CLIENT_KNOWS_ATTACH_R5
#endif
#define RV_CLIENT_AT_MOST(major, minor, than)                                             \
	(RV_ABI_VERSION(major, minor) <= RV_ABI_VERSION(1, than))

#endif

/* A client of either family that misses one of these never uses the older forms. */
#if !defined(RV_CLIENT_KNOWS_MAX_FMR_SIZE) || !defined(RV_CLIENT_KNOWS_REG_MEM_R4) ||     \
	!defined(RV_CLIENT_KNOWS_ATTACH_R5)
#error "the header hides older forms of its ioctls from this family of clients"
#endif

/* The ioctl of REG_MEM for a rv of that revision. */
static inline unsigned long rv_client_reg_mem(unsigned int major, unsigned int minor)
{
	if (RV_CLIENT_AT_MOST(major, minor, 4))
		return RV_IOCTL_REG_MEM_R4;
	return RV_IOCTL_REG_MEM;
}

/* The ioctl of ATTACH for a rv of that revision. */
static inline unsigned long rv_client_attach(unsigned int major, unsigned int minor)
{
	if (RV_CLIENT_AT_MOST(major, minor, 5))
		return RV_IOCTL_ATTACH_R5;
	return RV_IOCTL_ATTACH;
}

#endif
