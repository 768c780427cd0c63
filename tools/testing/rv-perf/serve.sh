# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sourced, after lib.sh, by tests in two VMs: vm1 serves, vm2 says what and runs the tests.

# In vm1: start the servers that vm2 asks for, one after another.
serve() {
	local n=0 options action
	while n=$((n + 1)) && options=$(vm-get "server.$n") && [ "$options" != end ]; do
		rm -rf /received && mkdir /received
		# shellcheck disable=SC2086
		"$PERF" server --once --quiet --timeout 20 $options >/server.out 2>/server.err &
		until ss -Hltn "sport = :7471" | grep -q .; do
			kill -0 $! 2>/dev/null || break
			sleep 0.05
		done
		vm-put "ready.$n" yes
		action=$(vm-get "action.$n")
		[ "$action" = none ] || kill "-$action" $!
		wait $!
		vm-put "result.$n" "$? $(tail -n 1 /server.err | grep . || echo silent)"
		vm-put "received.$n" "$(cd /received && find . -type f -exec sha256sum {} + | grep . || echo none)"
	done
}

# server OPTIONS...: start a server in vm1. Tests run in subshells, so the number is in a file.
server() {
	# One that a failed test left behind.
	[ ! -e /serving ] || server_ended TERM >/dev/null
	echo $(($(cat /tries) + 1)) >/tries
	touch /serving
	vm-put "server.$(cat /tries)" "${*:---ib-port 1}"
	vm-get "ready.$(cat /tries)" >/dev/null
}

# server_ended [SIGNAL]: print the exit code of the server and its last words.
server_ended() {
	rm /serving
	vm-put "action.$(cat /tries)" "${1:-none}"
	vm-get "result.$(cat /tries)"
}

# server_was_fine: whether it ended well, without a word.
server_was_fine() {
	local words
	words=$(server_ended)
	echo "server: $words"
	[ "$words" = "0 silent" ]
}

# received: print the check sums and names of the files in the server's directory.
received() {
	vm-get "received.$(cat /tries)"
}

# servers_end: let vm1 come to its end.
servers_end() {
	[ ! -e /serving ] || server_ended TERM >/dev/null
	vm-put "server.$(($(cat /tries) + 1))" end
}
