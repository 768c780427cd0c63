# SPDX-License-Identifier: GPL-2.0
"""The verdict on kernel logs."""

import tempfile
import unittest
from pathlib import Path

from vmlib import klog
from vmlib.report import Failure

BAD = (
    "WARNING: CPU: 0 PID: 77 at drivers/infiniband/core/mr.c:12 ib_x+0x1/0x2 [ib_core]",
    "WARNING: drivers/infiniband/core/mr.c:12 at ib_x+0x1/0x2, CPU#0: insmod/77",
    "BUG: kernel NULL pointer dereference, address: 0000000000000008",
    "BUG: KASAN: slab-use-after-free in rv_close+0x12/0x34 [rv]",
    "BUG: sleeping function called from invalid context at mm/slab.h:3",
    "kernel BUG at rust/helpers/bug.c:7!",
    "Oops: Oops: 0000 [#1] SMP NOPTI",
    "Oops: general protection fault, probably for non-canonical address 0xdead: 0000 [#1]",
    "Kernel panic - not syncing: Fatal exception",
    "UBSAN: array-index-out-of-bounds in net/x.c:3:4",
    "refcount_t: underflow; use-after-free.",
    "INFO: task rv_perf:123 blocked for more than 120 seconds.",
    "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [rv:1]",
    "rcu: INFO: rcu_preempt self-detected stall on CPU",
    "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "WARNING: possible circular locking dependency detected",
    "WARNING: suspicious RCU usage",
    "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "BUG kmalloc-64 (Tainted: G           O       ): Right Redzone overwritten",
    "BUG: Invalid wait context",
    "INFO: lockdep is turned off.",
    "kmemleak: Kernel memory leak detector disabled",
    "kmemleak: Memory pool empty, consider increasing CONFIG_DEBUG_KMEMLEAK_MEM_POOL_SIZE",
    "ODEBUG: Out of memory. ODEBUG disabled",
    "ref_tracker: reference already released.",
    "unregister_netdevice: waiting for rvtest0 to become free. Usage count = 2",
    "restrack: RESTRACK detected leak of resources",
    "    not ok 2 psn_wraps",
    "vm: problem: leak: unreferenced object 0x12 (size 64): by kmalloc+0x1 rv_open+0x2 [rv]",
    "list_del corruption. prev->next should be ffff, but was 0000",
    "ODEBUG: free active (active state 0) object: 00 object type: timer_list",
    "------------[ cut here ]------------",
)
HARMLESS = (
    "clocksource: timekeeping watchdog on CPU0: Marking clocksource 'tsc' as unstable",
    "clocksource: Long readout interval, skipping watchdog check: cs_nsec: 1 wd_nsec: 2",
    "workqueue: ib_mad_completion_work hogged CPU for >10000us 4 times, consider WQ_UNBOUND",
    "rv: loading out-of-tree module taints kernel.",
    "rv: module verification failed: signature and/or required key missing",
    "x86/mm: Checked W+X mappings: passed, no W+X pages found.",
    "lockdep: Lock dependency validator",
    "Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar",
    "FAULT_INJECTION: forcing a failure.",
    "    ok 1 psn_wraps",
    "kasan: KernelAddressSanitizer initialized (generic)",
    "kmemleak: Kernel memory leak detector initialized",
    "rcu: RCU debug extended QS entry/exit.",
    "PM: hibernation: debugging is off",
)


def log(*lines):
    """Lines as a console shows them."""
    return "".join(f"[{number:5}.000123] {line}\r\n" for number, line in enumerate(lines))


class CheckTest(unittest.TestCase):
    def test_every_bad_form_is_found(self):
        for line in BAD:
            with self.subTest(line):
                self.assertEqual(len(klog.check([log(line)], [])), 1)

    def test_harmless_lines_pass(self):
        for line in HARMLESS:
            with self.subTest(line):
                self.assertEqual(klog.check([log(line)], []), [])

    def test_only_the_kernel_counts_on_a_console(self):
        self.assertEqual(klog.check(["WARNING: a script says so\n"], []), [])

    def test_two_copies_are_one_problem(self):
        line = "WARNING: x"
        self.assertEqual(len(klog.check([log(line), log("else", line)], [])), 1)

    def test_caller_ids_and_levels_are_skipped(self):
        self.assertEqual(len(klog.check(["<4>[  1.000000][   T12] WARNING: x\n"], [])), 1)

    def test_cut_here_gives_way_to_what_follows(self):
        problems = klog.check([log("------------[ cut here ]------------", "WARNING: x")], [])
        self.assertEqual([problem.line for problem in problems], ["WARNING: x"])

    def test_mark_names_the_test(self):
        text = log("vm: mark: one", "vm: mark: two", "BUG: x")
        self.assertEqual(str(klog.check([text], [])[0]), "BUG: x (during two)")

    def test_allowed_lines_pass_with_their_cut_here(self):
        text = log("------------[ cut here ]------------", "WARNING: known", "WARNING: new")
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("# list\n\n^WARNING: known ## fixed upstream in 9.9\n")
            file.flush()
            allowed = klog.read_allowed(Path(file.name))
        self.assertEqual([p.line for p in klog.check([text], allowed)], ["WARNING: new"])

    def test_allow_list_needs_reasons(self):
        for text in ("WARNING: x\n", "WARNING: x ##\n", "( ## why\n"):
            with self.subTest(text), tempfile.NamedTemporaryFile("w") as file:
                file.write(text)
                file.flush()
                with self.assertRaises(Failure):
                    klog.read_allowed(Path(file.name))

    def test_the_shipped_list_is_valid(self):
        klog.read_allowed(Path(klog.__file__).parent.parent / "kernel-log.allow")


class TaintTest(unittest.TestCase):
    def test_flags(self):
        self.assertEqual(klog.check_taint((1 << 12) | (1 << 13)), "")
        self.assertIn("warning", klog.check_taint(1 << 9))
        self.assertIn("died", klog.check_taint((1 << 9) | (1 << 7)))
