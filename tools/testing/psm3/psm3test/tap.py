# SPDX-License-Identifier: GPL-2.0
"""TAP as the tests print it."""

from __future__ import annotations

from collections.abc import Iterable


class Tap:
    """A stream of results; the plan comes last, since a mode decides what can run."""

    def __init__(self) -> None:
        self.number = 0
        self.failed = 0
        print("TAP version 13", flush=True)

    def result(self, name: str, problems: Iterable[str], notes: Iterable[str] = ()) -> None:
        """One test: it passed if there are no problems."""
        self.number += 1
        problems = list(problems)
        self.failed += bool(problems)
        print(f"{'not ok' if problems else 'ok'} {self.number} {name}", flush=True)
        for line in [*problems, *notes]:
            print(f"# {line}", flush=True)

    def skip(self, name: str, reason: str) -> None:
        """A test that cannot run here."""
        self.number += 1
        print(f"ok {self.number} {name} # SKIP {reason}", flush=True)

    def end(self) -> int:
        """The plan, and the exit code of the program."""
        print(f"1..{self.number}", flush=True)
        return 1 if self.failed or not self.number else 0
