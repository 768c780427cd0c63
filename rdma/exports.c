// SPDX-License-Identifier: GPL-2.0
/*
 * Exports the Rust symbols and C helpers of rdma_rs to the modules that use its
 * crates.  The list is generated from the objects themselves; every symbol is
 * declared as an int because only its name matters here.
 */

#include <linux/export.h>
#include <linux/module.h>

#define EXPORT_SYMBOL_RUST_GPL(sym) extern int sym; EXPORT_SYMBOL_GPL(sym)

#include "exports_generated.h"
