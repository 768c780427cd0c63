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

# debugfs: mount it.
debugfs() {
	mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
}

sent_packets() {
	cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts
}

# flow COMMAND...: start a transfer in the background that does not end by itself, and wait until
# its writes are on their way. $flow is its process.
flow() {
	local before
	server
	before=$(sent_packets)
	[ -e /big ] || truncate -s 200G /big
	"${@:-$PERF}" client "$VM_PEER_IP" --quiet --timeout 20 --num-conn 2 --file /big >/flow.out 2>&1 &
	flow=$!
	until [ $(($(sent_packets) - before)) -gt 500 ]; do
		kill -0 $flow || return
		sleep 0.1
	done
}

# flow_end: interrupt it on both sides.
flow_end() {
	kill -TERM $flow
	wait $flow
	server_ended TERM >/dev/null
}
