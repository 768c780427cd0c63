/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The module unloaded and loaded again, with other parameters or after something else.
 */
#ifndef RV_RELOAD_H
#define RV_RELOAD_H

#include <stdio.h>
#include <stdlib.h>

/*
 * No file of rv may be open. In the VMs of tools/vm the module is the one just built,
 * elsewhere the installed one. How memory is registered is the default again.
 */
static inline int rvt_reload(const char *parameters)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "PATH=$PATH:/usr/sbin:/sbin; load=modprobe;"
		 " ! command -v vm-load >/dev/null || load=vm-load;"
		 " rmmod rv && $load rv %s", parameters);
	return system(command);
}

#endif
