# SPDX-License-Identifier: GPL-2.0
"""The table of suites and what is chosen from it."""

import unittest

from checklib import results, suites


class TableTest(unittest.TestCase):
    def test_rows_are_sound(self):
        names = [suite.name for suite in suites.SUITES]
        self.assertEqual(len(names), len(set(names)))
        for suite in suites.SUITES:
            self.assertIn(suite.parser, results.PARSERS)
            self.assertIn(suite.group, ("host", "vm"))
            for name in suite.after:
                # Listed before, so that one pass over the table has the right order.
                self.assertLess(names.index(name), names.index(suite.name))

    def test_all(self):
        self.assertEqual(suites.choose([], None), list(suites.SUITES))

    def test_a_suite_brings_what_it_builds_on(self):
        names = [suite.name for suite in suites.choose(["two-vm"], None)]
        self.assertEqual(names, ["modules", "selftests-build", "two-vm"])

    def test_groups(self):
        self.assertTrue(all(s.group == "host" for s in suites.choose([], "host")))
        self.assertIn("modules", [suite.name for suite in suites.choose([], "vm")])

    def test_unknown(self):
        with self.assertRaisesRegex(ValueError, "no suite nonsense"):
            suites.choose(["nonsense"], None)
