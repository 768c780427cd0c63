#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The demo inside a VM: vm1 receives, vm2 sends. Both measure ib_write_bw before and
# after, and keep the counters of the kernel around the transfer.
# Variables: FILE is the file to send, BLOCK and WINDOW how.
# shellcheck source=tools/demo/guest.sh
. "$REPO/tools/demo/guest.sh"

# bandwidth NAME: measure ib_write_bw between the VMs.
bandwidth() {
	# -u 20: with its default acknowledge timeout of 67 ms it sends twice on a slow machine.
	set -- "$1" ib_write_bw -d rxe0 -x "$(gid_index)" -s "$BLOCK" -t "$WINDOW" -n 60 -u 20 -F
	log=$VM_RESULTS/$1.log
	shift
	vm-barrier bandwidth
	if [ "$VM_INDEX" = 1 ]; then
		"$@" >"$log" 2>&1 &
		await_port 18515 $! || fail "ib_write_bw does not start: $(tail -n 1 "$log")"
		vm-barrier ib_write_bw-listens
		wait $! || fail "ib_write_bw: $(tail -n 1 "$log")"
	else
		vm-barrier ib_write_bw-listens
		echo "running $* $VM_PEER_IP"
		"$@" "$VM_PEER_IP" >"$log" 2>&1 || fail "ib_write_bw: $(tail -n 1 "$log")"
	fi
}

receive() {
	mkdir -p /received
	"$PERF" server --once --quiet --output /received --json >"$VM_RESULTS/perf.json" &
	await_port 7471 $! || fail "rv-perf server does not start"
	vm-barrier rv-perf-listens
	wait $! || fail "rv-perf server failed"
	sha256sum "/received/$(basename "$FILE")" >"$VM_RESULTS/sha256"
}

send() {
	vm-barrier rv-perf-listens
	set -- client "$VM_PEER_IP" --file "$FILE" --block-size "$BLOCK" --window "$WINDOW" --verify
	echo "running rv-perf $*"
	"$PERF" "$@" --json="$VM_RESULTS/perf.json" || fail "rv-perf client failed"
	sha256sum "$FILE" >"$VM_RESULTS/sha256"
}

count_traffic || fail "cannot count traffic with tc"
vm-load rv || fail "cannot load the modules"
echo "loaded rdma_rs.ko and rv.ko into the stock kernel $(uname -r); $(ls -l /dev/rv)"

# The file comes from the host; the first reading is not part of the transfer.
[ "$VM_INDEX" = 1 ] || cat "$FILE" >/dev/null || fail "cannot read $FILE"

bandwidth ib_write_bw-before
snapshot before || fail "cannot read the counters"
vm-barrier counted-before
if [ "$VM_INDEX" = 1 ]; then receive; else send; fi
vm-barrier transferred
snapshot after || fail "cannot read the counters"
vm-barrier counted-after
bandwidth ib_write_bw-after
