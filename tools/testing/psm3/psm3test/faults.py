# SPDX-License-Identifier: GPL-2.0
"""Breaking things under a running job, and what has to hold whatever happens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import jobs
from .host import Local, Remote
from .job import Job, Outcome, Pair

Host = Local | Remote

PACKETS = "/sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts"
# What shows that the data of a job is under way, and not only its first messages.
FLOWING_PACKETS = 300
FLOWING_SECONDS = 240.0

# Bounds for what must not take for ever. A quiet machine needs a small part of them.
GONE_SECONDS = 30.0
LINK_DEL_SECONDS = 60.0
ERROR_SECONDS = 240.0

# How long the wire is cut: longer than a queue pair tries, shorter than PSM3's 30 s.
CUT_SECONDS = 8

KILL = 9

# Joins a job as one more process, and breaks the connection that all of them share.
BAD_KEY = '"$REPO"/build/tests/rv/two-vm/rv_bad_key {uuid} "$VM_PEER_IP"'

# The qdisc is there before any traffic is: adding one under traffic loses packets inside
# the sending host, which rdma_rxe takes for the end of the queue pair.
WIRE = "tc qdisc add dev eth0 clsact && ip neigh replace {peer} lladdr {mac} dev eth0 nud permanent"
CUT = "tc filter add dev eth0 ingress protocol ip pref 1 flower ip_proto udp dst_port 4791 action drop"
MEND = "tc filter del dev eth0 ingress pref 1"


def long_stream(name: str = "a long transfer", times: int = 400) -> Job:
    """A transfer that is still going on when something is broken."""
    return jobs.stream(name, "fi_rdm_tagged_bw", (jobs.MIB,), times, 4)


def packets(host: Host) -> int:
    """RDMA packets that a VM has received."""
    code, text = host.shell(f"cat {PACKETS}")
    return int(text) if code == 0 else 0


def wait_until_flowing(host: Host, start: int) -> str:
    """Wait until the data of a job is under way; why not, or nothing."""
    end = time.monotonic() + FLOWING_SECONDS
    while packets(host) - start < FLOWING_PACKETS:
        if time.monotonic() > end:
            return f"no data within {FLOWING_SECONDS:.0f} s"
        time.sleep(0.2)
    return ""


def prepare_wire(pair: Pair) -> None:
    """Make both VMs ready for cuts: the neighbours are known for good."""
    mine = Path("/sys/class/net/eth0/address").read_text().strip()
    theirs = must(pair.remote, "cat /sys/class/net/eth0/address")
    peer = must(pair.remote, "echo $VM_IP")
    must(pair.local, WIRE.format(peer=peer, mac=theirs))
    must(pair.remote, WIRE.format(peer=pair.address, mac=mine))


def must(host: Host, command: str) -> str:
    """A command without which the test means nothing."""
    code, text = host.shell(command)
    if code != 0:
        raise RuntimeError(f"`{command}`: {text}")
    return text


@contextmanager
def broken_wire(host: Host) -> Iterator[None]:
    """No RDMA packet reaches this VM for as long as this lasts."""
    must(host, CUT)
    try:
        yield
    finally:
        must(host, MEND)


class Running:
    """A job that has started and whose data is under way."""

    def __init__(self, pair: Pair, job: Job, mode: int, **extra: str) -> None:
        self.pair = pair
        before = packets(pair.local)
        self.name, self.env = pair.begin(job, mode, **extra)
        self.problem = pair.connect(self.name, job, self.env)
        if self.problem == "yes":
            self.problem = wait_until_flowing(pair.local, before) or self.ended()

    def ended(self) -> str:
        """Which end is not running any more, in words; nothing if both are."""
        hosts = (("server", self.pair.local), ("client", self.pair.remote))
        gone = [who for who, host in hosts if not host.running(self.name)]
        return f"{' and '.join(gone)} ended too early to test anything" if gone else ""

    def finish(self, seconds: float) -> Outcome:
        """Let both ends come to their end."""
        self.pair.remote.begin("wait", self.name, seconds)
        server = self.pair.local.wait(self.name, seconds)
        return Outcome(server, self.pair.remote.finish())

    def kill(self) -> None:
        """End both, however they are."""
        for host in (self.pair.local, self.pair.remote):
            host.kill(self.name, KILL)
            host.wait(self.name, GONE_SECONDS)


def released(who: str, host: Host) -> Iterator[str]:
    """After its processes have gone, nothing of rv is held."""
    left = host.rv_references(GONE_SECONDS)
    if left:
        yield f"{who}: {left} references to rv are left after {GONE_SECONDS:.0f} s"


def data_is_whole(outcome: Outcome) -> Iterator[str]:
    """No end may say that the data was wrong; an error is another thing."""
    for who, result in (("server", outcome.server), ("client", outcome.client)):
        for line in result["tail"]:
            if "data corruption" in line.lower() or "data verification" in line.lower():
                yield f"{who}: wrong data: {line}"


def recovered(result: dict[str, Any], section: str, name: str) -> int:
    """How often something was repaired."""
    return result["stats"].get(section, {}).get(name, 0)
