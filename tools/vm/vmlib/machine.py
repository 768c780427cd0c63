# SPDX-License-Identifier: GPL-2.0
"""One running VM: its QEMU process, its three sockets, its logs, its state."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import klog, qemu
from .report import Failure, last_line

PORTS = ("console", "out", "ctl")


@dataclass
class Outcome:
    """How a VM ended."""

    code: int | None = None
    taint: int = 0
    failure: str = ""
    problems: list[klog.Problem] = field(default_factory=list)

    def ok(self) -> bool:
        """Script and kernel both fine."""
        return self.code == 0 and not self.failure and not self.problems

    def text(self) -> str:
        """The reason in a few words."""
        if self.problems:
            more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
            return f"kernel log: {self.problems[0]}{more}"
        if self.failure:
            return self.failure
        return f"exit code {self.code}"


class Machine:
    """State of one VM, driven by the runner's event loop."""

    def __init__(self, hardware: qemu.Hardware, command: str, folder: Path, shell: bool) -> None:
        self.hardware = hardware
        self.name = hardware.name
        self.command = command
        self.folder = folder
        self.shell = shell
        self.outcome = Outcome()
        self.process: subprocess.Popen[bytes] | None = None
        self.listeners: dict[str, socket.socket] = {}
        self.sockets: dict[str, socket.socket] = {}
        self.partial: dict[str, bytes] = {"out": b"", "ctl": b""}
        self.born = time.monotonic()
        self.booted = 0.0
        self.started = 0.0
        self.reported = 0.0
        self.logs = {}
        (folder / "results").mkdir(parents=True)
        for port, name in (("console", "console.log"), ("out", "script.log")):
            self.logs[port] = (folder / name).open("wb", buffering=0)

    @property
    def done(self) -> bool:
        """Whether the VM has nothing more to tell."""
        return self.process is None

    def write_guest_files(self, env: dict[str, str]) -> None:
        """What guest/init reads from the run share."""
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in env.items()]
        (self.folder / "env.sh").write_text("".join(lines))
        (self.folder / "script.sh").write_text(self.command + "\n")
        shares = [s.guest_line() + "\n" for s in self.hardware.shares if s.tag != "run"]
        (self.folder / "shares").write_text("".join(shares))

    def listen(self, sockets: Path) -> None:
        """Open the sockets that QEMU will connect to."""
        for port in PORTS:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(sockets / f"{self.name}.{port}"))
            listener.listen(1)
            listener.setblocking(False)
            self.listeners[port] = listener

    def launch(self, argv: list[str], env: dict[str, str]) -> None:
        """Start QEMU; it dies with us, and Ctrl-C reaches us alone."""
        with (self.folder / "qemu.log").open("wb") as log:
            log.write(f"$ {shlex.join(argv)}\n".encode())
            log.flush()
            self.process = subprocess.Popen(
                argv,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.born = time.monotonic()

    def kill(self) -> None:
        """Stop the VM at once, with everything that belongs to it."""
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()

    def close(self) -> None:
        """Close sockets and logs; the VM is gone."""
        self.process = None
        for endpoint in (*self.listeners.values(), *self.sockets.values()):
            endpoint.close()
        for log in self.logs.values():
            log.close()

    def console_tail(self) -> str:
        """The console's last line, for messages."""
        return last_line(self.folder / "console.log") or "nothing on the console"

    def qemu_error(self) -> str:
        """What QEMU said when it stopped by itself."""
        lines = (self.folder / "qemu.log").read_text(errors="replace").splitlines()[1:]
        return lines[-1] if lines else ""

    def judge_end(self) -> None:
        """QEMU has stopped: work out why, unless the guest has told."""
        assert self.process is not None
        status = self.process.wait()
        if self.outcome.code is not None or self.outcome.failure:
            return
        if status != 0:
            reason = self.qemu_error() or f"status {status}"
            self.outcome.failure = f"QEMU failed: {reason}"
        else:
            self.outcome.failure = f"stopped before its script ended; last: {self.console_tail()}"

    def judge_log(self, allowed: list[klog.Allowed]) -> None:
        """Read the kernel log in both copies and add its problems to the outcome."""
        texts = []
        for name in ("console.log", "dmesg.log"):
            path = self.folder / name
            if path.exists():
                texts.append(path.read_text(errors="replace"))
        self.outcome.problems = klog.check(texts, allowed)
        taint = klog.check_taint(self.outcome.taint)
        if taint and not self.outcome.problems and not allowed:
            self.outcome.problems = [klog.Problem(taint, "")]

    def lines(self, port: str, data: bytes) -> list[str]:
        """Complete lines out of a stream that comes in pieces."""
        *whole, self.partial[port] = (self.partial[port] + data).split(b"\n")
        return [line.decode(errors="replace").rstrip("\r") for line in whole]


class Rendezvous:
    """What the VMs of a run share: barriers and a few values."""

    def __init__(self, count: int) -> None:
        self.names = {f"vm{index}" for index in range(1, count + 1)}
        self.ended: set[str] = set()
        self.arrivals: dict[str, dict[str, int]] = {}
        self.values: dict[str, str] = {}

    def arrive(self, vm: str, name: str) -> int:
        """A VM has come to a barrier; the answer is how many times it has."""
        rounds = self.arrivals.setdefault(name, {})
        rounds[vm] = rounds.get(vm, 0) + 1
        return rounds[vm]

    def passed(self, name: str, round_: int) -> str:
        """Whether every VM has come to the barrier this many times, or one never will."""
        rounds = self.arrivals.get(name, {})
        late = {vm for vm in self.names if rounds.get(vm, 0) < round_}
        gone = sorted(late & self.ended)
        if gone:
            return f"never: {gone[0]} has ended"
        return "no" if late else "yes"

    def get(self, vm: str, key: str) -> str:
        """A value, or whether to wait for it."""
        if key in self.values:
            return f"is {self.values[key]}"
        if self.names - {vm} <= self.ended:
            return "never: all other VMs have ended"
        return "wait"


def answer(machine: Machine, rendezvous: Rendezvous, line: str, now: Callable[[], float]) -> str:
    """Take one line of a guest's vm-ctl; return the answer."""
    words = line.split(" ", 2)
    verb, rest = words[0], words[1:]
    if verb == "boot":
        machine.booted = now()
    elif verb == "start":
        machine.started = now()
    elif verb == "arrive" and len(rest) == 1:
        return str(rendezvous.arrive(machine.name, rest[0]))
    elif verb == "passed" and len(rest) == 2 and rest[1].isdigit():
        return rendezvous.passed(rest[0], int(rest[1]))
    elif verb == "put" and len(rest) == 2:
        rendezvous.values[rest[0]] = rest[1]
    elif verb == "get" and len(rest) == 1:
        return rendezvous.get(machine.name, rest[0])
    elif verb == "fail":
        machine.outcome.failure = " ".join(rest) or "the guest gave up"
        machine.reported = now()
        rendezvous.ended.add(machine.name)
    elif verb == "exit" and len(rest) == 2 and rest[0].isdigit() and rest[1].isdigit():
        machine.outcome.code, machine.outcome.taint = int(rest[0]), int(rest[1])
        machine.reported = now()
        rendezvous.ended.add(machine.name)
    else:
        raise Failure(f"{machine.name}: vm-ctl does not know '{line}'")
    return "ok"


def terminal_size() -> tuple[str, str]:
    """Rows and columns of our terminal, for the one in the guest."""
    try:
        size = os.get_terminal_size()
    except OSError:
        return "24", "80"
    return str(size.lines or 24), str(size.columns or 80)
