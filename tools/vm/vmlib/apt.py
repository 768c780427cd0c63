# SPDX-License-Identifier: GPL-2.0
"""The host's apt with a state of its own: it reads an archive, and changes nothing here."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .report import Failure, last_line

ARCHITECTURE = "amd64"


class Reader:
    """apt with the sources that it was made with, in a directory that goes away."""

    def __init__(self, state: Path, log: Path) -> None:
        self.log = log
        settings = {
            "Dir::State": state,
            "Dir::State::lists": state / "lists",
            "Dir::State::status": state / "status",
            "Dir::Cache": state / "cache",
            "Dir::Etc::sourcelist": state / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "APT::Architecture": ARCHITECTURE,
            "APT::Architectures": ARCHITECTURE,
            "APT::Sandbox::User": "root",
            "APT::Update::Error-Mode": "any",
            "APT::Update::Post-Invoke-Success": "",
            "DPkg::Post-Invoke": "",
            "Acquire::Languages": "none",
        }
        self.options = [f"-o{key}={value}" for key, value in settings.items()]

    def run(self, *command: str, cwd: Path | None = None) -> str:
        """Run an apt command; its output. What it says goes into the log."""
        done = subprocess.run(
            [*command, *self.options],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            cwd=cwd,
        )
        with self.log.open("a") as file:
            shown = done.stdout if command[0] == "apt-get" else ""
            file.write(f"$ {' '.join(command)}\n{shown}{done.stderr}")
        if done.returncode != 0:
            raise Failure(f"`{' '.join(command)}` failed ({last_line(self.log)}); see {self.log}")
        return done.stdout

    def update(self, what: str) -> None:
        """Read the archive's lists; `what` names them in the error."""
        try:
            self.run("apt-get", "update")
        except Failure:
            raise Failure(
                f"cannot read {what}: check the network, or set DEBIAN_MIRROR "
                f"to a mirror that carries it; apt's words are in {self.log}"
            ) from None


@contextmanager
def reader(sources: Sequence[str], log: Path) -> Iterator[Reader]:
    """An apt that knows these one-line sources and nothing else."""
    with tempfile.TemporaryDirectory(prefix="rdmavt-apt-") as name:
        state = Path(name)
        (state / "lists/partial").mkdir(parents=True)
        (state / "cache/archives/partial").mkdir(parents=True)
        (state / "status").touch()
        (state / "sources.list").write_text("".join(f"{line}\n" for line in sources))
        yield Reader(state, log)
