#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In a VM: the modules load and unload in every order that is allowed, and in no
# other; they are found by modprobe; udev gives the device node its mode.
export PATH=$PATH:/usr/sbin:/sbin
modules=$VM_MODULES
n=0
bad=0

# check NAME CMD...: one test.
check() {
	local name=$1
	shift
	n=$((n + 1))
	vm-mark "$name"
	if out=$("$@" 2>&1); then
		echo "ok $n $name"
	else
		bad=1
		echo "not ok $n $name # $(echo "$out" | tail -n 1)"
	fi
}

refused() {
	! "$@" || { echo "it was not refused"; return 1; }
}

loaded() {
	[ -d "/sys/module/$1" ]
}

# Install as an administrator would. depmod over the whole kernel takes minutes
# under emulation, so it gets a tree with the kernel modules that ours depend on.
install_modules() {
	local system dir need file
	system=/lib/modules/$(uname -r)
	dir=/tmp/root$system
	mkdir -p "$dir" && cp "$system"/modules.builtin* "$system/modules.order" "$dir/" || return
	for need in $(modinfo -F depends "$modules"/*.ko | tr , ' '); do
		modprobe -S "$(uname -r)" --show-depends "$need" 2>/dev/null
	done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | sort -u >/tmp/needed
	while read -r file; do
		install -D "$file" "/tmp/root$file" || return
	done </tmp/needed
	"$REPO/tools/install" modules "$modules" /tmp/root && mount --bind "$dir" "$system"
}

reload_rounds() {
	for round in 1 2 3 4 5; do
		vm-load rv && rmmod rv && rmmod rdma_rs || { echo "in round $round"; return 1; }
	done
}

# mode_becomes FILE MODE: udev does it when it comes to it.
mode_becomes() {
	local mode
	for _ in $(seq 600); do
		mode=$(stat -c %a "$1") && [ "$mode" = "$2" ] && return
		sleep 0.1
	done
	echo "$1 has mode $mode"
	return 1
}

with_open_file() {
	exec 7<>/dev/rv || return 1
	refused rmmod rv
	local status=$?
	exec 7>&-
	return $status
}

install_rule() {
	mkdir -p /etc/udev/rules.d && cp "$REPO"/tools/udev/60-rv.rules /etc/udev/rules.d/
}

# without MODULE: rdma_rs is refused, for a symbol, when all it depends on is there but this.
without() {
	local need
	for need in $depends; do
		[ "$need" = "$1" ] || modprobe "$need" || return
	done
	refused loaded "$1" && refused insmod "$modules/rdma_rs.ko" || return
	dmesg | grep 'rdma_rs: Unknown symbol'
}

echo "TAP version 13"
depends=$(modinfo -F depends "$modules/rdma_rs.ko" | tr , ' ')
check "rdma_rs is refused without ib_uverbs" without ib_uverbs
# shellcheck disable=SC2086
[ -z "$depends" ] || modprobe -a $depends
check "rv is refused before rdma_rs" refused insmod "$modules/rv.ko"
check "insmod rdma_rs" insmod "$modules/rdma_rs.ko"
check "rmmod ib_uverbs is refused while rdma_rs uses it" refused rmmod ib_uverbs
check "insmod rv" vm-load rv
check "/dev/rv is a character device" test -c /dev/rv
check "rmmod rdma_rs is refused while rv uses it" refused rmmod rdma_rs
check "rmmod rv is refused while its file is open" with_open_file
check "rmmod rv" rmmod rv
check "rmmod rdma_rs" rmmod rdma_rs
check "rmmod ib_uverbs" rmmod ib_uverbs
check "/dev/rv is gone" refused test -e /dev/rv
check "five rounds of load and unload" reload_rounds
check "install for modprobe" install_modules
check "install the udev rule" install_rule
check "start udev" vm-udev
check "modprobe rv" modprobe rv
check "rdma_rs came with it" loaded rdma_rs
check "ib_uverbs came with that" test -e /sys/module/ib_uverbs/holders/rdma_rs
check "udev made /dev/rv mode 666" mode_becomes /dev/rv 666
check "modprobe -r rv" modprobe -r rv
check "rdma_rs went with it" refused loaded rdma_rs
echo "1..$n"
exit $bad
