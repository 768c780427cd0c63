/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fixture of a device that a test may remove. In a file of its own since the harness
 * wants every fixture that it sees to be used.
 */
#ifndef RV_DEVICE_FIXTURE_H
#define RV_DEVICE_FIXTURE_H

#include "rv_test.h"

/*
 * A device of its own for each test, on a network interface of its own, so that
 * the one under test by everybody else stays.
 */
FIXTURE(device)
{
	struct rvc_port port;
	struct rv_attach_params_in in;
	uint8_t *buf;
};

#define ADD_DEVICE "rdma link add rvtest type rxe netdev rvtest0"
#define DEL_DEVICE "rdma link del rvtest"

FIXTURE_SETUP(device)
{
	if (system("ip link add rvtest0 type dummy 2>/dev/null"))
		SKIP(return, "no dummy network interfaces here");
	ASSERT_EQ(0, system("ip link set rvtest0 up && ip addr add 10.99.0.1/24 dev rvtest0"));
	ASSERT_EQ(0, system(ADD_DEVICE));
	ASSERT_EQ(0, rvc_port_find(&self->port, "rvtest"));
	rvc_attach_init(&self->in, &self->port);
	self->buf = rvt_alloc(_metadata, 16 * RVC_PAGE);
}

FIXTURE_TEARDOWN_PARENT(device)
{
	/* In the harness's own process: a test that died leaves the device too. */
	if (system("rdma link del rvtest 2>/dev/null; ip link del rvtest0 2>/dev/null"))
		return;
}

#endif
