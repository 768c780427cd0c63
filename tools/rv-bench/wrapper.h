/* SPDX-License-Identifier: GPL-2.0 */
#include <infiniband/verbs.h>
/* verbs.h makes a macro of it, which would hide the function from bindgen. */
#undef ibv_reg_mr
