# SPDX-License-Identifier: GPL-2.0
"""Figures of fabtests, and the goals for PSM3."""

import tempfile
import unittest
from pathlib import Path

from benchlib import psm3

OUTPUT = """\
libfabric:1:2::psm3:core:psmx3_update_nic_info():603<warn> vm1: Failed to query bus_attr
bytes   iters   total       time     MB/sec    usec/xfer   Mxfers/sec
64k     4       512k        0.24s      2.20   29794.25       0.00
1m      4       8m          0.91s      9.25  113373.25       0.00
"""


class FigureTest(unittest.TestCase):
    def figure(self, text, program):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            return psm3.figure(Path(file.name), program)

    def test_bandwidth_and_time_of_the_last_row(self):
        self.assertEqual(self.figure(OUTPUT, psm3.BANDWIDTH), 9.25)
        self.assertEqual(self.figure(OUTPUT, "fi_rdm_tagged_pingpong"), 113373.25)

    def test_a_program_that_failed(self):
        with self.assertRaisesRegex(ValueError, "no figures"):
            self.figure(OUTPUT.partition("64k")[0], psm3.BANDWIDTH)


class StepsTest(unittest.TestCase):
    def test_every_figure_is_measured_both_ways_in_each_round(self):
        keys = [step.key for step in psm3.steps(2)]
        self.assertEqual(len(keys), len(set(keys)))
        self.assertEqual(len(keys), 2 * 2 * len(psm3.TESTS))

    def test_neighbours_change_places(self):
        keys = [step.key for step in psm3.steps(2)]
        first, second = keys[0], keys[2 * len(psm3.TESTS)]
        self.assertEqual((first[-3:], second[-3:]), ("1.0", "0.1"))


class GoalsTest(unittest.TestCase):
    def test_more_bandwidth_and_less_time(self):
        fast = psm3.Ratio([26.0], [20.0], psm3.BANDWIDTH, 65536, 1.3)
        slow = psm3.Ratio([150.0], [100.0], "fi_rdm_tagged_pingpong", 65536, 1.1)
        none = psm3.Ratio([1.0], [1.0], "fi_rdm_tagged_pingpong", 64)
        self.assertEqual([goal.met for goal in psm3.goals([fast, slow, none])], [True, False])


if __name__ == "__main__":
    unittest.main()
