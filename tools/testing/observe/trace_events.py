# SPDX-License-Identifier: GPL-2.0
"""Reads trace events of rv as tracefs or trace-cmd print them, and asserts on their order."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

LINE = re.compile(r"\b(rv_\w+):\s+(.*)$")
FIELD = re.compile(r"(\w+)=(\S+)")


@dataclass(frozen=True)
class Event:
    """One line of a trace."""

    name: str
    text: str
    fields: dict[str, str]

    def fits(self, name: str, wanted: dict[str, str]) -> bool:
        """Whether it is this event, with these values."""
        return self.name == name and all(self.fields.get(k) == v for k, v in wanted.items())


def read(path: str) -> list[Event]:
    """All events of rv in a file."""
    events = []
    for line in Path(path).read_text(errors="replace").splitlines():
        found = LINE.search(line)
        if found:
            events.append(Event(found[1], found[2], dict(FIELD.findall(found[2]))))
    return events


def parse(pattern: str) -> tuple[str, dict[str, str]]:
    """`name:key=value,key=value` in its parts."""
    name, _, values = pattern.partition(":")
    return name, dict(value.split("=", 1) for value in values.split(",") if value)


def follow(events: list[Event], patterns: list[str]) -> None:
    """The events occur in this order, maybe with others between them."""
    at = 0
    for pattern in patterns:
        name, wanted = parse(pattern)
        while at < len(events) and not events[at].fits(name, wanted):
            at += 1
        if at == len(events):
            known = [event.text for event in events if event.name == name]
            sys.exit(f"{pattern} is missing in its place; of these there are: {known[:20]}")
        at += 1


def count(events: list[Event], pattern: str) -> int:
    """How many events fit."""
    name, wanted = parse(pattern)
    return sum(event.fits(name, wanted) for event in events)


def main() -> None:
    """FILE sequence PATTERN... | FILE count NUMBER PATTERN | FILE paired."""
    path, what, *rest = sys.argv[1:]
    events = read(path)
    if what == "sequence":
        follow(events, rest)
    elif what == "count":
        got = count(events, rest[1])
        if got != int(rest[0]):
            sys.exit(f"{rest[1]}: {got} times, not {rest[0]}")
    elif what == "paired":
        entered, left = count(events, "rv_ioctl_enter"), count(events, "rv_ioctl_exit")
        if entered != left or entered == 0:
            sys.exit(f"{entered} ioctls begun, {left} ended")
        if count(events, "rv_ioctl_exit:duration_ns=0"):
            sys.exit("an ioctl without duration")
    else:
        sys.exit(f"what is {what}?")


if __name__ == "__main__":
    main()
