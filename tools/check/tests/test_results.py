# SPDX-License-Identifier: GPL-2.0
"""Counting tests in the output of suites."""

import unittest

from checklib import results

HARNESS = """\
TAP version 13
1..3
# Starting 3 tests from 1 test cases.
#  RUN           global.a ...
#            OK  global.a
ok 1 global.a
#  RUN           global.b ...
# rv.c:12:b:Expected 1 (1) == 2 (2)
# b: Test failed
#          FAIL  global.b
not ok 2 global.b
#  RUN           global.c ...
#      SKIP      no device
ok 3 global.c # SKIP no device
# FAILED: 2 / 3 tests passed.
# Totals: pass:1 fail:1 xfail:0 xpass:0 skip:1 error:0
"""

NESTED = """\
TAP version 13
1..3
# 1 of 3: one
    TAP version 13
    1..2
    ok 1 a
    ok 2 b
ok 1 one
    ok 1 c
    not ok 2 d
    1..2
not ok 2 two # exit code 1, see somewhere
# vm1: no tap at all
ok 3 three
"""


class TapTest(unittest.TestCase):
    def test_harness(self):
        counts = results.count_tap(HARNESS)
        self.assertEqual(counts.passed, 1)
        self.assertEqual(counts.failures, ["global.b"])
        self.assertEqual(counts.skips, ["global.c: SKIP no device"])

    def test_leaves_are_counted_once(self):
        counts = results.count_tap(NESTED)
        self.assertEqual(counts.passed, 4)
        self.assertEqual(counts.failures, ["d"])

    def test_parent_that_fails_alone_is_a_failure(self):
        text = "1..1\n    ok 1 a\n    1..1\nnot ok 1 one # kernel log: BUG: x\n"
        counts = results.count_tap(text)
        self.assertEqual(counts.passed, 1)
        self.assertEqual(counts.failures, ["one: kernel log: BUG: x"])

    def test_plan_not_kept(self):
        self.assertEqual(results.count_tap("1..3\nok 1 a\n").failures, ["1 tests ran of 3 planned"])

    def test_nested_plan_not_kept(self):
        counts = results.count_tap("1..1\n    1..2\n    ok 1 a\nnot ok 1 one # died\n")
        self.assertEqual(counts.failures, ["1 tests ran of 2 planned"])

    def test_several_documents(self):
        counts = results.count_tap("TAP version 13\n1..1\nok 1 a\nTAP version 13\n1..1\nok 1 b\n")
        self.assertEqual((counts.passed, counts.failures), (2, []))

    def test_ktap_of_the_kernel(self):
        text = (
            "KTAP version 1\n1..1\n  KTAP version 1\n  # Subtest: s\n  1..2\n"
            "  ok 1 a\n  ok 2 b # SKIP x\n# s: pass:1 fail:0 skip:1\nok 1 s\n"
        )
        counts = results.count_tap(text)
        self.assertEqual((counts.passed, len(counts.skips), counts.failures), (1, 1, []))

    def test_skip_all(self):
        self.assertEqual(results.count_tap("1..0 # SKIP no device\n").skips, ["no device"])

    def test_todo_and_xfail(self):
        counts = results.count_tap(
            "1..3\nnot ok 1 a # TODO later\nok 2 b # XFAIL x\nnot ok 3 c # XFAIL y\n"
        )
        self.assertEqual((counts.passed, counts.failures), (1, []))
        self.assertEqual(counts.skips, ["a: TODO later", "c: XFAIL y"])

    def test_bail_out(self):
        self.assertEqual(
            results.count_tap("Bail out! no /dev/rv\n").failures, ["Bail out! no /dev/rv"]
        )

    def test_prose_is_no_result(self):
        self.assertEqual(results.count_tap("okay then\nthis is not ok\n# ok 1 x\n").total, 0)


class JudgeTest(unittest.TestCase):
    def test_no_test_is_a_failure(self):
        self.assertEqual(results.judge("tap", "nothing\n", 0).failures, ["it ran no test"])

    def test_exit_code_counts(self):
        self.assertEqual(results.judge("exit", "fine\n", 0).passed, 1)
        counts = results.judge("exit", "blah\nerror: cannot find crate\nmore\n", 101)
        self.assertEqual(counts.failures, ["exit code 101: error: cannot find crate"])

    def test_failing_command_with_passing_tests(self):
        self.assertEqual(len(results.judge("tap", "1..1\nok 1 a\n", 1).failures), 1)

    def test_failures_are_not_counted_twice(self):
        self.assertEqual(len(results.judge("tap", "1..1\nnot ok 1 a\n", 1).failures), 1)

    def test_cargo(self):
        text = (
            "test a ... ok\ntest b ... FAILED\ntest c ... ignored, needs a VM\n"
            "test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out\n"
            "test src/lib.rs - x (line 3) ... ok\n"
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n"
        )
        counts = results.judge("cargo", text, 101)
        self.assertEqual(counts.passed, 2)
        self.assertEqual(counts.failures, ["b"])
        self.assertEqual(counts.skips, ["c: needs a VM"])

    def test_cargo_that_does_not_compile(self):
        counts = results.judge("cargo", "error[E0425]: cannot find value\n", 101)
        self.assertEqual(len(counts.failures), 1)

    def test_unittest(self):
        text = (
            "test_a (t.A.test_a) ... ok\ntest_b (t.A.test_b) ... FAIL\n"
            "FAIL: test_b (t.A.test_b)\nRan 3 tests in 0.1s\n"
        )
        counts = results.judge("unittest", text, 1)
        self.assertEqual((counts.passed, counts.failures), (2, ["test_b (t.A.test_b)"]))

    def test_closing_line(self):
        counts = results.Counts(3, ["x"], [])
        self.assertEqual(counts.line(), "3 passed, 1 failed")
        counts.skips.append("y")
        self.assertEqual(counts.line(), "3 passed, 1 failed, 1 skipped")
