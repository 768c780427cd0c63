/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fixture of two ends with a connection that is up. In a file of its own since
 * the harness wants every fixture that it sees to be used.
 */
#ifndef RV_PAIR_FIXTURE_H
#define RV_PAIR_FIXTURE_H

#include "rv_end.h"

/*
 * Both directions: the host with the lower address listens, so that one variant
 * sends from the side that listened and one from the side that connected.
 */
FIXTURE(pair)
{
	struct job job;
	struct end from;
	struct end to;
};

FIXTURE_VARIANT(pair)
{
	bool from_remote;
};

FIXTURE_VARIANT_ADD(pair, to_peer) { .from_remote = false };
FIXTURE_VARIANT_ADD(pair, from_peer) { .from_remote = true };

FIXTURE_SETUP(pair)
{
	job_init(&self->job);
	start_end(_metadata, &self->from, variant->from_remote);
	start_end(_metadata, &self->to, !variant->from_remote);
	attach_end(_metadata, &self->from, &self->job, self->job.ring[0]);
	attach_end(_metadata, &self->to, &self->job, self->job.ring[1]);
	connect_ends(_metadata, &self->from, &self->to);
}

FIXTURE_TEARDOWN(pair)
{
	actor_stop(&self->from.actor);
	actor_stop(&self->to.actor);
}

#endif
