# SPDX-License-Identifier: GPL-2.0
"""Which kernel is taken from what an archive offers."""

import unittest

from vmlib import kernels
from vmlib.report import Failure


def offer(series, release, version, source_version=None):
    """The packages of one kernel."""
    return [
        (f"linux-image-{release}-amd64", version),
        (f"linux-headers-{release}-amd64", version),
        (f"linux-source-{series}", source_version or version),
    ]


class PickTest(unittest.TestCase):
    def test_the_wanted_series_even_if_there_is_a_later(self):
        packages = offer("7.3", "7.3.4+deb13", "7.3.4-1") + offer("7.4", "7.4.1+deb13", "7.4.1-1")
        self.assertEqual(kernels.pick(packages, "7.3").release, "7.3.4+deb13-amd64")

    def test_the_newest_of_the_series(self):
        packages = offer("7.3", "7.3.4+deb13", "7.3.4-1~bpo13+1")
        packages += offer("7.3", "7.3.10+deb13", "7.3.10-1~bpo13+1")
        self.assertEqual(kernels.pick(packages, "7.3").release, "7.3.10+deb13-amd64")

    def test_the_next_later_series_when_it_is_gone(self):
        packages = offer("7.10", "7.10.2+deb13", "7.10.2-1") + offer("7.4", "7.4.1+x", "7.4.1-1")
        packages += offer("6.12", "6.12.9", "6.12.9-1")
        self.assertEqual(kernels.pick(packages, "7.3").series, "7.4")

    def test_source_of_another_version_does_not_count(self):
        packages = offer("7.3", "7.3.4+deb13", "7.3.4-1", "7.3.5-1")
        packages += offer("7.4", "7.4.1+deb13", "7.4.1-1")
        self.assertEqual(kernels.pick(packages, "7.3").series, "7.4")

    def test_other_flavours_are_not_taken(self):
        packages = [
            ("linux-image-7.3.4+deb13-cloud-amd64", "7.3.4-1"),
            ("linux-headers-7.3.4+deb13-cloud-amd64", "7.3.4-1"),
            ("linux-image-7.3.4+deb13-rt-amd64", "7.3.4-1"),
            ("linux-source-7.3", "7.3.4-1"),
        ]
        with self.assertRaisesRegex(Failure, "no kernel 7.3 or later"):
            kernels.pick(packages, "7.3")

    def test_only_older_ones(self):
        with self.assertRaisesRegex(Failure, "KERNEL_SERIES"):
            kernels.pick(offer("6.12", "6.12.9", "6.12.9-1"), "7.3")

    def test_packages_are_pinned_to_the_pocket(self):
        kernel = kernels.pick(offer("7.3", "7.3.4+deb13", "7.3.4-1"), "7.3")
        self.assertEqual(
            kernel.packages("trixie-backports"),
            [
                "linux-image-7.3.4+deb13-amd64/trixie-backports",
                "linux-headers-7.3.4+deb13-amd64/trixie-backports",
                "linux-source-7.3/trixie-backports",
            ],
        )


class StanzaTest(unittest.TestCase):
    def test_name_and_version(self):
        text = "Package: a\nDepends: b\nVersion: 1-2\n\nPackage: c\nVersion: 3\n\nPackage: d\n"
        self.assertEqual(kernels.parse_stanzas(text), [("a", "1-2"), ("c", "3")])
