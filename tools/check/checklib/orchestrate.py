# SPDX-License-Identifier: GPL-2.0
"""Running suites one after the other and adding up what they came to."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Sequence

from vmlib.report import Ticker, run_logged, say

from checklib import results
from checklib.results import Counts
from checklib.suites import REPO, Suite

LOGS = REPO / "build/check"
# A closing list of failures longer than this helps nobody.
SHOWN = 20


class Check:
    """One run of a list of suites."""

    def __init__(self, suites: Sequence[Suite]) -> None:
        self.suites = suites
        self.failed: set[str] = set()
        self.counts = Counts()
        self.start = time.monotonic()
        shutil.rmtree(LOGS, ignore_errors=True)
        LOGS.mkdir(parents=True)

    def run(self) -> int:
        """Run all, whatever fails, and print the verdict as the last line."""
        if self.prepare():
            for number, suite in enumerate(self.suites, 1):
                self.run_suite(number, suite)
        if self.counts.total == 0:
            self.counts.failures.append("check: the list of tests is empty")
        self.summary()
        return 1 if self.counts.failures else 0

    def prepare(self) -> bool:
        """Make root file systems and kernel first, so that no suite's time has them in it."""
        groups = {suite.group for suite in self.suites}
        kinds = ["build"]
        kinds += ["vm"] if groups & {"vm", "debug"} else []
        kinds += ["debug"] if "debug" in groups else []
        for kind in kinds:
            done = subprocess.run(["tools/vm/roots", "make", kind], cwd=REPO, check=False)
            if done.returncode != 0:
                what = "debug kernel" if kind == "debug" else f"{kind} root"
                self.counts.failures.append(f"roots: cannot make the {what}, see above")
                return False
        return True

    def run_suite(self, number: int, suite: Suite) -> None:
        """Run one suite and print how it went in one line."""
        log = LOGS / f"{suite.name}.log"
        head = f"{number}/{len(self.suites)} {suite.name}"
        reason = self.cannot_run(suite)
        if reason:
            self.book(head, suite, Counts(failures=[reason]), 0.0)
            return
        say(f"{head}: {suite.what}, planned {suite.planned} s")
        ticker = Ticker(head, suite.planned)
        status = run_logged(list(suite.command), log, ticker, cwd=REPO)
        text = log.read_text(errors="replace")
        self.book(head, suite, results.judge(suite.parser, text, status), ticker.seconds())

    def cannot_run(self, suite: Suite) -> str:
        """Why a suite cannot even start, if so."""
        for path in suite.needs:
            if not (REPO / path).exists():
                return f"missing: there is no {path}"
        broken = [name for name in suite.after if name in self.failed]
        return f"not run, for suite {broken[0]} failed" if broken else ""

    def book(self, head: str, suite: Suite, counts: Counts, seconds: float) -> None:
        """Add up a finished suite."""
        used = f"{seconds:.0f} s used of {suite.planned} planned"
        if counts.failures:
            self.failed.add(suite.name)
            log = (LOGS / f"{suite.name}.log").relative_to(REPO)
            say(f"{head}: FAILED, {counts.line()}, {used}: {counts.failures[0]} (log {log})")
        else:
            say(f"{head}: ok, {counts.line()}, {used}")
        self.counts.passed += counts.passed
        self.counts.failures += [f"{suite.name}: {text}" for text in counts.failures]
        self.counts.skips += [f"{suite.name}: {text}" for text in counts.skips]

    def summary(self) -> None:
        """What was skipped and why, what failed, and the last line."""
        for kind, lines in (("skipped", self.counts.skips), ("FAILED", self.counts.failures)):
            for text in lines[:SHOWN]:
                print(f"{kind}: {text}")
            if len(lines) > SHOWN:
                print(f"{kind}: and {len(lines) - SHOWN} more, see {LOGS.relative_to(REPO)}")
        seconds = time.monotonic() - self.start
        planned = sum(suite.planned for suite in self.suites)
        print(f"{seconds:.0f} s used of {planned} s planned (warm cache)")
        line = self.counts.line()
        (LOGS / "verdict").write_text(line + "\n")
        print(line, flush=True)
