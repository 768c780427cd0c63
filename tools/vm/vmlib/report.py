# SPDX-License-Identifier: GPL-2.0
"""Talking to the person at the terminal: progress, and errors with their cure."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

START = time.monotonic()

# A pipe gets a sign of life this often; a terminal gets one every second.
PIPE_INTERVAL = 15.0
# How long a command may take to end when it is asked to.
END_SECONDS = 10.0


class Failure(Exception):
    """An error in one line: what is wrong, and what to do about it."""


def say(text: str) -> None:
    """Print one progress line with the seconds since the tool started."""
    print(f"[{time.monotonic() - START:4.0f}s] {text}", file=sys.stderr, flush=True)


def main_with_failures(prog: str, main: Callable[[], int], code: int = 1) -> None:
    """Run `main`, turning a Failure into one line and `code`."""
    try:
        status = main()
        sys.stdout.flush()
    except Failure as failure:
        print(f"{prog}: {failure}", file=sys.stderr)
        status = code
    except BrokenPipeError:
        # The reader of our output (head, less) is gone; that is no error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except KeyboardInterrupt:
        print(f"{prog}: interrupted", file=sys.stderr)
        status = 130
    sys.exit(status)


class Ticker:
    """Says what is going on while it goes on: one line, or lines in a pipe."""

    def __init__(self, what: str, planned: float | None = None) -> None:
        self.what = what
        self.planned = planned
        self.start = time.monotonic()
        self.tty = sys.stderr.isatty()
        self.next = self.start + (1.0 if self.tty else PIPE_INTERVAL)

    def seconds(self) -> float:
        """Seconds since this piece of work started."""
        return time.monotonic() - self.start

    def tick(self, detail: str = "") -> None:
        """To be called often; prints when it is time to."""
        now = time.monotonic()
        if now < self.next:
            return
        self.next = now + (1.0 if self.tty else PIPE_INTERVAL)
        plan = f" of about {self.planned:.0f}" if self.planned else ""
        line = f"{self.what}: {self.seconds():.0f}{plan} s so far"
        if detail:
            line += f" | {detail}"
        if self.tty:
            width = os.get_terminal_size(sys.stderr.fileno()).columns
            print(f"\r\033[K{line[: width - 1]}", end="", file=sys.stderr, flush=True)
        else:
            say(line[:160])

    def clear(self) -> None:
        """Remove the transient line of a terminal."""
        if self.tty:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def last_line(log: Path) -> str:
    """The last line of a growing log that has text in it, for progress."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 2000))
        tail = file.read().decode(errors="replace")
    for line in reversed(tail.replace("\r", "\n").splitlines()):
        if line.strip():
            return " ".join(line.split())
    return ""


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and its group: SIGTERM first, SIGKILL for what does not listen."""
    os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=END_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run_logged(
    argv: list[str],
    log: Path,
    ticker: Ticker,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> int:
    """Run a command with its output in `log`, ticking; return its exit code.

    It is the head of a process group of its own, which is ended with us:
    politely, so that it can end what it has started elsewhere.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        out.write(f"$ {' '.join(argv)}\n".encode())
        out.flush()
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "SIGTERM", *argv],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=cwd,
        )
        try:
            while True:
                try:
                    return process.wait(timeout=0.5)
                except subprocess.TimeoutExpired:
                    ticker.tick(last_line(log))
        finally:
            ticker.clear()
            if process.poll() is None:
                end_group(process)
