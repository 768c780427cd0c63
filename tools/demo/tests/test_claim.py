# SPDX-License-Identifier: GPL-2.0
"""The demo's judgement."""

import json
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

from demolib import claim

SIZE = 2_500_000
BLOCK = 1_000_000

PERFTEST = """\
 #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]
 1048576    60               25.41              24.87              0.000025
---------------------------------------------------------------------------------------
"""


def perf() -> dict:
    """What rv-perf says after a good transfer."""
    conn = {"post_write": 3, "send_write_cqe": 3, "post_write_bytes": SIZE, "recv_write_cqe": 3}
    events = {"send_write_cqe": 3, "recv_write_cqe": 3, "recv_write_bytes": SIZE}
    side = {"conn": conn, "events": events}
    return {
        "bytes": SIZE,
        "block": BLOCK,
        "writes": 3,
        "sha256_received": "aa",
        "client": side,
        "server": side,
    }


def evidence() -> claim.Evidence:
    """A VM after a good transfer."""
    return claim.Evidence(
        perf=perf(),
        sha256="aa",
        roce=SIZE + 90_000,
        other=5_000,
        hw={"sent_pkts": 700, "rcvd_pkts": 700},
    )


def wrong(receiver: claim.Evidence, sender: claim.Evidence) -> list[str]:
    """The checks that fail."""
    checks = claim.judge(SIZE, receiver, sender)
    return [check.text for check in checks if not check.good]


class Judge(unittest.TestCase):
    """Good and bad evidence."""

    def test_good(self) -> None:
        self.assertEqual(wrong(evidence(), evidence()), [])

    def test_other_content(self) -> None:
        self.assertEqual(len(wrong(replace(evidence(), sha256="bb"), evidence())), 1)

    def test_by_tcp(self) -> None:
        sender = replace(evidence(), roce=0, other=SIZE)
        self.assertEqual(len(wrong(evidence(), sender)), 2)

    def test_too_few_packets(self) -> None:
        receiver = replace(evidence(), hw={"sent_pkts": 0, "rcvd_pkts": 610})
        self.assertEqual(len(wrong(receiver, evidence())), 1)

    def test_not_through_rv(self) -> None:
        sender = evidence()
        sender.perf["client"] = {**sender.perf["client"], "conn": dict.fromkeys(
            ("post_write", "send_write_cqe", "post_write_bytes"), 0)}  # fmt: skip
        self.assertEqual(len(wrong(evidence(), sender)), 3)

    def test_packets(self) -> None:
        self.assertEqual(claim.lengths(SIZE, BLOCK), [BLOCK, BLOCK, 500_000])
        self.assertEqual(claim.packets([0, 1, 4096, 4097]), 5)


class Read(unittest.TestCase):
    """Files of a VM."""

    def test_all(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for when, count in (("before", 10), ("after", 30)):
                for way in ("ingress", "egress"):
                    (folder / f"{when}.{way}.json").write_text(json.dumps(filters(count)))
                (folder / f"{when}.hw_counters").write_text(f"sent_pkts {count}\n")
            (folder / "perf.json").write_text("{}")
            (folder / "sha256").write_text("aa  /x\n")
            read = claim.Evidence.read(folder)
        self.assertEqual((read.roce, read.other), (2 * 20, 2 * 200))
        self.assertEqual(read.hw, {"sent_pkts": 20})
        self.assertEqual(read.sha256, "aa")

    def test_perftest(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            log = Path(name) / "log"
            log.write_text(PERFTEST)
            self.assertAlmostEqual(claim.bandwidth(log), 24.87)
            log.write_text("no figures")
            with self.assertRaises(ValueError):
                claim.bandwidth(log)


def filters(count: int) -> list[dict]:
    """What `tc -j -s filter show` prints."""
    return [
        {"kind": "flower", "protocol": "ip"},
        {"kind": "flower", "options": {"actions": [{"stats": {"bytes": count}}]}},
        {"kind": "matchall", "options": {"actions": [{"stats": {"bytes": 10 * count}}]}},
    ]


if __name__ == "__main__":
    unittest.main()
