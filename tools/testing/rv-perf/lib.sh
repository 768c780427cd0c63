# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sourced by the tests of rv-perf, which run in VMs (see tools/check/vm-tests) and print TAP.

PERF=${RV_PERF:-$REPO/build/cargo/release/rv-perf}
number=0
bad=0

# check NAME FUNCTION: one test; what it printed is shown when it fails.
check() {
	number=$((number + 1))
	vm-mark "$1"
	if out=$("${@:2}" 2>&1); then
		echo "ok $number $1"
		return
	fi
	bad=1
	echo "not ok $number $1"
	echo "$out" | tail -n 20 | sed 's/^/# /'
}

# finish: print the plan; the exit code of the script.
finish() {
	echo "1..$number"
	exit $bad
}

# fails_with CODE TEXT COMMAND...: the command must end with a code, in one line with a text.
fails_with() {
	local code=$1 text=$2 got=0 said
	said=$("${@:3}" 2>&1 >/dev/null) || got=$?
	echo "exit code $got, said: $said"
	[ $got = "$code" ] && [[ $said == *"$text"* ]] && [ "$(grep -c '^rv-perf: ' <<<"$said")" = 1 ]
}
