#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The benchmarks inside a VM: does the steps of the file PLAN, in both VMs at the same time.
# A step is a line with tabs: key, kind, setting, command of vm1, command of vm2. What vm2's
# command prints is kept in $VM_RESULTS/KEY.out.
# shellcheck source=tools/demo/guest.sh
. "$REPO/tools/demo/guest.sh"

PATH=$PATH:$REPO/build/cargo/release
SWITCH=/sys/kernel/debug/rv/registration

# A measurement that fails is done again, at most so many times in all.
MOST_TRIES=3

# stop PID: end a server that does not end by itself.
stop() {
	for _ in $(seq 50); do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.1
	done
	kill "$1"
}

# serve KEY PORT COMMAND...: run a server until vm2 says that it has measured.
serve() {
	key=$1
	port=$2
	shift 2
	for try in $(seq $MOST_TRIES); do
		"$@" >"$VM_RESULTS/$key.server" 2>&1 &
		await_port "$port" $! || fail "$1 does not start: $(tail -n 1 "$VM_RESULTS/$key.server")"
		vm-barrier listens
		verdict=$(vm-get "$key.$try")
		stop $!
		wait $!
		[ "$verdict" = failed ] || return 0
	done
	fail "$key failed $MOST_TRIES times"
}

# measure KEY COMMAND...: keep what the command prints.
measure() {
	out=$VM_RESULTS/$1.out
	shift
	"$@" >"$out" 2>"$VM_RESULTS/err" && return
	why=$(cat "$out" "$VM_RESULTS/err" | tr -s ' \t\n-' ' ' | tail -c 100)
	echo "failed: $* (... $why)" | tee -a "$VM_RESULTS/failed"
	return 1
}

# ask KEY COMMAND...: measure against a server in vm1.
ask() {
	for try in $(seq $MOST_TRIES); do
		vm-barrier listens
		if measure "$@"; then
			vm-put "$1.$try" good
			return
		fi
		vm-put "$1.$try" failed
	done
	fail "$1 failed $MOST_TRIES times"
}

# registration KEY MODE COMMAND...: measure with one way of registration, if rv has it.
registration() {
	key=$1
	if [ -w $SWITCH ]; then
		echo "$2" >$SWITCH || fail "cannot switch to $2"
	elif [ "$2" != auto ]; then
		echo "rv has no switch $SWITCH: $2 is left out"
		return
	fi
	shift 2
	measure "$key" "$@" || exit 1
	[ ! -w $SWITCH ] || echo auto >$SWITCH
}

# with_crowd CROWD COMMAND...: do it in company, for which CROWD is the command.
with_crowd() {
	crowd=$1
	shift
	$crowd >"$VM_RESULTS/crowd" 2>&1 &
	company=$!
	until grep -q ready "$VM_RESULTS/crowd"; do
		kill -0 $company 2>/dev/null || fail "$crowd: $(tail -n 1 "$VM_RESULTS/crowd")"
		sleep 0.1
	done
	vm-barrier crowd
	"$@"
	kill $company
	wait $company
	return 0
}

# step KEY KIND SETTING COMMAND: one step, as this VM sees it.
step() {
	key=$1 kind=$2 setting=$3
	# The command may use VM_PEER_IP and GID.
	eval "set -- $4"
	case $VM_INDEX.$kind in
	1.perf) serve "$key" 7471 "$@" ;;
	1.ib) serve "$key" 18515 "$@" ;;
	1.ofi) serve "$key" 3000 "$@" ;;
	2.perf | 2.ib | 2.ofi) ask "$key" "$@" ;;
	1.crowd) with_crowd "$setting" serve "$key" 7471 "$@" ;;
	2.crowd) with_crowd "$setting" ask "$key" "$@" ;;
	2.reg) registration "$key" "$setting" "$@" ;;
	esac
}

mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
vm-load rv || fail "cannot load the modules"
GID=$(gid_index) || exit 1
export GID
count=$(wc -l <"$PLAN")
number=0
tab=$(printf '\t')
while IFS=$tab read -r key kind setting vm1 vm2; do
	number=$((number + 1))
	vm-barrier step
	if [ "$VM_INDEX" = 1 ]; then
		step "$key" "$kind" "$setting" "$vm1" </dev/null
	else
		echo "$number of $count: $vm2"
		step "$key" "$kind" "$setting" "$vm2" </dev/null
	fi
done <"$PLAN"
vm-barrier end
