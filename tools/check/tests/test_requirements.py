# SPDX-License-Identifier: GPL-2.0
"""The table of requirements: how it is read, and that it is true."""

import tempfile
import unittest
from pathlib import Path

from checklib import requirements

REPO = Path(__file__).resolve().parents[3]

SAMPLE = """\
Title
=====

Words.

W1
   The first.

   Tests: ``rv_x: one, fix.two``;
   ``host/wire: three``

W2b
   The second.

   No test: it cannot
   be seen from outside.

Next
====

   A quotation, which belongs to no entry.
"""


class ParseTest(unittest.TestCase):
    def test_entries(self):
        first, second = requirements.parse(SAMPLE)
        self.assertEqual((first.number, first.text), ("W1", "The first."))
        self.assertEqual(
            first.tests, [("rv_x", "one"), ("rv_x", "fix.two"), ("host/wire", "three")]
        )
        self.assertEqual(second.number, "W2b")
        self.assertEqual(second.reason, "it cannot be seen from outside.")

    def test_names_in_c(self):
        source = "TEST(one)\n{\n}\n\nTEST_F(fix, two)\n{\n}\n/* TEST(three) */\n"
        self.assertEqual(requirements.tests_in(source, False), {"one", "two", "fix.two"})

    def test_names_in_rust(self):
        source = "    #[test]\n    fn one() {}\n\nfn two() {}\n"
        self.assertEqual(requirements.tests_in(source, True), {"one"})


class ProblemTest(unittest.TestCase):
    def check(self, table: str, numbers: list[str]) -> list[str]:
        with tempfile.TemporaryDirectory() as name:
            repo = Path(name)
            for path in (requirements.SELFTESTS, requirements.HOST_TESTS):
                (repo / path).mkdir(parents=True)
            (repo / requirements.SELFTESTS / "rv_x.c").write_text("TEST(one)\nTEST_F(fix, two)\n")
            (repo / requirements.HOST_TESTS / "wire.rs").write_text("#[test]\nfn three() {}\n")
            return requirements.problems(requirements.parse(table), repo, numbers)

    def test_fine(self):
        self.assertEqual(self.check(SAMPLE, ["W1"]), [])

    def test_missing_number(self):
        self.assertEqual(self.check(SAMPLE, ["W1", "W3"]), ["W3 is missing"])

    def test_number_twice(self):
        table = "W1\n   Words. No test: none.\n\nW1\n   Words. No test: none.\n"
        self.assertEqual(self.check(table, ["W1"]), ["W1 is there twice"])

    def test_test_that_has_gone(self):
        self.assertEqual(
            self.check(SAMPLE.replace("fix.two", "other.two"), []),
            ["W1: there is no test other.two in rv_x"],
        )

    def test_program_that_has_gone(self):
        self.assertEqual(
            self.check(SAMPLE.replace("host/wire", "host/wires"), []),
            ["W1: there is no test three in host/wires"],
        )

    def test_nothing_said(self):
        self.assertEqual(
            self.check("W1\n   Words.\n", []), ["W1 has neither tests nor a reason"]
        )
        self.assertEqual(
            self.check("W1\n   Tests: ``rv_x: one``\n", []), ["W1 does not say what is required"]
        )


class TableTest(unittest.TestCase):
    def test_every_test_that_it_names_is_there(self):
        entries = requirements.parse((REPO / requirements.TABLE).read_text())
        self.assertEqual(requirements.problems(entries, REPO, [*requirements.NUMBERS, "W2b"]), [])
