// SPDX-License-Identifier: GPL-2.0
/*
 * Both families of clients choose the same forms of ioctls for each revision of rv.
 * Exits with 0, or says what is chosen wrongly.
 */
#include <stdio.h>

#include "rv_abi_clients.h"

static const struct {
	unsigned int minor;
	unsigned long attach;
	unsigned long reg_mem;
} rows[] = {
	{ 3, RV_IOCTL_ATTACH_R5, RV_IOCTL_REG_MEM_R4 },
	{ 4, RV_IOCTL_ATTACH_R5, RV_IOCTL_REG_MEM_R4 },
	{ 5, RV_IOCTL_ATTACH_R5, RV_IOCTL_REG_MEM },
	{ 6, RV_IOCTL_ATTACH, RV_IOCTL_REG_MEM },
	{ 7, RV_IOCTL_ATTACH, RV_IOCTL_REG_MEM },
};

int main(void)
{
	int bad = 0;

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rv_client_attach(1, rows[i].minor) != rows[i].attach)
			bad = printf("family %d, rv 1.%u: wrong ATTACH\n", RV_ABI_FAMILY,
				     rows[i].minor);
		if (rv_client_reg_mem(1, rows[i].minor) != rows[i].reg_mem)
			bad = printf("family %d, rv 1.%u: wrong REG_MEM\n", RV_ABI_FAMILY,
				     rows[i].minor);
	}
	return bad != 0;
}
