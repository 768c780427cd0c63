# SPDX-License-Identifier: GPL-2.0
"""Does the evidence support the claim: all of the file went by RDMA writes through rv?

Four witnesses that do not know of each other are asked: rv-perf on both sides,
the counters of rv on both sides, the counters of rdma_rxe, and tc, which tells
RoCE from all other traffic of the network interface.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Of what is not RoCE (addresses and credits of rv-perf, ARP): below this part of the file.
MOST_OTHER = 0.01
# rdma_rxe cannot send more in one packet, whatever the MTU.
LARGEST_PACKET = 4096


@dataclass(frozen=True)
class Check:
    """One thing that must be so."""

    good: bool
    text: str


@dataclass(frozen=True)
class Evidence:
    """What one VM left behind."""

    perf: dict[str, Any]
    sha256: str
    roce: int
    other: int
    hw: dict[str, int]

    @classmethod
    def read(cls, folder: Path) -> Evidence:
        """Read the results of a VM."""
        before, after = (traffic(folder, name) for name in ("before", "after"))
        counters = [hw_counters(folder / f"{name}.hw_counters") for name in ("before", "after")]
        return cls(
            perf=json.loads((folder / "perf.json").read_text()),
            sha256=(folder / "sha256").read_text().split()[0],
            roce=after[0] - before[0],
            other=after[1] - before[1],
            hw={name: counters[1][name] - value for name, value in counters[0].items()},
        )


def hw_counters(path: Path) -> dict[str, int]:
    """Lines of a name and a number."""
    pairs = (line.split() for line in path.read_text().splitlines())
    return {name: int(value) for name, value in pairs}


def traffic(folder: Path, name: str) -> tuple[int, int]:
    """Bytes of RoCE and of all else, in both directions together."""
    roce = other = 0
    for way in ("ingress", "egress"):
        for part in json.loads((folder / f"{name}.{way}.json").read_text()):
            count = filter_bytes(part)
            if part.get("kind") == "flower":
                roce += count
            else:
                other += count
    return roce, other


def filter_bytes(part: dict[str, Any]) -> int:
    """Bytes that the actions of a filter saw; `tc` also lists filters without any."""
    actions = part.get("options", {}).get("actions", [])
    return sum(action.get("stats", {}).get("bytes", 0) for action in actions)


def bandwidth(log: Path) -> float:
    """MiB/s of a log of ib_write_bw: the average."""
    rows = re.findall(
        r"^\s*\d+\s+\d+\s+[\d.]+\s+([\d.]+)\s+[\d.]+\s*$", log.read_text(), re.MULTILINE
    )
    if not rows:
        raise ValueError(f"no figures in {log}")
    return float(rows[-1])


def packets(writes: list[int]) -> int:
    """The least number of packets for writes of these lengths."""
    return sum(max(1, -(-length // LARGEST_PACKET)) for length in writes)


def lengths(size: int, block: int) -> list[int]:
    """How a file is cut."""
    return [min(block, size - start) for start in range(0, size, block)]


def judge(size: int, receiver: Evidence, sender: Evidence) -> list[Check]:
    """Compare everything with everything."""
    perf = sender.perf
    writes = lengths(size, perf["block"])
    client, server = perf["client"], perf["server"]
    return [
        same("bytes that rv-perf moved, and size of the file", perf["bytes"], size),
        same("sha256 on both sides", receiver.sha256, sender.sha256),
        same("sha256 by rv-perf", perf["sha256_received"], sender.sha256),
        same("writes: rv-perf, and the file cut into blocks", perf["writes"], len(writes)),
        same("writes posted, by rv of the sender", client["conn"]["post_write"], len(writes)),
        same("writes completed there", client["conn"]["send_write_cqe"], len(writes)),
        same("events of them in its ring", client["events"]["send_write_cqe"], len(writes)),
        same("bytes posted there", client["conn"]["post_write_bytes"], size),
        same(
            "writes arrived, by rv of the receiver", server["conn"]["recv_write_cqe"], len(writes)
        ),
        same("events of them in its ring", server["events"]["recv_write_cqe"], len(writes)),
        same("bytes in these events", server["events"]["recv_write_bytes"], size),
        at_least(
            "packets sent, by rdma_rxe of the sender", sender.hw["sent_pkts"], packets(writes)
        ),
        at_least("packets received, by the other", receiver.hw["rcvd_pkts"], packets(writes)),
        at_least("RoCE bytes on the sender's eth0, by tc", sender.roce, size),
        at_least("RoCE bytes on the receiver's eth0", receiver.roce, size),
        below("other bytes on the sender's eth0", sender.other, size),
        below("other bytes on the receiver's eth0", receiver.other, size),
    ]


def same(what: str, value: object, wanted: object) -> Check:
    """Two values that must be equal."""
    if value == wanted:
        return Check(True, f"{what}: {value}")
    return Check(False, f"{what}: {value}, should be {wanted}")


def at_least(what: str, value: int, wanted: int) -> Check:
    """A value that must not be too small."""
    return Check(value >= wanted, f"{what}: {value}, at least {wanted} needed")


def below(what: str, value: int, size: int) -> Check:
    """A value that must be a small part of the file."""
    return Check(
        value < size * MOST_OTHER,
        f"{what}: {value}, {100 * value / size:.3f} % of the file, must be below "
        f"{100 * MOST_OTHER:.0f} %",
    )
