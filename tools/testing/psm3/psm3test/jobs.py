# SPDX-License-Identifier: GPL-2.0
"""The programs of fabtests that run in every mode, and the sizes they run with.

PSM3 takes messages above 64000 bytes for large (PSM3_MQ_RNDV_NIC_THRESH), and moves
them in windows of 131072 (PSM3_RNDV_NIC_WINDOW); the sizes lie around both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .job import PINGPONG, Job
from .verdict import Expected

THRESHOLD = 64000
# RMA as rendezvous messages; else it is cut into small ones that never reach rv.
TAGGED_RMA = {"FI_PSM3_TAGGED_RMA": "1"}
EDGES = (64000, 64001, 65536, 131071, 131072, 131073, 196609, 262144)
MIB = 1 << 20


def large(sizes: Sequence[int], times: int) -> int:
    """The bytes of a walk through sizes that are above the threshold."""
    return times * sum(size for size in sizes if size > THRESHOLD)


def listed(sizes: Sequence[int]) -> str:
    """Sizes as fabtests take them."""
    return "l:" + ",".join(str(size) for size in sizes)


def pingpong(name: str, program: str, sizes: Sequence[int], times: int) -> Job:
    """A benchmark that sends each message forth and back, and looks at the data."""
    args = ("-p", "psm3", "-E", "-v", "-w", "1", "-I", str(times), "-S", listed(sizes))
    moved = large(sizes, times)
    expected = Expected(to_server=moved - max(sizes), to_client=moved - max(sizes), by_packets=1)
    return Job(name, program, args, expected=expected)


def stream(name: str, program: str, sizes: Sequence[int], times: int, window: int) -> Job:
    """A benchmark that sends from the client to the server, and looks at the data."""
    args = ("-p", "psm3", "-E", "-v", "-w", "1", "-W", str(window), "-I", str(times))
    return Job(
        name,
        program,
        (*args, "-S", listed(sizes)),
        expected=Expected(to_server=large(sizes, times)),
    )


def simple_pingpong(size: int, times: int) -> Job:
    """libfabric's own fi_pingpong, with its data check."""
    moved = size * (times - 1)
    return Job(
        f"fi_pingpong of {size}",
        "fi_pingpong",
        ("-p", "psm3", "-e", "rdm", "-m", "tagged", "-c", "-S", str(size), "-I", str(times)),
        port=PINGPONG,
        expected=Expected(to_server=moved, to_client=moved, by_packets=1),
    )


def unexpected(size: int, times: int) -> Job:
    """Many messages before anybody asks for them."""
    args = ("-p", "psm3", "-e", "rdm", "-v", "-S", str(size), "-I", str(times))
    moved = size * (times - 1)
    expected = Expected(to_server=moved, to_client=moved, by_packets=1)
    return Job(f"fi_unexpected_msg of {size}", "fi_unexpected_msg", args, expected=expected)


def unmap(size: int, times: int) -> Job:
    """A buffer that is unmapped and mapped again at the same address between messages."""
    args = ("-p", "psm3", "-e", "rdm", "-E", "-S", str(size), "-I", str(times))
    moved = size * (times - 1)
    expected = Expected(to_server=moved, to_client=moved, by_packets=1)
    return Job("fi_unmap_mem", "fi_unmap_mem", args, expected=expected)


def rma(operation: str, sizes: Sequence[int], times: int) -> Job:
    """RMA as tagged messages; its reads and writes then go through rv too.

    Both ends do the same to the other; but writes with data go to the server alone.
    """
    args = ("-p", "psm3", "-e", "rdm", "-E", "-o", operation, "-w", "1", "-W", "2")
    moved = large(sizes, times)
    return Job(
        f"fi_rma_bw {operation}",
        "fi_rma_bw",
        (*args, "-I", str(times), "-S", listed(sizes)),
        env=TAGGED_RMA,
        expected=Expected(to_server=moved, to_client=0 if operation == "writedata" else moved),
    )


def endpoints(size: int, *options: str, count: int = 3) -> Job:
    """Several endpoints in one process: several descriptors of /dev/rv."""
    args = ("-p", "psm3", "-e", "rdm", "-v", "-c", str(count), "-S", str(size))
    name = " ".join([f"fi_multi_ep with {count}", *options])
    moved = count * size
    expected = Expected(to_server=moved, to_client=moved, by_packets=count)
    return Job(name, "fi_multi_ep", (*args, *options), env=TAGGED_RMA, expected=expected)


def functional(program: str, *options: str) -> Job:
    """A functional test with small messages: it has to end well, and nothing may fail."""
    args = ("-p", "psm3", "-E", *options)
    return Job(" ".join([program, *options]), program, args)


CORE = (
    simple_pingpong(131073, 6),
    pingpong("fi_rdm_tagged_pingpong", "fi_rdm_tagged_pingpong", (64, *EDGES[:3], MIB), 4),
    stream("fi_rdm_tagged_bw", "fi_rdm_tagged_bw", (*EDGES, MIB, 4 * MIB + 1), 5, 4),
    pingpong("fi_rdm_pingpong", "fi_rdm_pingpong", (65536, 262144), 4),
    unexpected(65536, 4),
    unmap(131072, 8),
    rma("write", (65536, MIB), 5),
    rma("read", (65536, MIB), 5),
    endpoints(131072),
    # Not fi_rdm_tagged_peek, which stands still at its message 10 without rv too, and not
    # fi_rdm_stress, which asks for what this PSM3 does not have and says that all is well.
    functional("fi_cq_data", "-e", "rdm"),
    functional("fi_cq_data", "-e", "rdm"),
    functional("fi_rdm"),
)

# For a kernel under which everything is slow: both directions, registration and its end,
# several descriptors.
SMOKE = (
    pingpong("fi_rdm_tagged_pingpong", "fi_rdm_tagged_pingpong", (64, *EDGES[:3], MIB), 3),
    stream("fi_rdm_tagged_bw", "fi_rdm_tagged_bw", (65536, MIB), 3, 2),
    unmap(131072, 4),
    endpoints(131072),
)

# What is not in the core list because it takes long: every program at more sizes, up to
# more than any region that rv registers at once, and the loops in which ranks of PSM3
# have been seen to wait for ever.
HUGE = 260 * MIB + 1
LOOPS = 50


def long_list() -> Iterator[Job]:
    """The list of `make check-long`."""
    for size in (*EDGES[1:], MIB):
        yield simple_pingpong(size, 20)
    walk = (1, 64, 4096, *EDGES, MIB, 4 * MIB + 1)
    for program in ("fi_rdm_tagged_pingpong", "fi_rdm_pingpong"):
        yield pingpong(program, program, walk, 10)
    for program in ("fi_rdm_tagged_bw", "fi_rdm_bw"):
        yield stream(program, program, (*walk, 16 * MIB), 12, 4)
    yield stream("more than a region", "fi_rdm_tagged_bw", (HUGE,), 2, 1)
    for size in (65536, 262144, MIB):
        yield unexpected(size, 10)
    for size in (65536, MIB, 4 * MIB):
        yield unmap(size, 30)
    for operation in ("write", "read", "writedata"):
        yield rma(operation, (4096, *EDGES, MIB), 10)
    for options in ((), ("-A",), ("-Q",), ("-A", "-Q")):
        yield endpoints(131072, *options)
    yield endpoints(131072, count=8)
    for _ in range(LOOPS):
        yield functional("fi_cq_data", "-e", "rdm")
