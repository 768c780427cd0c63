# SPDX-License-Identifier: GPL-2.0
"""Kernel configurations: what a fragment asks for, and what the kernel made of it."""

from __future__ import annotations

import re

SET = re.compile(r"(CONFIG_\w+)=(.*)")
NOT_SET = re.compile(r"# (CONFIG_\w+) is not set")
OFF = "n"


def parse(text: str) -> dict[str, str]:
    """Options and their values; `n` for those that the text says are not set."""
    options = {}
    for line in text.splitlines():
        match = SET.fullmatch(line.strip())
        if match:
            options[match[1]] = match[2]
            continue
        match = NOT_SET.fullmatch(line.strip())
        if match:
            options[match[1]] = OFF
    return options


def unmet(wanted: str, got: str) -> list[str]:
    """What was asked for and is otherwise: `OPTION=value (is other)`, in the order asked.

    kbuild drops an option whose dependencies do not hold, or that is not there
    any more, without a word.
    """
    made = parse(got)
    found = []
    for option, value in parse(wanted).items():
        real = made.get(option, OFF)
        if real != value:
            found.append(f"{option}={value} (is {real})")
    return found
