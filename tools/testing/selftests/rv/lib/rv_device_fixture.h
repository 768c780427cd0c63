/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fixture of a device that a test may remove. In a file of its own since the harness
 * wants every fixture that it sees to be used.
 */
#ifndef RV_DEVICE_FIXTURE_H
#define RV_DEVICE_FIXTURE_H

#include "rv_device.h"

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

FIXTURE_SETUP(device)
{
	if (!rvt_device_make(_metadata, &self->port))
		SKIP(return, "no dummy network interfaces here");
	rvc_attach_init(&self->in, &self->port);
	self->buf = rvt_alloc(_metadata, 16 * RVC_PAGE);
}

FIXTURE_TEARDOWN_PARENT(device)
{
	rvt_device_unmake();
}

#endif
