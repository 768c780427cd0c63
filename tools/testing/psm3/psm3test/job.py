# SPDX-License-Identifier: GPL-2.0
"""A program of fabtests as server in one VM and client in the other."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .host import Local, Remote
from .verdict import Expected

BIN = "/opt/psm3/bin"
FAULTS_LIB = "/opt/psm3-faults/lib"

# Where a server listens for its client: with -E or -b, and fi_pingpong.
OUT_OF_BAND, PINGPONG = 3000, 47592

# Generous: emulated machines that share a busy host can be twenty times slower.
START_SECONDS = 120.0
RUN_SECONDS = float(os.environ.get("PSM3_RUN_SECONDS", "420"))

# How libfabric and PSM3 are told what to use; see Documentation/psm3.rst.
BASE = {
    "FI_PROVIDER": "psm3",
    "PSM3_HAL": "verbs",
    "PSM3_DEVICES": "self,nic",
    "PSM3_NIC_SPEED": "any",
    "PSM3_IDENTIFY": "1",
    "PSM3_PRINT_STATS": "-1",
    "FI_LOG_LEVEL": "warn",
}


@dataclass(frozen=True)
class Job:
    """What to run, and what is to be seen afterwards."""

    name: str
    program: str
    args: Sequence[str] = ()
    port: int = OUT_OF_BAND
    env: dict[str, str] = field(default_factory=dict)
    expected: Expected = field(default_factory=Expected)


@dataclass(frozen=True)
class Outcome:
    """How both ends of a job ended."""

    server: dict[str, Any]
    client: dict[str, Any]


class Pair:
    """Both VMs, and the jobs that run in them. The server is in this one."""

    def __init__(self) -> None:
        self.local = Local()
        self.remote = Remote()
        self.address = os.environ["VM_IP"]
        self.count = 0

    def environment(self, mode: int, extra: dict[str, str]) -> dict[str, str]:
        """Variables of a run; each run is a job of its own to PSM3."""
        return {**BASE, "PSM3_RDMA": str(mode), "FI_PSM3_UUID": str(uuid.uuid4()), **extra}

    def name(self, job: Job) -> str:
        """A name for a run, also of its directory among the results."""
        self.count += 1
        return f"{self.count:03}-{job.name.replace(' ', '-').replace('/', '-')}"

    def run(self, job: Job, mode: int, **extra: str) -> Outcome | str:
        """Run a job to its end; a text tells why it did not even start."""
        name, env = self.begin(job, mode, **extra)
        started = self.connect(name, job, env)
        if started != "yes":
            return f"server: {started}; last words: {self.local.wait(name, 0)['tail'][-4:]}"
        self.remote.begin("wait", name, RUN_SECONDS)
        server = self.local.wait(name, RUN_SECONDS)
        return Outcome(server, self.remote.finish())

    def begin(self, job: Job, mode: int, **extra: str) -> tuple[str, dict[str, str]]:
        """Start the server."""
        name = self.name(job)
        env = self.environment(mode, {**job.env, **extra})
        self.local.mark(name)
        self.local.start(name, [f"{BIN}/{job.program}", *job.args], env)
        return name, env

    def connect(self, name: str, job: Job, env: dict[str, str]) -> str:
        """Start the client as soon as the server can take it."""
        listens = self.local.listens(name, job.port, START_SECONDS)
        if listens == "yes":
            self.remote.start(name, [f"{BIN}/{job.program}", *job.args, self.address], env)
        return listens
