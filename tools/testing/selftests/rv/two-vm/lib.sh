# SPDX-License-Identifier: GPL-2.0
#
# Tests with two VMs. Both run the same script (see tools/vm/run): the first one
# runs the tests and prints TAP, the second one does what they tell it.
#
# Variables: RV_TESTS is the directory of the programs.

programs=${RV_TESTS:-$REPO/build/tests/rv/two-vm}

# pair PROGRAM: run the tests of a program of tools/testing/selftests/rv.
pair()
{
	if [ "$VM_INDEX" -ne 1 ]; then
		exec "$programs/rv_pair_server"
	fi
	"$programs/$1" "$VM_PEER_IP" 2>&1
	status=$?
	"$programs/rv_pair_server" end "$VM_PEER_IP"
	exit $status
}
