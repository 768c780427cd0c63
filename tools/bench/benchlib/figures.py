# SPDX-License-Identifier: GPL-2.0
"""Figures out of what the VMs left: medians, ratios, goals, tables, curves."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import plan

# A part of the reference that ours must reach, by queue pairs.
BANDWIDTH_GOALS = {1: 0.95, 4: 1.0}
BANDWIDTH_GOAL_SIZES = (64 * plan.KIB, plan.MIB)
# A hit may cost so many times an ioctl that does nothing, a miss so many times ibv_reg_mr.
HIT_GOAL = 4.0
MISS_GOAL = 1.3
# POST to event may take so many times the round trip of ib_write_lat.
LATENCY_GOAL = 1.2
LATENCY_GOAL_SIZES = (64, 4 * plan.KIB)


@dataclass
class Compared:
    """Samples of ours and of the reference, round by round."""

    ours: list[float] = field(default_factory=list)
    reference: list[float] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """The ratios of neighbours in time."""
        return [a / b for a, b in zip(self.ours, self.reference, strict=True)]

    @property
    def ratio(self) -> float:
        """Their median, which noise of the host touches least."""
        return statistics.median(self.ratios)

    def row(self) -> dict[str, Any]:
        """The figures of the table."""
        return {
            "ours": statistics.median(self.ours),
            "reference": statistics.median(self.reference),
            "ratio": self.ratio,
            "samples_ours": self.ours,
            "samples_reference": self.reference,
        }


@dataclass
class Pair(Compared):
    """Bandwidth with so many queue pairs, in MiB/s."""

    size: int = 0
    pairs: int = 0

    def row(self) -> dict[str, Any]:
        """The figures of the table."""
        return {"size": self.size, "queue_pairs": self.pairs, **super().row()}


@dataclass
class Latency(Compared):
    """From POST to event, and the round trip of the reference, in microseconds."""

    size: int = 0

    def row(self) -> dict[str, Any]:
        """The figures of the table."""
        return {"size": self.size, **super().row()}


@dataclass(frozen=True)
class Goal:
    """A figure that is wanted, and the one that was measured."""

    what: str
    value: float
    limit: float
    at_least: bool

    @property
    def met(self) -> bool:
        """Whether it is good enough."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def text(self) -> str:
        """The goal in one line."""
        sign = "at least" if self.at_least else "at most"
        return f"{self.what}: {self.value:.2f}, goal {sign} {self.limit:.2f}"


def our_rate(path: Path) -> float:
    """MiB/s to the last completion, which is what ib_write_bw measures too."""
    result = json.loads(path.read_text())
    return result["bytes"] / result["completion_seconds"] / plan.MIB


def reference_rate(path: Path) -> float:
    """The average of ib_write_bw, MiB/s."""
    pattern = r"^\s*\d+\s+\d+\s+[\d.]+\s+([\d.]+)\s+[\d.]+\s*$"
    rows = re.findall(pattern, path.read_text(), re.MULTILINE)
    if not rows:
        raise ValueError(f"no figures in {path}")
    return float(rows[-1])


def our_latency(path: Path) -> float:
    """The median from POST to event, microseconds."""
    return json.loads(path.read_text())["post_to_event_us"]["median"]


def reference_latency(path: Path) -> float:
    """The typical round trip of ib_write_lat, which prints half of it, microseconds."""
    pattern = r"^\s*\d+\s+\d+\s+[\d.]+\s+[\d.]+\s+([\d.]+)\s.*$"
    rows = re.findall(pattern, path.read_text(), re.MULTILINE)
    if not rows:
        raise ValueError(f"no figures in {path}")
    return 2 * float(rows[-1])


def latency(folder: Path, rounds: int) -> list[Latency]:
    """Read all measurements of single writes."""
    result = []
    for size in plan.LATENCY_SIZES:
        one = Latency(size=size)
        for number in range(rounds):
            end = f"{size}.{number}.out"
            one.ours.append(our_latency(folder / f"lat.rv.{end}"))
            one.reference.append(reference_latency(folder / f"lat.ib.{end}"))
        result.append(one)
    return result


@dataclass
class Crowd:
    """The time from POST to event in company, round by round, in microseconds."""

    processes: int
    connections: int
    times: list[float] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """The figures of the table."""
        return {
            "processes": self.processes,
            "connections": self.connections,
            "post_to_event_us": statistics.median(self.times),
            "samples": self.times,
        }


def crowds(folder: Path, rounds: int) -> list[Crowd]:
    """Read all measurements in company."""
    result = []
    for processes, connections in plan.CROWDS:
        one = Crowd(processes, connections)
        for number in range(rounds):
            path = folder / f"crowd.{processes}.{connections}.{number}.out"
            one.times.append(our_latency(path))
        result.append(one)
    return result


def scale(folder: Path) -> list[dict[str, float]]:
    """Read the costs of calls by the number of processes and connections."""
    return json.loads((folder / "scale.out").read_text())["scale"]


def bandwidth(folder: Path, rounds: int, sizes: Sequence[int]) -> list[Pair]:
    """Read all measurements of bandwidth."""
    result = []
    for size in sizes:
        for pairs in plan.QUEUE_PAIRS:
            pair = Pair(size=size, pairs=pairs)
            for number in range(rounds):
                end = f"{size}.{pairs}.{number}.out"
                pair.ours.append(our_rate(folder / f"rv.{end}"))
                pair.reference.append(reference_rate(folder / f"ib.{end}"))
            result.append(pair)
    return result


