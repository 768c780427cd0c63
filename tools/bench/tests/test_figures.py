# SPDX-License-Identifier: GPL-2.0
"""Medians, ratios and goals."""

import json
import tempfile
import unittest
from pathlib import Path

from benchlib import figures, plan

COST = {
    "size": 4096,
    "floor": 1.0,
    "miss": 60.0,
    "hit": 3.0,
    "hit_idle": 3.5,
    "dereg": 2.0,
    "dereg_last": 2.5,
    "ibv_reg": 50.0,
    "ibv_dereg": 20.0,
}


class Figures(unittest.TestCase):
    """Reading and judging."""

    def test_files(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for number, rate in enumerate((10, 30, 20)):
                for pairs in plan.QUEUE_PAIRS:
                    end = f"65536.{pairs}.{number}.out"
                    result = {"bytes": rate * plan.MIB, "completion_seconds": 1}
                    (folder / f"rv.{end}").write_text(json.dumps(result))
                    (folder / f"ib.{end}").write_text(f" 65536  100  9.9  {rate * 2}.0  0.1\n")
            pairs = figures.bandwidth(folder, 3, [65536])
        self.assertEqual([pair.row()["ours"] for pair in pairs], [20, 20])
        self.assertEqual([pair.ratio for pair in pairs], [0.5, 0.5])

    def test_bandwidth_goals(self) -> None:
        good = figures.Pair([9.6], [10.0], plan.MIB, 1)
        bad = figures.Pair([9.6], [10.0], plan.MIB, 4)
        free = figures.Pair([1.0], [10.0], 4096, 1)
        goals = list(figures.goals([good, bad, free], [], {}))
        self.assertEqual([goal.met for goal in goals], [True, False])
        self.assertIn("1 MiB, 4 queue pairs", goals[1].text())

    def test_latency(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for size in plan.LATENCY_SIZES:
                result = {"post_to_event_us": {"median": 300.0}}
                (folder / f"lat.rv.{size}.0.out").write_text(json.dumps(result))
                row = f" {size}       500          90.1        400.0        150.0  151.0  3.0  170  190\n"
                (folder / f"lat.ib.{size}.0.out").write_text(row)
            latencies = figures.latency(folder, 1)
        self.assertEqual([one.ratio for one in latencies], [1.0] * len(plan.LATENCY_SIZES))
        self.assertIn("64 B", figures.latency_table(latencies)[1])
        slow = figures.Latency([370.0], [300.0], 64)
        goals = list(figures.goals([], [latencies[0], slow], {}))
        self.assertEqual([goal.met for goal in goals], [True, False])

    def test_scale(self) -> None:
        names = ("attach", "close", "hit", "create", "share", "connected")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            rows = []
            for processes, connections in plan.CROWDS:
                row = {"processes": processes, "connections": connections}
                rows.append({**row, **{name: 7.0 for name in names}})
                result = {"post_to_event_us": {"median": 100.0 * processes}}
                path = folder / f"crowd.{processes}.{connections}.0.out"
                path.write_text(json.dumps(result))
            (folder / "scale.out").write_text(json.dumps({"scale": rows}))
            table = figures.scale_table(figures.crowds(folder, 1), figures.scale(folder))
        self.assertEqual(len(table), 1 + len(plan.CROWDS))
        self.assertIn("6400.0", table[3])

    def test_registration_goals(self) -> None:
        goals = list(figures.goals([], [], {"auto": [COST]}))
        self.assertEqual([goal.met for goal in goals], [True, True])
        goals = list(figures.goals([], [], {"auto": [{**COST, "hit_idle": 4.5, "miss": 70.0}]}))
        self.assertEqual([goal.met for goal in goals], [False, False])

    def test_tables_and_charts(self) -> None:
        pairs = [figures.Pair([9.6], [10.0], plan.MIB, 1)]
        self.assertIn("0.96", "\n".join(figures.bandwidth_table(pairs)))
        costs = {"auto": [COST], "fast": [COST]}
        self.assertEqual(len(figures.registration_table(costs)), 3)
        chart = figures.registration_chart(costs)
        self.assertEqual(len(chart["series"]), 6)
        self.assertEqual(len(figures.bandwidth_chart(pairs)["series"]), 4)


if __name__ == "__main__":
    unittest.main()
