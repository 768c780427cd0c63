# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# Sourced by scripts that run in a VM: the tools, and what the kernel counted.

PERF=$REPO/build/cargo/release/rv-perf
PORT=/sys/class/infiniband/rxe0/ports/1

# fail TEXT...: give up.
fail() {
	echo "$VM_NAME: $*" >&2
	exit 1
}

# gid_index: print the index of the GID that is our IPv4 address.
gid_index() {
	# shellcheck disable=SC2046,SC2183
	want=0000:0000:0000:0000:0000:ffff:$(printf '%02x%02x:%02x%02x' $(echo "$VM_IP" | tr . ' '))
	for file in "$PORT"/gids/*; do
		[ "$(cat "$file")" = "$want" ] && basename "$file" && return
	done
	fail "no GID for $VM_IP"
}

# await_port NUMBER PID: return when a process listens on a TCP port; fail when it is gone.
await_port() {
	until ss -Hltn "sport = :$1" | grep -q .; do
		kill -0 "$2" 2>/dev/null || return 1
		sleep 0.1
	done
}

# count_traffic: from now on tell RoCE (UDP port 4791) from all else on eth0, in both
# directions. To be called before there is traffic.
count_traffic() {
	modprobe -a sch_ingress cls_flower cls_matchall act_gact || return
	tc qdisc add dev eth0 clsact || return
	for way in ingress egress; do
		tc filter add dev eth0 $way protocol ip prio 1 \
			flower ip_proto udp dst_port 4791 action pass || return
		tc filter add dev eth0 $way protocol ipv6 prio 2 \
			flower ip_proto udp dst_port 4791 action pass || return
		tc filter add dev eth0 $way protocol all prio 3 matchall action pass || return
	done
}

# snapshot NAME: keep all counters in files NAME.*.
snapshot() {
	for way in ingress egress; do
		tc -j -s filter show dev eth0 $way >"$VM_RESULTS/$1.$way.json" || return
	done
	for file in "$PORT"/hw_counters/*; do
		echo "${file##*/} $(cat "$file")"
	done >"$VM_RESULTS/$1.hw_counters"
}
