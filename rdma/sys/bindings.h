/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The one list of C headers that rdma_sys binds.
 */

#include <linux/interval_tree.h>
#include <linux/mmu_notifier.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "helpers.h"
#include "uverbs.h"
