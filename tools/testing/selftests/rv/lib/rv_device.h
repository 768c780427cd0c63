/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A device that a test may remove, on a network interface of its own.
 */
#ifndef RV_DEVICE_H
#define RV_DEVICE_H

#include "rv_test.h"

#define ADD_DEVICE "rdma link add rvtest type rxe netdev rvtest0"
#define DEL_DEVICE "rdma link del rvtest"

/* False if this kernel has no dummy network interfaces. */
static bool rvt_device_make(struct __test_metadata *_metadata, struct rvc_port *port)
{
	if (system("ip link add rvtest0 type dummy 2>/dev/null"))
		return false;
	ASSERT_EQ(0, system("ip link set rvtest0 up && ip addr add 10.99.0.1/24 dev rvtest0"));
	ASSERT_EQ(0, system(ADD_DEVICE));
	ASSERT_EQ(0, rvc_port_find(port, "rvtest"));
	return true;
}

/* For the harness's own process: a test that died leaves the device too. */
static void rvt_device_unmake(void)
{
	if (system("rdma link del rvtest 2>/dev/null; ip link del rvtest0 2>/dev/null"))
		return;
}

#endif
