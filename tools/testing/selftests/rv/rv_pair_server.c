// SPDX-License-Identifier: GPL-2.0
/*
 * The other host of the tests with two hosts: does what they tell it.
 *
 *   rv_pair_server			serves until it is told to end
 *   rv_pair_server end HOST		tells the one on HOST to end
 */
#include <stdio.h>
#include <string.h>

#include "rv_actor.h"

static int end_server_on(const char *host)
{
	struct actor actor;
	int ret = actor_start_remote(&actor, host);

	if (!ret)
		ret = actor_end_server(&actor);
	actor_stop(&actor);
	return ret;
}

int main(int argc, char **argv)
{
	if (argc == 1)
		return rvc_registration_of_env() || actor_serve() ? 1 : 0;
	if (argc == 3 && !strcmp(argv[1], "end"))
		return end_server_on(argv[2]) ? 1 : 0;
	fprintf(stderr, "usage: %s | %s end HOST\n", argv[0], argv[0]);
	return 2;
}
