# SPDX-License-Identifier: GPL-2.0
"""Tests of rv with PSM3 in two VMs. These files run inside the VMs.

vm1 runs the tests and prints TAP; vm2 does what vm1 asks for. They talk over the
test runner's own channel, so that the network may be cut. Reading order: channel
(how the VMs talk), host (what can be done in a VM), stats (what PSM3 counts),
job (a program of fabtests on both VMs), verdict (what makes a run good), tap.
"""
