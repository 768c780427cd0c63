# SPDX-License-Identifier: GPL-2.0
"""The table of requirements in Documentation/rv-requirements.rst, and whether it is true.

An entry is a term with its number, the requirement in words, and then either

    Tests: ``program: test, test``; ``program: test``

or ``No test:`` with a reason. A program is one of the selftests (its tests are written
``test`` or ``fixture.test``) or ``host/NAME``, which is tools/testing/host/tests/NAME.rs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

TABLE = Path("Documentation/rv-requirements.rst")
SELFTESTS = Path("tools/testing/selftests/rv")
HOST_TESTS = Path("tools/testing/host/tests")

# Numbers of the list that the table answers; some were never given out.
GAPS = {22, 29, 30, 36}
NUMBERS = [f"W{n}" for n in range(1, 42) if n not in GAPS]

TERM = re.compile(r"^(W\d+b?)$")
NAMED = re.compile(r"``([\w/]+): ([^`]+)``")
C_TEST = re.compile(r"^TEST(?:_SIGNAL)?\((\w+)[,)]", re.M)
C_TEST_F = re.compile(r"^TEST_F(?:_SIGNAL|_TIMEOUT)?\((\w+), (\w+)[,)]", re.M)
RUST_TEST = re.compile(r"#\[test\]\s+fn (\w+)")


@dataclass
class Entry:
    """A requirement and what is said about its tests."""

    number: str
    text: str = ""
    tests: list[tuple[str, str]] = field(default_factory=list)
    reason: str = ""


def parse(text: str) -> list[Entry]:
    """The entries of a table."""
    found: list[tuple[Entry, list[str]]] = []
    inside = False
    for line in text.splitlines():
        term = TERM.match(line)
        if term:
            found.append((Entry(term[1]), []))
        if line.strip() and not line.startswith(" "):
            # A term, or anything else, which ends the one before.
            inside = bool(term)
        elif inside:
            found[-1][1].append(line.strip())
    for entry, lines in found:
        words = " ".join(filter(None, lines))
        entry.text, _, rest = words.partition("Tests:")
        if not rest:
            entry.text, _, entry.reason = words.partition("No test:")
        entry.text, entry.reason = entry.text.strip(), entry.reason.strip()
        for program, names in NAMED.findall(rest):
            entry.tests += [(program, name.strip()) for name in names.split(",")]
    return [entry for entry, _ in found]


def tests_in(source: str, is_rust: bool) -> set[str]:
    """The names of the tests in a source file, with and without their fixture."""
    if is_rust:
        return set(RUST_TEST.findall(source))
    names = set(C_TEST.findall(source))
    for fixture, name in C_TEST_F.findall(source):
        names |= {name, f"{fixture}.{name}"}
    return names


def source_of(repo: Path, program: str) -> Path:
    """The source file of a program."""
    if program.startswith("host/"):
        return repo / HOST_TESTS / f"{program[5:]}.rs"
    return repo / SELFTESTS / f"{program}.c"


def problems(entries: list[Entry], repo: Path, numbers: list[str]) -> list[str]:
    """What is wrong with a table: one line each."""
    found: list[str] = []
    known: dict[str, set[str]] = {}
    have = [entry.number for entry in entries]
    found += [f"{number} is missing" for number in numbers if number not in have]
    found += [f"{number} is there twice" for number in sorted(set(have)) if have.count(number) > 1]
    for entry in entries:
        if not entry.text:
            found.append(f"{entry.number} does not say what is required")
        if not entry.tests and not entry.reason:
            found.append(f"{entry.number} has neither tests nor a reason")
        for program, name in entry.tests:
            if program not in known:
                path = source_of(repo, program)
                source = path.read_text() if path.is_file() else ""
                known[program] = tests_in(source, path.suffix == ".rs")
            if name not in known[program]:
                found.append(f"{entry.number}: there is no test {name} in {program}")
    return found
