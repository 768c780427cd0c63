# SPDX-License-Identifier: GPL-2.0
#
# Tests with two VMs. Both run the same script (see tools/vm/run): the first one
# runs the tests and prints TAP, the second one does what they tell it.
#
# Variables: RV_TESTS is the directory of the programs.

programs=${RV_TESTS:-$REPO/build/tests/rv/two-vm}

# pair PROGRAM [OPTIONS]: run the tests of a program of tools/testing/selftests/rv, those
# that the options of the harness choose.
pair()
{
	program=$1
	shift
	if [ "$VM_INDEX" -ne 1 ]; then
		exec "$programs/rv_pair_server"
	fi
	"$programs/$program" "$VM_PEER_IP" "$@" 2>&1
	status=$?
	"$programs/rv_pair_server" end "$VM_PEER_IP"
	exit $status
}

# breakable_wire: prepare eth0 for lib/rv_break.h. The peer's address is made permanent,
# so that no lost packet leads to a search for it.
breakable_wire()
{
	modprobe -a sch_ingress cls_flower act_gact &&
		tc qdisc add dev eth0 clsact &&
		peer=$(ip -o neigh show "$VM_PEER_IP" dev eth0 | sed -n 's/.*lladdr \([^ ]*\).*/\1/p') &&
		ip neigh replace "$VM_PEER_IP" lladdr "$peer" dev eth0 nud permanent &&
		return
	echo "Bail out! eth0 cannot be prepared for cutting it"
	exit 1
}
