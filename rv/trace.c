// SPDX-License-Identifier: GPL-2.0
/*
 * Defines the trace events of trace.h, each with a function that Rust can call.
 */

#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include "trace.h"
