# SPDX-License-Identifier: GPL-2.0
"""Configurations: what was asked for and what came of it; the shipped one."""

import unittest

from vmlib import debugkernel, kconfig
from vmlib.report import Failure


class ParseTest(unittest.TestCase):
    def test_values(self):
        text = '# A comment.\nCONFIG_A=y\nCONFIG_B="x y"\n\n# CONFIG_C is not set\nCONFIG_D=17\n'
        self.assertEqual(
            kconfig.parse(text),
            {"CONFIG_A": "y", "CONFIG_B": '"x y"', "CONFIG_C": "n", "CONFIG_D": "17"},
        )


class UnmetTest(unittest.TestCase):
    def test_nothing(self):
        self.assertEqual(kconfig.unmet("CONFIG_A=y\n", "CONFIG_B=m\nCONFIG_A=y\n"), [])

    def test_dropped_options_are_named_with_what_they_are(self):
        wanted = "CONFIG_A=y\nCONFIG_B=y\nCONFIG_C=8\nCONFIG_D=y\n"
        got = "CONFIG_A=m\n# CONFIG_B is not set\nCONFIG_C=9\n"
        self.assertEqual(
            kconfig.unmet(wanted, got),
            ["CONFIG_A=y (is m)", "CONFIG_B=y (is n)", "CONFIG_C=8 (is 9)", "CONFIG_D=y (is n)"],
        )

    def test_an_option_that_has_to_be_off(self):
        wanted = "# CONFIG_A is not set\n"
        self.assertEqual(kconfig.unmet(wanted, ""), [])
        self.assertEqual(kconfig.unmet(wanted, "CONFIG_A=y\n"), ["CONFIG_A=n (is y)"])


class ShippedTest(unittest.TestCase):
    def test_each_option_is_there_once(self):
        lines = debugkernel.CONFIG.read_text().splitlines()
        matches = (kconfig.SET.fullmatch(line) or kconfig.NOT_SET.fullmatch(line) for line in lines)
        names = [match[1] for match in matches if match]
        self.assertEqual(sorted(names), sorted(set(names)))

    def test_every_line_is_an_option_or_a_comment(self):
        for line in debugkernel.CONFIG.read_text().splitlines():
            known = kconfig.SET.fullmatch(line) or line.startswith("#") or not line
            self.assertTrue(known, line)

    def test_the_checkers_are_asked_for(self):
        options = kconfig.parse(debugkernel.CONFIG.read_text())
        for name in ("KASAN", "UBSAN", "PROVE_LOCKING", "DEBUG_KMEMLEAK", "FAILSLAB", "KUNIT"):
            self.assertEqual(options[f"CONFIG_{name}"], "y")

    def test_a_kernel_that_lacks_something_is_refused_by_name(self):
        made = debugkernel.CONFIG.read_text()
        debugkernel.check_options(made)
        with self.assertRaisesRegex(Failure, r"lack 1 options .*: CONFIG_KASAN=y \(is n\)"):
            debugkernel.check_options(made.replace("CONFIG_KASAN=y", "# CONFIG_KASAN is not set"))


class CompilersTest(unittest.TestCase):
    def test_versions_out_of_dpkg_status(self):
        status = (
            "Package: rustc\nStatus: x\nVersion: 1.85.1\n\nPackage: clang-19\nVersion: 1:19.1.7-3\n"
        )
        self.assertEqual(
            debugkernel.compilers(status),
            ["bindgen missing", "clang-19 1:19.1.7-3", "lld-19 missing", "rustc 1.85.1"],
        )
