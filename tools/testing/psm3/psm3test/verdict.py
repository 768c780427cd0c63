# SPDX-License-Identifier: GPL-2.0
"""What makes a run good: it is not enough that the program says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from . import stats

Result = dict[str, Any]


@dataclass(frozen=True)
class Expected:
    """What a clean run must have counted, apart from having ended well."""

    # Bytes that at least must have gone by RDMA, from client to server and back.
    to_server: int = 0
    to_client: int = 0
    # Rendezvous messages that may go by UD packets: a responder that is not connected
    # yet when the first request comes can do no other.
    by_packets: int = 0


def ended_well(who: str, result: Result) -> Iterator[str]:
    """Exit code, time, and words that mean trouble whatever the exit code."""
    if result["late"]:
        yield f"{who}: did not end in {result['seconds']} s"
    elif result["code"] != 0:
        yield f"{who}: exit code {result['code']}"
    if result["overflow"]:
        yield f"{who}: an overflow was reported"
    if list(ended_badly(result)):
        yield f"{who}: last words: {' | '.join(result['tail'][-4:])}"


def ended_badly(result: Result) -> Iterator[bool]:
    """Something if the run did not end well."""
    if result["late"] or result["code"] != 0:
        yield True


def counter(result: Result, section: str, *names: str) -> int:
    """A counter, or the sum of some. PSM3 leaves out what is zero."""
    entries = result["stats"].get(section, {})
    return sum(entries.get(name, 0) for name in names)


def without_rv(server: Result, client: Result) -> Iterator[str]:
    """The control run: PSM3 has not touched /dev/rv."""
    for who, result in (("server", server), ("client", client)):
        if stats.PROTOCOL not in result["stats"]:
            yield f"{who}: PSM3 left no statistics"
        if result["run_time_rv"]:
            yield f"{who}: attached to rv, though it was told not to"
        if counter(result, stats.PROTOCOL, "rndv_rdma_cpu_send", "rndv_rdma_cpu_recv"):
            yield f"{who}: sent by RDMA, though it was told not to"


def through_rv(server: Result, client: Result, expected: Expected) -> Iterator[str]:
    """Every message above the threshold went through rv, and rv's counters say the same."""
    for who, result in (("server", server), ("client", client)):
        yield from attached(who, result)
        yield from clean(who, result)
        packets = counter(result, stats.PROTOCOL, "rndv_long_cpu_recv")
        if packets > expected.by_packets:
            yield f"{who}: received {packets} long messages by packets, not by RDMA"
    yield from direction("client to server", client, server, expected.to_server)
    yield from direction("server to client", server, client, expected.to_client)


def with_user_mrs(server: Result, client: Result, expected: Expected) -> Iterator[str]:
    """PSM3's own queue pairs moved the large messages, with MRs from rv's cache."""
    for who, result in (("server", server), ("client", client)):
        if not result["run_time_rv"]:
            yield f"{who}: does not say that it attached to rv"
        if counter(result, stats.CACHE, "rv_failed"):
            yield f"{who}: rv failed to register"
        if stats.CONNECTION in result["stats"]:
            yield f"{who}: has statistics of rv's connections, which it should not use"
    for what, sender, receiver, least in (
        ("client to server", client, server, expected.to_server),
        ("server to client", server, client, expected.to_client),
    ):
        sent = counter(sender, stats.PROTOCOL, "rndv_rdma_cpu_send_bytes")
        received = counter(receiver, stats.PROTOCOL, "rndv_rdma_cpu_recv_bytes")
        if sent != received or sent < least:
            yield f"{what}: sent {sent}, received {received} bytes by RDMA, {least} should have"
        if least and not counter(sender, stats.CACHE, "rv_miss"):
            yield f"{what}: nothing of it was registered by rv"


def attached(who: str, result: Result) -> Iterator[str]:
    """PSM3 says itself that it attached, and has statistics of each kind."""
    if not result["run_time_rv"]:
        yield f"{who}: does not say that it attached to rv"
    for section in stats.OF_RV:
        if section not in result["stats"]:
            yield f"{who}: PSM3's statistics have no {section}"


# Counters that must be zero when nothing was broken on purpose.
FAILURES = {
    stats.CONNECTION: (
        "conn_recovery", "post_write_fail", "send_write_cqe_fail", "recv_cqe_fail", "req_error",
        "rep_error", "dreq_error", "unexp_event", "resolve_fail", "reresolve_fail",
        "post_hb_fail", "send_hb_cqe_fail",
    ),
    stats.EVENTS: ("send_write_cqe_fail", "recv_write_cqe_fail"),
    # PSM3's own failed_reg_mr is none: it tries whole messages above rv's limit first.
    stats.CACHE: ("rv_failed",),
    stats.PROTOCOL: ("rdma_rexmit_(*)", "err_chk_rdma_send_(*)", "err_chk_rdma_recv_(*)"),
}  # fmt: skip


def clean(who: str, result: Result) -> Iterator[str]:
    """Nothing failed, and nothing had to be repaired."""
    for section, names in FAILURES.items():
        for name in names:
            value = counter(result, section, name)
            if value:
                yield f"{who}: {name} is {value}"


def direction(what: str, sender: Result, receiver: Result, least: int) -> Iterator[str]:
    """The data of one direction as its sender, its receiver and both rv counted it."""
    bytes_counts = {
        "PSM3's sender": counter(sender, stats.PROTOCOL, "rndv_rdma_cpu_send_bytes"),
        "PSM3's receiver": counter(receiver, stats.PROTOCOL, "rndv_rdma_cpu_recv_bytes"),
        "posted": counter(sender, stats.CONNECTION, "post_write_bytes"),
        "sent": counter(sender, stats.EVENTS, "send_write_bytes"),
        "received": counter(receiver, stats.CONNECTION, "recv_write_bytes"),
        "receiver's events": counter(receiver, stats.EVENTS, "recv_write_bytes"),
    }
    write_counts = {
        "posted": counter(sender, stats.CONNECTION, "post_write"),
        "completed": counter(sender, stats.CONNECTION, "send_write_cqe"),
        "sender's events": counter(sender, stats.EVENTS, "send_write_cqe"),
        "received": counter(receiver, stats.CONNECTION, "recv_write_cqe"),
        "receiver's events": counter(receiver, stats.EVENTS, "recv_write_cqe"),
    }
    yield from same(f"{what}, bytes", bytes_counts)
    yield from same(f"{what}, writes", write_counts)
    sent = bytes_counts["PSM3's sender"]
    if sent < least:
        yield f"{what}: {sent} bytes went by RDMA, {least} should have"
    asked = counter(sender, stats.PROTOCOL, "rndv_cpu_send_bytes", "rndv_cpu_isend_bytes")
    packets = counter(receiver, stats.PROTOCOL, "rndv_long_cpu_recv_bytes")
    if asked != sent + packets:
        yield f"{what}: {asked} bytes in long messages, but {sent} by RDMA and {packets} by packets"


def same(what: str, counts: dict[str, int]) -> Iterator[str]:
    """All parties counted the same."""
    if len(set(counts.values())) > 1:
        yield f"{what}: " + ", ".join(f"{who} {value}" for who, value in counts.items())


def summary(server: Result, client: Result) -> Iterable[str]:
    """A line about a good run, so that a reader sees what was moved."""
    sent = counter(client, stats.PROTOCOL, "rndv_rdma_cpu_send_bytes")
    back = counter(server, stats.PROTOCOL, "rndv_rdma_cpu_send_bytes")
    yield f"{client['seconds']} s, by RDMA {sent} bytes to the server, {back} to the client"
