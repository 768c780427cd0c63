# SPDX-License-Identifier: GPL-2.0
"""Counting tests in what suites print: TAP and KTAP, cargo test, unittest."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

RESULT = re.compile(r"^(\s*)(not )?ok\b\s*(\d+)?\s*(?:- )?([^#]*?)\s*(?:#\s*(.*))?$")
PLAN = re.compile(r"^(\s*)1\.\.(\d+)(?:\s*#\s*SKIP\s*(.*))?\s*$", re.IGNORECASE)
DIRECTIVE = re.compile(r"(SKIP|TODO|XFAIL)\b:?\s*(.*)", re.IGNORECASE)


@dataclass
class Counts:
    """What a suite's tests came to. Every failure and every skip has its line."""

    passed: int = 0
    failures: list[str] = field(default_factory=list)
    skips: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Number of tests, of whatever result."""
        return self.passed + len(self.failures) + len(self.skips)

    def add(self, other: Counts) -> None:
        """Take in another suite's counts."""
        self.passed += other.passed
        self.failures += other.failures
        self.skips += other.skips

    def line(self) -> str:
        """The closing line."""
        text = f"{self.passed} passed, {len(self.failures)} failed"
        return text + (f", {len(self.skips)} skipped" if self.skips else "")


@dataclass
class Level:
    """One level of nested TAP while it is being read."""

    indent: int
    plan: int | None = None
    seen: int = 0
    counts: Counts = field(default_factory=Counts)

    def close(self) -> Counts:
        """The level's counts; a plan that was not kept is a failure."""
        if self.plan is not None and self.seen != self.plan:
            self.counts.failures.append(f"{self.seen} tests ran of {self.plan} planned")
        return self.counts


class Tap:
    """Reads TAP and KTAP. Tests are the leaves of the nesting, counted once."""

    def __init__(self) -> None:
        self.levels = [Level(0)]
        self.children: Counts | None = None

    def feed(self, line: str) -> None:
        """Take one line."""
        stripped = line.lstrip()
        if stripped.startswith("Bail out!"):
            self.levels[-1].counts.failures.append(stripped.strip())
        elif re.match(r"K?TAP version \d+", stripped):
            self.start_document(len(line) - len(stripped))
        elif match := PLAN.match(line):
            level = self.level(len(match[1]))
            level.plan = int(match[2])
            if level.plan == 0 and match[3] is not None:
                level.counts.skips.append(match[3].strip() or "no reason given")
        elif match := RESULT.match(line):
            self.result(match)

    def start_document(self, indent: int) -> None:
        """A version line: at the outermost level a new document begins."""
        if indent == 0:
            counts = self.finish()
            self.levels = [Level(0, counts=counts)]
            self.children = None

    def level(self, indent: int) -> Level:
        """The level of this indentation, opening it or closing deeper ones."""
        while self.levels[-1].indent > indent:
            closed = self.levels.pop().close()
            if self.children is None:
                self.children = Counts()
            self.children.add(closed)
        if self.levels[-1].indent < indent:
            self.levels.append(Level(indent))
        return self.levels[-1]

    def result(self, match: re.Match[str]) -> None:
        """An ok or not ok line; one that closes a nested list only repeats it."""
        level = self.level(len(match[1]))
        level.seen += 1
        children, self.children = self.children, None
        name = match[4] or match[3] or "unnamed"
        directive = DIRECTIVE.match(match[5] or "")
        failed = bool(match[2])
        if children is not None:
            level.counts.add(children)
            if failed and not children.failures:
                level.counts.failures.append(f"{name}{': ' + match[5] if match[5] else ''}")
        elif directive and (directive[1].upper() != "XFAIL" or failed):
            reason = directive[2].strip() or "no reason given"
            level.counts.skips.append(f"{name}: {directive[1].upper()} {reason}")
        elif failed:
            level.counts.failures.append(f"{name}{': ' + match[5] if match[5] else ''}")
        else:
            level.counts.passed += 1

    def finish(self) -> Counts:
        """The counts of everything read."""
        counts = self.level(0).close()
        if self.children is not None:
            counts.add(self.children)
            self.children = None
        return counts


def count_tap(text: str) -> Counts:
    """Counts of a TAP or KTAP stream, or of several one after the other."""
    tap = Tap()
    for line in text.splitlines():
        tap.feed(line)
    return tap.finish()


def count_cargo(text: str) -> Counts:
    """Counts of `cargo test`: the closing line of each test binary."""
    counts = Counts()
    counts.failures = re.findall(r"^test (\S.*) \.\.\. FAILED$", text, re.M)
    named = re.findall(r"^test (\S.*) \.\.\. ignored(?:, (.*))?$", text, re.M)
    counts.skips = [f"{name}: {reason or 'marked ignore in the source'}" for name, reason in named]
    failed = 0
    for match in re.finditer(r"^test result: \w+\. (\d+) passed; (\d+) failed;", text, re.M):
        counts.passed += int(match[1])
        failed += int(match[2])
    counts.failures += ["unnamed"] * (failed - len(counts.failures))
    return counts


def count_unittest(text: str) -> Counts:
    """Counts of `python -m unittest -v`."""
    counts = Counts()
    counts.failures = re.findall(r"^(?:FAIL|ERROR): (.*)$", text, re.M)
    counts.skips = [
        f"{name}: {reason}"
        for name, reason in re.findall(r"^(\w+) .*\.\.\. skipped '(.*)'$", text, re.M)
    ]
    ran = sum(int(number) for number in re.findall(r"^Ran (\d+) tests? in", text, re.M))
    counts.passed = max(0, ran - len(counts.failures) - len(counts.skips))
    return counts


def count_nothing(_text: str) -> Counts:
    """For suites that are one test, judged by the exit code."""
    return Counts()


PARSERS = {
    "tap": count_tap,
    "cargo": count_cargo,
    "unittest": count_unittest,
    "exit": count_nothing,
}


def judge(parser: str, text: str, status: int) -> Counts:
    """Counts of a finished suite, its exit code included.

    A command that failed fails the suite even if no test did; one that ran no
    test has not passed.
    """
    counts = PARSERS[parser](text)
    if parser == "exit" and status == 0:
        counts.passed = 1
    elif status != 0 and not counts.failures:
        counts.failures.append(f"exit code {status}: {telling_line(text)}")
    elif counts.total == 0:
        counts.failures.append("it ran no test")
    return counts


def telling_line(text: str) -> str:
    """The line of a log that most likely says why a command failed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        if re.search(r"^error\b|\berror:|^Diff in |^probe:|^E: |failed \(", line):
            return line[:200]
    return lines[-1][:200] if lines else "no output"