def registration(folder: Path) -> dict[str, list[dict[str, float]]]:
    """Read the costs by the way of registration; a way that rv does not have is left out."""
    result = {}
    for mode in plan.REGISTRATION:
        path = folder / f"reg.{mode}.out"
        if path.exists() and path.stat().st_size:
            result[mode] = json.loads(path.read_text())["costs"]
    return result


def goals(
    pairs: Sequence[Pair],
    latencies: Sequence[Latency],
    costs: dict[str, list[dict[str, float]]],
) -> Iterator[Goal]:
    """All figures that are wanted."""
    for one in latencies:
        if one.size in LATENCY_GOAL_SIZES:
            what = f"POST to event of {size(one.size)}, of ib_write_lat's round trip"
            yield Goal(what, one.ratio, LATENCY_GOAL, at_least=False)
    for pair in pairs:
        if pair.size in BANDWIDTH_GOAL_SIZES:
            limit = BANDWIDTH_GOALS[pair.pairs]
            what = f"bandwidth of {size(pair.size)}, {pair.pairs} queue pairs, of ib_write_bw"
            yield Goal(what, pair.ratio, limit, at_least=True)
    for cost in costs.get("auto", ()):
        name = size(int(cost["size"]))
        hit = max(cost["hit"], cost["hit_idle"]) / cost["floor"]
        yield Goal(f"REG_MEM hit of {name}, of an empty ioctl", hit, HIT_GOAL, at_least=False)
        miss = cost["miss"] / cost["ibv_reg"]
        yield Goal(f"REG_MEM miss of {name}, of ibv_reg_mr", miss, MISS_GOAL, at_least=False)


def size(number: int) -> str:
    """A size for people."""
    if number >= plan.MIB:
        return f"{number // plan.MIB} MiB"
    if number >= plan.KIB:
        return f"{number // plan.KIB} KiB"
    return f"{number} B"


def bandwidth_table(pairs: Sequence[Pair]) -> list[str]:
    """The table of bandwidths."""
    lines = ["   size  QPs   rv MiB/s  ib_write_bw   ratio  (medians; smallest and largest ratio)"]
    for pair in pairs:
        row = pair.row()
        lines.append(
            f"{size(pair.size):>7}  {pair.pairs:3}  {row['ours']:9.2f}  {row['reference']:11.2f}  "
            f"{row['ratio']:6.2f}  {min(pair.ratios):.2f} ... {max(pair.ratios):.2f}"
        )
    return lines


def latency_table(latencies: Sequence[Latency]) -> list[str]:
    """The table of single writes."""
    lines = ["   size  POST to event us  ib_write_lat round trip us   ratio  (medians; all ratios)"]
    for one in latencies:
        row = one.row()
        lines.append(
            f"{size(one.size):>7}  {row['ours']:16.1f}  {row['reference']:26.1f}  "
            f"{row['ratio']:6.2f}  {min(one.ratios):.2f} ... {max(one.ratios):.2f}"
        )
    return lines


def scale_table(company: Sequence[Crowd], costs: Sequence[dict[str, float]]) -> list[str]:
    """The table of costs by the number of processes and connections."""
    names = ("attach", "close", "hit", "create", "share", "connected")
    posts = {(one.processes, one.connections): one.row()["post_to_event_us"] for one in company}
    head = "".join(f"{name:>11}" for name in names)
    lines = [f"processes  connections{head}  POST to event of 4 KiB   us, medians"]
    for row in costs:
        cells = "".join(f"{row[name]:11.2f}" for name in names)
        post = posts.get((int(row["processes"]), int(row["connections"])), float("nan"))
        lines.append(f"{int(row['processes']):9}  {int(row['connections']):11}{cells}  {post:22.1f}")
    return lines


def registration_table(costs: dict[str, list[dict[str, float]]]) -> list[str]:
    """The table of costs."""
    names = ("floor", "miss", "hit", "hit_idle", "dereg", "dereg_last", "ibv_reg", "ibv_dereg")
    lines = ["   size  way " + "".join(f"{name:>11}" for name in names) + "   us, medians"]
    for mode, rows in costs.items():
        for row in rows:
            cells = "".join(f"{row[name]:11.2f}" for name in names)
            lines.append(f"{size(int(row['size'])):>7}  {mode:4}{cells}")
    return lines


def bandwidth_chart(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Curves for rv-plot."""
    series = []
    for group, count in enumerate(plan.QUEUE_PAIRS):
        rows = [pair.row() for pair in pairs if pair.pairs == count]
        plural = "s" if count > 1 else ""
        for name, key in (("rv-perf", "ours"), ("ib_write_bw", "reference")):
            series.append(
                {
                    "name": f"{name}, {count} queue pair{plural}",
                    "reference": key == "reference",
                    "group": group,
                    "points": [(row["size"], row[key]) for row in rows],
                }
            )
    title = f"RDMA writes between two VMs over rdma_rxe, {plan.DEPTH} under way per queue pair"
    return {"title": title, "y_label": "MiB/s", "linear": True, "series": series}


def registration_chart(costs: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Curves for rv-plot."""
    curves = [(f"REG_MEM miss, {mode}", mode, "miss") for mode in costs]
    curves += [("ibv_reg_mr", "auto", "ibv_reg"), ("REG_MEM hit", "auto", "hit")]
    curves += [("DEREG_MEM", "auto", "dereg"), ("empty ioctl", "auto", "floor")]
    series = [
        {
            "name": name,
            "reference": key in ("ibv_reg", "floor"),
            "points": [(row["size"], row[key]) for row in costs.get(mode, ())],
        }
        for name, mode, key in curves
    ]
    return {"title": "cost of registering memory on rdma_rxe", "y_label": "us", "series": series}
