# SPDX-License-Identifier: GPL-2.0
"""The statistics that PSM3 prints when it closes, PSM3_PRINT_STATS=-1."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

Sections = dict[str, dict[str, int]]

HEADING = re.compile(r" (\w\S*)")
ENTRY = re.compile(r"    (\S.*?) (\d+) \(-?\d+\)$")

# The sections that tests look at, under the names used here.
PROTOCOL = "PSM_low-level_protocol_stats"
CONNECTION = "RV_Shared_Conn_RDMA_Statistics"
EVENTS = "RV_User_Event_Statistics"
CACHE = "MR_Cache_Statistics"
INJECTED = "Fault_Injection"
OF_RV = (PROTOCOL, CONNECTION, EVENTS, CACHE)
KEPT = (*OF_RV, INJECTED)


def parse(text: str) -> dict[str, dict[str, int]]:
    """The sections of a file by their headings, which name the endpoint.

    There may be several reports, and the last ones lack what was closed before them:
    of each section the last one counts.
    """
    sections: dict[str, dict[str, int]] = {}
    for report in text.split("\nTime Delta ")[1:]:
        section: dict[str, int] = {}
        for line in report.splitlines()[1:]:
            entry = ENTRY.match(line)
            if entry:
                section[entry[1]] = int(entry[2])
            elif HEADING.match(line):
                section = sections[line] = {}
    return sections


def add_up(reports: Iterable[dict[str, dict[str, int]]]) -> Sections:
    """The sections of several endpoints and processes under the names above.

    Connections are shared: each endpoint of a host reports the same ones, and the one
    that was closed last knows most.
    """
    total: Sections = {}
    for report in reports:
        for heading, entries in report.items():
            name = heading.split()[0]
            if name not in KEPT:
                continue
            section = total.setdefault(name, {})
            for entry, value in entries.items():
                before = section.get(entry, 0)
                section[entry] = max(before, value) if name == CONNECTION else before + value
    return total


def collect(folder: Path) -> Sections:
    """The statistics of all processes that left a file in a directory."""
    files = sorted(folder.glob("psm3-perf-stat-*"))
    return add_up(parse(path.read_text(errors="replace")) for path in files)
