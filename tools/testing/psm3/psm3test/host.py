# SPDX-License-Identifier: GPL-2.0
"""What the tests do in a VM, here or in the other one."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import channel, stats

RESULTS = Path(os.environ.get("VM_RESULTS", "/tmp"))
TAIL_LINES = 12
RV_REFERENCES = Path("/sys/module/rv/refcnt")


def unlimited_memlock() -> None:
    """What a site does for its users in limits.conf: PSM3 locks its buffers."""
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class Program:
    """A running program with its output and its statistics in a directory of its own."""

    def __init__(self, name: str, argv: list[str], env: dict[str, str]) -> None:
        self.folder = RESULTS / name
        self.folder.mkdir(parents=True)
        self.start = time.monotonic()
        with (self.folder / "output").open("wb") as out:
            out.write(
                f"$ {' '.join(f'{k}={v}' for k, v in env.items())} {' '.join(argv)}\n".encode()
            )
            out.flush()
            self.process = subprocess.Popen(
                argv,
                env={**os.environ, **env, "PSM3_PRINT_STATS_PREFIX": f"{self.folder}/"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd="/tmp",
                preexec_fn=unlimited_memlock,
                start_new_session=True,
            )

    def output(self) -> str:
        """What it has printed, after the line that says how it was started."""
        text = (self.folder / "output").read_text(errors="replace")
        return text.partition("\n")[2]

    def wait(self, seconds: float) -> dict[str, Any]:
        """How it ended; one that does not is killed, which its result tells."""
        try:
            self.process.wait(timeout=seconds)
            late = False
        except subprocess.TimeoutExpired:
            late = True
            self.note_where_it_hangs()
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        output = self.output()
        return {
            "code": self.process.returncode,
            "late": late,
            "seconds": round(time.monotonic() - self.start, 1),
            "tail": output.splitlines()[-TAIL_LINES:],
            "run_time_rv": "run-time rv interface" in output,
            "overflow": "overflow" in output,
            "stats": stats.collect(self.folder),
        }

    def note_where_it_hangs(self) -> None:
        """Add the kernel stacks of its threads to its output."""
        with (self.folder / "output").open("a") as out:
            for task in sorted(Path(f"/proc/{self.process.pid}/task").glob("*")):
                try:
                    stack = (task / "stack").read_text()
                    out.write(f"killed; thread {task.name} was in:\n{stack}")
                except OSError as error:
                    out.write(f"thread {task.name}: {error}\n")


class Local:
    """The VM that this code runs in."""

    def __init__(self) -> None:
        self.programs: dict[str, Program] = {}

    def start(self, name: str, argv: list[str], env: dict[str, str]) -> None:
        """Start a program; its name is for the calls below and for its directory."""
        self.programs[name] = Program(name, argv, env)

    def listens(self, name: str, port: int, seconds: float) -> str:
        """Wait until something listens on a TCP port: "yes", or why not."""
        end = time.monotonic() + seconds
        while not tcp_listener(port):
            if self.programs[name].process.poll() is not None:
                return "it has ended"
            if time.monotonic() > end:
                return f"nothing listens on port {port}"
            time.sleep(0.05)
        return "yes"

    def wait(self, name: str, seconds: float) -> dict[str, Any]:
        """The result of a program, see Program.wait."""
        return self.programs.pop(name).wait(seconds)

    def says(self, name: str, text: str, seconds: float) -> bool:
        """Wait until a program has printed something."""
        end = time.monotonic() + seconds
        while text not in self.programs[name].output():
            if time.monotonic() > end or self.programs[name].process.poll() is not None:
                return text in self.programs[name].output()
            time.sleep(0.05)
        return True

    def kill(self, name: str, number: int) -> None:
        """Send a signal to a program."""
        self.programs[name].process.send_signal(number)

    def running(self, name: str) -> bool:
        """Whether a program has not ended."""
        return self.programs[name].process.poll() is None

    def shell(self, command: str, seconds: float = 120) -> list[Any]:
        """Exit code and output of a shell command.

        One that does not end, and may be beyond SIGKILL, is left behind with -1 and the
        kernel stacks of its processes.
        """
        with tempfile.TemporaryFile("w+", errors="replace") as out:
            process = subprocess.Popen(
                ["bash", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                where = stacks(process.pid)
                os.killpg(process.pid, signal.SIGKILL)
                return [-1, f"`{command}` did not end in {seconds:.0f} s; it is in: {where}"]
            out.seek(0)
            return [code, out.read().strip()[-2000:]]

    def rv_references(self, seconds: float) -> int:
        """References to the module rv; wait for the last one to go."""
        end = time.monotonic() + seconds
        while True:
            count = int(RV_REFERENCES.read_text()) if RV_REFERENCES.exists() else 0
            if count == 0 or time.monotonic() > end:
                return count
            time.sleep(0.1)

    def mark(self, text: str) -> None:
        """Name what is being tested in the kernel log."""
        Path("/dev/kmsg").write_text(f"vm: mark: {text}\n")


class Remote:
    """The other VM: the same calls, done by serve() there."""

    def __init__(self) -> None:
        self.calls = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.begin(name, *args)
            return self.finish()

        return call

    def begin(self, name: str, *args: Any) -> None:
        """Ask for something without waiting for the answer; finish() gets it."""
        self.calls += 1
        channel.put(f"call.{self.calls}", [name, list(args)])

    def finish(self) -> Any:
        """The answer to the last call."""
        answer = channel.get(f"answer.{self.calls}")
        if "error" in answer:
            raise RuntimeError(f"the other VM: {answer['error']}")
        return answer["value"]

    def end(self) -> None:
        """Let the other VM go."""
        channel.put(f"call.{self.calls + 1}", ["end", []])


def serve() -> None:
    """In the second VM: do what the first one asks for, until it says end."""
    local = Local()
    number = 0
    while True:
        number += 1
        name, args = channel.get(f"call.{number}")
        if name == "end":
            return
        try:
            answer = {"value": getattr(local, name)(*args)}
        except Exception as error:  # noqa: BLE001 - it is the other side's to judge
            answer = {"error": f"{name}: {type(error).__name__}: {error}"}
        channel.put(f"answer.{number}", answer)


def stacks(session: int) -> str:
    """Where in the kernel the processes of a session are."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(folder.name)) == session:
                found += (folder / "stack").read_text().split("\n")
        except OSError:
            continue
    return " < ".join(line.removeprefix("[<0>] ") for line in found if line)


def tcp_listener(port: int) -> bool:
    """Whether a socket of this VM listens on a TCP port."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                return True
    return False
