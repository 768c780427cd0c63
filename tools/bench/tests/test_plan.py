# SPDX-License-Identifier: GPL-2.0
"""What is measured."""

import unittest

from benchlib import plan


class Steps(unittest.TestCase):
    """The order and the command lines."""

    def test_turns(self) -> None:
        keys = [step.key for step in plan.bandwidth(2, [4096])]
        self.assertEqual(
            keys,
            ["rv.4096.1.0", "ib.4096.1.0", "rv.4096.4.0", "ib.4096.4.0"]
            + ["ib.4096.1.1", "rv.4096.1.1", "ib.4096.4.1", "rv.4096.4.1"],
        )

    def test_same_work(self) -> None:
        for size in plan.SIZES:
            mine, theirs = plan.ours(size, 4, "a"), plan.reference(size, 4, "b")
            self.assertIn(f"--size {size} ", mine.vm2)
            self.assertIn("--window 64 --num-conn 4", mine.vm2)
            self.assertIn(f"-s {size} ", theirs.vm2)
            self.assertIn("-t 16 -q 4 -u 20", theirs.vm2)

    def test_numbers_of_writes(self) -> None:
        self.assertEqual(plan.writes(4096, 1), plan.MOST_WRITES)
        self.assertEqual(plan.writes(plan.MIB, 1), 48)
        self.assertEqual(plan.writes(plan.MIB, 4), 4 * plan.LEAST_WRITES)
        for size in plan.SIZES:
            for pairs in plan.QUEUE_PAIRS:
                self.assertEqual(plan.writes(size, pairs) % pairs, 0)

    def test_lines(self) -> None:
        for step in [*plan.bandwidth(1, plan.SIZES), *plan.scale(1), *plan.registration(5)]:
            self.assertEqual(len(step.line().split("\t")), 5)
            self.assertNotIn("\n", step.line())


if __name__ == "__main__":
    unittest.main()
