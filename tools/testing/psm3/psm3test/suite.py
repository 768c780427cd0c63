# SPDX-License-Identifier: GPL-2.0
"""A list of jobs in one mode of PSM3, as a test program of tools/check/vm-tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from . import verdict
from .host import serve
from .job import BIN, Job, Outcome, Pair
from .tap import Tap

# PSM3_RDMA: no RDMA, rv's connections, the user's own queue pairs for large messages,
# and for all of them.
NONE, KERNEL, USER, USER_EAGER = 0, 1, 2, 3

UNLOAD_SECONDS = 30.0


def main(run: Callable[[Pair, Tap], None]) -> int:
    """Be the first or the second VM of a test."""
    if os.environ.get("VM_INDEX") != "1":
        serve()
        return 0
    pair = Pair()
    tap = Tap()
    try:
        run(pair, tap)
    finally:
        pair.remote.end()
    return tap.end()


def run_jobs(pair: Pair, tap: Tap, mode: int, jobs: Iterable[Job]) -> None:
    """All jobs of a list, each a test."""
    for job in jobs:
        outcome = pair.run(job, mode)
        tap.result(f"{job.name}, PSM3_RDMA={mode}", *judge(job, mode, outcome))


def judge(job: Job, mode: int, outcome: Outcome | str) -> tuple[Sequence[str], Iterable[str]]:
    """What is wrong with a run, and what else there is to say about it."""
    if isinstance(outcome, str):
        return [outcome], []
    server, client = outcome.server, outcome.client
    problems = [*verdict.ended_well("server", server), *verdict.ended_well("client", client)]
    if not problems and mode == NONE:
        problems += verdict.without_rv(server, client)
    if not problems and mode == KERNEL:
        problems += verdict.through_rv(server, client, job.expected)
    if not problems and mode in (USER, USER_EAGER):
        problems += verdict.with_user_mrs(server, client, job.expected)
    return problems, verdict.summary(server, client)


def info(pair: Pair, tap: Tap) -> None:
    """fi_info in both VMs: the verbs HAL of PSM3 has found the device."""
    problems = []
    for who, host in (("vm1", pair.local), ("vm2", pair.remote)):
        command = f"FI_PROVIDER=psm3 PSM3_HAL=verbs {BIN}/fi_info -p psm3 2>&1"
        code, output = host.shell(command)
        lines = output.split()
        if code != 0:
            problems.append(f"{who}: exit code {code}: {output[-200:]}")
        for word in ("rxe0", "RoCE-10.9.0.0/24", "FI_EP_RDM", "FI_PROTO_PSMX3"):
            if word not in lines:
                problems.append(f"{who}: fi_info does not print {word}")
    tap.result("fi_info", problems)


def unload(pair: Pair, tap: Tap) -> None:
    """Nothing of what ran has left a reference: rv can be unloaded."""
    problems = []
    for who, host in (("vm1", pair.local), ("vm2", pair.remote)):
        left = host.rv_references(UNLOAD_SECONDS)
        if left:
            problems.append(f"{who}: {left} references to rv are left")
        code, output = host.shell("rmmod rv")
        if code != 0:
            problems.append(f"{who}: {output}")
    tap.result("rv can be unloaded", problems)
