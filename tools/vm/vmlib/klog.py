# SPDX-License-Identifier: GPL-2.0
"""The verdict on a kernel log: which lines mean that the kernel was hurt."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .report import Failure

# Each is a form in which the kernel reports a defect. Slowness under emulation
# (clocksource watchdog, "hogged CPU") is not among them.
BAD = re.compile(
    r"""
    \bWARNING:\s | \bBUG:\s | \bBUG\s[\w-]+\s\( | kernel\ BUG\ at | \bOops\b | Kernel\ panic
    | general\ protection\ fault | double\ fault: | stack\ guard\ page | unable\ to\ handle
    | \b(KASAN|KCSAN|KFENCE|KMSAN|UBSAN|ODEBUG):\s | DEBUG_LOCKS_WARN_ON
    | possible\ (recursive\ locking|circular\ locking\ dependency|irq\ lock\ inversion)
    | inconsistent\ lock\ state | suspicious\ RCU\ usage | trying\ to\ register\ non-static\ key
    | held\ lock\ freed | bad\ unlock\ balance | lock\ held\ when\ returning\ to\ user
    | refcount_t: | refcount\ bug | list_(add|del)\ corruption | Bad\ page\ (state|map)
    | blocked\ (on|in|for)\b.*\bmore\ than | soft\ lockup | hard\ LOCKUP
    | rcu.*(self-detected\ stall|detected\ (expedited\ )?stalls)
    | kmemleak:\ ([1-9]\d*\ new\ suspected | .*(isabled|pool\ empty|annot\ allocate))
    | scheduling\ while\ atomic | lockdep\ is\ turned\ off
    | ref_tracker:\ .*(leaked|released|failure|unreliable) | unregister_netdevice:\ waiting
    | RESTRACK\ detected\ leak | ^\s*not\ ok\ \d | vm:\ problem:
    | sleeping\ function\ called\ from\ invalid\ context
    """,
    re.VERBOSE,
)
MARK = re.compile(r"vm: mark: (.*)")
STAMP = re.compile(r"^(<\d+>)?\[ *\d+\.\d+\](\[[^]]*\])? ?")

# Bits of /proc/sys/kernel/tainted: the kernel itself says that it was hurt.
TAINT_DIED = 1 << 7
TAINT_WARNED = 1 << 9


@dataclass(frozen=True)
class Allowed:
    """A line that is no failure, and the written reason why not."""

    pattern: re.Pattern[str]
    reason: str


@dataclass(frozen=True)
class Problem:
    """A bad line, and the last mark (usually a test's name) before it."""

    line: str
    mark: str

    def __str__(self) -> str:
        return f"{self.line} (during {self.mark})" if self.mark else self.line


def read_allowed(path: Path) -> list[Allowed]:
    """Read an allow-list: REGEX, white space, ##, reason. No entry goes without one."""
    allowed = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, _, reason = line.partition("##")
        if not pattern.strip() or not reason.strip():
            raise Failure(f"{path}:{number}: want REGEX ## the reason why it is harmless")
        try:
            allowed.append(Allowed(re.compile(pattern.strip()), reason.strip()))
        except re.error as error:
            raise Failure(f"{path}:{number}: bad regular expression: {error}") from None
    return allowed


def kernel_lines(text: str) -> Iterable[str]:
    """The lines that the kernel wrote, without their time stamps."""
    for line in text.replace("\r", "").splitlines():
        stamp = STAMP.match(line)
        if stamp:
            yield line[stamp.end() :].rstrip()


def check(texts: Iterable[str], allowed: Iterable[Allowed]) -> list[Problem]:
    """The problems in several copies of one log (console, dmesg), each named once."""
    allowed = list(allowed)
    found: dict[str, Problem] = {}
    for text in texts:
        for problem in scan(text, allowed):
            found.setdefault(problem.line, problem)
    return list(found.values())


def scan(text: str, allowed: list[Allowed]) -> Iterable[Problem]:
    """The problems in one log.

    A report begins with a "cut here" line that says nothing: the line after it
    decides, and only if none follows is it a problem by itself.
    """
    mark = ""
    cut: Problem | None = None
    for line in kernel_lines(text):
        match = MARK.search(line)
        if match:
            mark = match[1]
        elif "[ cut here ]" in line:
            if cut:
                yield cut
            cut = Problem(line, mark)
        elif BAD.search(line):
            cut = None
            if not any(rule.pattern.search(line) for rule in allowed):
                yield Problem(line, mark)
    if cut:
        yield cut


def check_taint(taint: int) -> str:
    """What the taint flags say about a hurt kernel, or nothing."""
    if taint & TAINT_DIED:
        return "the kernel is tainted D: it died at least once (oops or BUG)"
    if taint & TAINT_WARNED:
        return "the kernel is tainted W: it issued a warning"
    return ""
