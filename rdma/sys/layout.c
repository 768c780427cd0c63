// SPDX-License-Identifier: GPL-2.0
/*
 * Compiled to assembly only: the sizes and offsets of layout.h, for layout.rs.
 */

#include <linux/kbuild.h>
#include <linux/stddef.h>

#include "bindings.h"

#define SIZE(type) DEFINE(SIZE_##type, sizeof(struct type));
#define FIELD(type, field) DEFINE(OFFSET_##type##_##field, offsetof(struct type, field));

int main(void);

int main(void)
{
#include "layout.h"
	return 0;
}
