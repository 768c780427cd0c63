# SPDX-License-Identifier: GPL-2.0
"""What is measured, in which order, and by which command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB

# Writes under way for each queue pair.
DEPTH = 16
QUEUE_PAIRS = (1, 4)
SIZES = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 2 * MIB)
# Acknowledge timeout of ib_write_bw, 4.096 us * 2^20. Its default of 67 ms is shorter than what the
# writes under way take on an emulated machine: it would send much of its data twice.
TIMEOUT = 20
# About so many bytes for each measurement: some seconds on an emulated machine.
VOLUME = 48 * MIB
# Small writes are slow; more than this many take too long.
MOST_WRITES = 3072
LEAST_WRITES = 32

# Sizes of single writes whose time counts, and how many writes make a measurement.
LATENCY_SIZES = (64, 4 * KIB, 64 * KIB)
LATENCY_WRITES = 500

# What there may be beside one process with one connection: processes and connections.
CROWDS = ((1, 1), (8, 1), (64, 1), (1, 16), (1, 64))
CROWD_KEY = "62656e63-6800-4000-8000-000000000001"
CROWD_SIZE = 4 * KIB

# How rv registers memory, see /sys/kernel/debug/rv/registration.
REGISTRATION = ("auto", "user", "fast")


@dataclass(frozen=True)
class Step:
    """One measurement. `vm1` and `vm2` are the command lines of the two VMs."""

    key: str
    kind: str
    vm1: str
    vm2: str
    setting: str = "-"

    def line(self) -> str:
        """The step as the script in the VMs reads it: fields with tabs between them."""
        return "\t".join((self.key, self.kind, self.setting, self.vm1, self.vm2))


def writes(size: int, pairs: int) -> int:
    """How many writes of a size over so many queue pairs make a measurement."""
    return max(LEAST_WRITES * pairs, min(MOST_WRITES, VOLUME // size))


def ours(size: int, pairs: int, key: str) -> Step:
    """rv-perf, set to do what ib_write_bw does: one block of memory, no look at the data."""
    client = (
        f"rv-perf client $VM_PEER_IP --size {size} --iters {writes(size, pairs)} --block-size {size} "
        f"--window {DEPTH * pairs} --num-conn {pairs} --buffers {pairs} --quiet --json"
    )
    return Step(key, "perf", "rv-perf server --once --quiet", client)


def reference(size: int, pairs: int, key: str) -> Step:
    """ib_write_bw; its depth is for each queue pair, and so is its number of writes."""
    count = writes(size, pairs) // pairs
    command = f"ib_write_bw -d rxe0 -x $GID -s {size} -n {count} -t {DEPTH} -q {pairs} -u {TIMEOUT} -F"
    return Step(key, "ib", command, f"{command} $VM_PEER_IP")


def bandwidth(rounds: int, sizes: Sequence[int]) -> Iterator[Step]:
    """Ours and the reference in turns; who is first changes from round to round."""
    for number in range(rounds):
        for size in sizes:
            for pairs in QUEUE_PAIRS:
                end = f"{size}.{pairs}.{number}"
                both = [ours(size, pairs, f"rv.{end}"), reference(size, pairs, f"ib.{end}")]
                yield from both if number % 2 == 0 else reversed(both)


def latency(rounds: int) -> Iterator[Step]:
    """From POST to event beside the ping-pong of ib_write_lat, both without a pause, in turns."""
    for number in range(rounds):
        for size in LATENCY_SIZES:
            end = f"{size}.{number}"
            client = (
                f"rv-perf client $VM_PEER_IP --size {size} --iters {LATENCY_WRITES} "
                f"--block-size {size} --window 1 --buffers 1 --busy-poll --quiet --json"
            )
            command = f"ib_write_lat -d rxe0 -x $GID -s {size} -n {LATENCY_WRITES} -u {TIMEOUT} -F"
            both = [
                Step(f"lat.rv.{end}", "perf", "rv-perf server --once --quiet", client),
                Step(f"lat.ib.{end}", "ib", command, f"{command} $VM_PEER_IP"),
            ]
            yield from both if number % 2 == 0 else reversed(both)


def scale(rounds: int) -> Iterator[Step]:
    """Costs as the number of processes and of connections grows."""
    for number in range(rounds):
        for members, conns in CROWDS:
            client = (
                f"rv-perf client $VM_PEER_IP --size {CROWD_SIZE} --iters {LATENCY_WRITES} "
                f"--block-size {CROWD_SIZE} --window 1 --buffers 1 --job-key {CROWD_KEY} "
                "--busy-poll --quiet --json"
            )
            crowd = (
                f"rv-bench --device rxe0 crowd --members {members if conns > 1 else members - 1} "
                f"--conns {conns - 1} --job-key {CROWD_KEY}"
            )
            key = f"crowd.{members}.{conns}.{number}"
            yield Step(key, "crowd", "rv-perf server --once --quiet", client, setting=crowd)
    yield Step("scale", "reg", "true", "rv-bench --device rxe0 scale --json", setting="auto")


def registration(rounds: int) -> Iterator[Step]:
    """The costs of registering memory, in every way that rv has; each run has rounds inside."""
    for mode in REGISTRATION:
        command = f"rv-bench --device rxe0 --rounds {max(51, 10 * rounds)} --json"
        yield Step(f"reg.{mode}", "reg", "true", command, setting=mode)
