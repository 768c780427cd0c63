# SPDX-License-Identifier: GPL-2.0
"""PSM3 with rv beside PSM3 without, PSM3_RDMA=1 and 0: steps, figures, goals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .figures import Compared, Goal, size
from .plan import KIB, MIB, Step

# What is measured: program, message size, messages, and the goal for the ratio of with rv
# to without. Bandwidth is to grow, the time one way to shrink; 64 B never goes by rv.
# Bandwidth is measured with fabtests' own window of 64 messages, of which there are some.
TESTS = (
    ("fi_rdm_tagged_bw", 64 * KIB, 640, 1.3),
    ("fi_rdm_tagged_bw", MIB, 128, 1.4),
    ("fi_rdm_tagged_bw", 4 * MIB, 64, 1.4),
    ("fi_rdm_tagged_pingpong", 64, 500, None),
    ("fi_rdm_tagged_pingpong", 64 * KIB, 100, 1.1),
    ("fi_rdm_tagged_pingpong", MIB, 20, 0.7),
)
BANDWIDTH = "fi_rdm_tagged_bw"
ENVIRONMENT = (
    "FI_PROVIDER=psm3 PSM3_HAL=verbs PSM3_DEVICES=self,nic PSM3_NIC_SPEED=any "
    "FI_PSM3_UUID=62656e63-6800-4000-8000-000000000002"
)
COLUMNS = re.compile(r"^\S+\s+\d+\s+\S+\s+[\d.]+s\s+([\d.]+)\s+([\d.]+)\s+[\d.]+\s*$", re.MULTILINE)


@dataclass
class Ratio(Compared):
    """With rv (ours) and without, round by round: MB/s, or microseconds one way."""

    program: str = BANDWIDTH
    size: int = 0
    goal: float | None = None

    @property
    def name(self) -> str:
        """What it is, for people."""
        what = "bandwidth" if self.program == BANDWIDTH else "time one way"
        return f"PSM3, {what} of {size(self.size)}"

    def row(self) -> dict[str, Any]:
        """The figures of the table."""
        return {"program": self.program, "size": self.size, **super().row()}


def key(program: str, length: int, mode: int, number: int) -> str:
    """The name of a measurement."""
    return f"psm3.{program}.{length}.{mode}.{number}"


def one(program: str, length: int, count: int, mode: int, number: int) -> Step:
    """A measurement with PSM3_RDMA=`mode`."""
    command = (
        f"env PSM3_RDMA={mode} {ENVIRONMENT} /opt/psm3/bin/{program} "
        f"-p psm3 -E -w 4 -I {count} -S {length}"
    )
    return Step(key(program, length, mode, number), "ofi", command, f"{command} $VM_PEER_IP")


def steps(rounds: int) -> Iterator[Step]:
    """With and without in turns; who is first changes from round to round."""
    for number in range(rounds):
        for program, length, count, _ in TESTS:
            both = [one(program, length, count, mode, number) for mode in (1, 0)]
            yield from both if number % 2 == 0 else reversed(both)


def figure(path: Path, program: str) -> float:
    """What a program of fabtests printed: MB/s, or microseconds."""
    rows = COLUMNS.findall(path.read_text())
    if not rows:
        raise ValueError(f"no figures in {path}")
    rate, time = rows[-1]
    return float(rate if program == BANDWIDTH else time)


def read(folder: Path, rounds: int) -> list[Ratio]:
    """All measurements."""
    result = []
    for program, length, _, goal in TESTS:
        ratio = Ratio(program=program, size=length, goal=goal)
        for number in range(rounds):
            for mode, samples in ((1, ratio.ours), (0, ratio.reference)):
                path = folder / f"{key(program, length, mode, number)}.out"
                samples.append(figure(path, program))
        result.append(ratio)
    return result


def table(ratios: Sequence[Ratio]) -> Iterator[str]:
    """The figures side by side."""
    yield f"{'PSM3':36} {'with rv':>10} {'without':>10} {'ratio':>6}"
    for ratio in ratios:
        row = ratio.row()
        unit = "MB/s" if ratio.program == BANDWIDTH else "us"
        yield (
            f"{ratio.name.removeprefix('PSM3, ') + ', ' + unit:36} "
            f"{row['ours']:10.1f} {row['reference']:10.1f} {row['ratio']:6.2f}"
        )


def goals(ratios: Sequence[Ratio]) -> Iterator[Goal]:
    """What is wanted of rv in PSM3."""
    for ratio in ratios:
        if ratio.goal is not None:
            grow = ratio.program == BANDWIDTH
            yield Goal(f"{ratio.name}, of that without rv", ratio.ratio, ratio.goal, at_least=grow)
