# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sourced by the tests of what can be seen of rv from outside, which run in VMs and print TAP.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tools/testing/rv-perf/lib.sh
. "$here/../rv-perf/lib.sh"
# shellcheck source=tools/testing/rv-perf/serve.sh
. "$here/../rv-perf/serve.sh"
export PATH=$PATH:/usr/sbin:/sbin
TRACING=/sys/kernel/tracing

# trace_on: begin with an empty buffer, large enough for a test, in one order for all CPUs.
trace_on() {
	mountpoint -q $TRACING || mount -t tracefs tracefs $TRACING || return
	echo global >$TRACING/trace_clock &&
		echo 8192 >$TRACING/buffer_size_kb &&
		echo >$TRACING/trace &&
		echo 1 >$TRACING/events/rv/enable
}

# trace_off FILE: end, and keep what was traced.
trace_off() {
	echo 0 >$TRACING/events/rv/enable && cp $TRACING/trace "$1"
}
