# SPDX-License-Identifier: GPL-2.0
"""The table of suites and what is chosen from it."""

import unittest
from unittest import mock

from checklib import results, suites


class TableTest(unittest.TestCase):
    def test_rows_are_sound(self):
        names = [suite.name for suite in suites.SUITES]
        self.assertEqual(len(names), len(set(names)))
        for suite in suites.SUITES:
            self.assertIn(suite.parser, results.PARSERS)
            self.assertIn(suite.group, ("host", "vm", "debug"))
            for name in suite.after:
                # Listed before, so that one pass over the table has the right order.
                self.assertLess(names.index(name), names.index(suite.name))

    def test_all_but_the_long_ones(self):
        short = [s for s in suites.SUITES if not s.long and s.group != "debug"]
        self.assertEqual(suites.choose([], None), short)

    def test_a_suite_brings_what_it_builds_on(self):
        names = [suite.name for suite in suites.choose(["two-vm"], None)]
        self.assertEqual(names, ["modules", "selftests-build", "two-vm"])

    def test_groups(self):
        self.assertTrue(all(s.group == "host" for s in suites.choose([], "host")))
        self.assertIn("modules", [suite.name for suite in suites.choose([], "vm")])

    def test_the_debug_group_runs_when_it_is_asked_for(self):
        chosen = suites.choose([], "debug")
        self.assertTrue(any(suite.group == "debug" for suite in chosen))
        self.assertTrue(all("--kernel" in s.command for s in chosen if "vm-tests" in s.command[0]))
        for group in (None, "host", "vm", "long"):
            groups = {suite.group for suite in suites.choose([], group)}
            self.assertNotIn("debug", groups)

    def test_a_long_suite_runs_when_it_is_asked_for(self):
        long = suites.Suite(name="long", what="", planned=1, command=(), group="vm", long=True)
        with mock.patch.object(suites, "SUITES", (*suites.SUITES, long)):
            self.assertNotIn(long, suites.choose([], "vm"))
            self.assertNotIn(long, suites.choose([], None))
            self.assertIn(long, suites.choose([], "long"))
            self.assertIn(long, suites.choose(["long"], None))

    def test_the_long_group_has_only_what_it_builds_on_besides(self):
        chosen = suites.choose([], "long")
        wanted = {suite.name for suite in chosen if suite.long}
        for suite in reversed(chosen):
            if suite.name in wanted:
                wanted |= set(suite.after)
        self.assertEqual({suite.name for suite in chosen}, wanted)

    def test_unknown(self):
        with self.assertRaisesRegex(ValueError, "no suite nonsense"):
            suites.choose(["nonsense"], None)
