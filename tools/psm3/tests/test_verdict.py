# SPDX-License-Identifier: GPL-2.0
"""What the tests in tools/testing/psm3 take for a good run, and what they do not."""

import copy
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "testing/psm3"))

from psm3test import stats, verdict  # noqa: E402
from psm3test.verdict import Expected  # noqa: E402

REPORT = """\
PSM3_RDMA=1

Time Delta 3 seconds Mon Nov 30 12:00:00 2026
 PSM_low-level_protocol_stats id 1 tid 9
    rts_send 1 (1)

Time Delta 4 seconds Mon Nov 30 12:00:01 2026
 MPI_Statistics_Summary tid 9
    Total_count_sent 4 (0)
 PSM_low-level_protocol_stats id 1 tid 9
    rts_send 3 (2)
    rdma_rexmit_(*) 1 (1)
 PSM_low-level_protocol_stats id 2 tid 9
    rts_send 5 (5)
 RV_Shared_Conn_RDMA_Statistics id 1 rxe0 tid 9
    post_write 7 (7)
 RV_Shared_Conn_RDMA_Statistics id 2 rxe0 tid 9
    post_write 8 (8)

Time Delta 4 seconds Mon Nov 30 12:00:01 2026
"""


class StatsTest(unittest.TestCase):
    def setUp(self):
        self.total = stats.add_up([stats.parse(REPORT)])

    def test_the_last_report_counts_and_endpoints_are_added_up(self):
        self.assertEqual(self.total[stats.PROTOCOL], {"rts_send": 8, "rdma_rexmit_(*)": 1})

    def test_what_endpoints_share_is_not_added_up(self):
        self.assertEqual(self.total[stats.CONNECTION], {"post_write": 8})

    def test_sections_that_nobody_asks_for(self):
        self.assertEqual(set(self.total), {stats.PROTOCOL, stats.CONNECTION})

    def test_a_file_without_a_report(self):
        self.assertEqual(stats.parse("PSM3_RDMA=1\n"), {})


def result(sent=0, received=0, writes_sent=0, writes_received=0):
    """A clean result of a process that sent and received these bytes through rv."""
    return {
        "code": 0,
        "late": False,
        "seconds": 1.0,
        "tail": [],
        "run_time_rv": True,
        "overflow": False,
        "stats": {
            stats.PROTOCOL: {
                "rndv_cpu_isend_bytes": sent,
                "rndv_rdma_cpu_send_bytes": sent,
                "rndv_rdma_cpu_recv_bytes": received,
            },
            stats.CONNECTION: {
                "post_write": writes_sent,
                "post_write_bytes": sent,
                "send_write_cqe": writes_sent,
                "recv_write_cqe": writes_received,
                "recv_write_bytes": received,
            },
            stats.EVENTS: {
                "send_write_cqe": writes_sent,
                "send_write_bytes": sent,
                "recv_write_cqe": writes_received,
                "recv_write_bytes": received,
            },
            stats.CACHE: {"rv_hit": 1},
        },
    }


class ThroughRvTest(unittest.TestCase):
    def setUp(self):
        self.server = result(received=1000, writes_received=2)
        self.client = result(sent=1000, writes_sent=2)

    def problems(self, expected=None):
        return list(verdict.through_rv(self.server, self.client, expected or Expected(1000)))

    def test_a_clean_run(self):
        self.assertEqual(self.problems(), [])

    def test_less_than_the_program_sends(self):
        self.assertIn("1001 should have", self.problems(Expected(1001))[0])

    def test_nothing_in_the_other_direction(self):
        self.assertIn("server to client: 0 bytes", self.problems(Expected(1000, 1))[0])

    def test_a_message_by_packets(self):
        self.server["stats"][stats.PROTOCOL]["rndv_long_cpu_recv"] = 1
        self.assertIn("by packets", self.problems()[0])
        self.assertEqual(self.problems(Expected(1000, by_packets=1)), [])

    def test_a_message_that_went_neither_way(self):
        self.client["stats"][stats.PROTOCOL]["rndv_cpu_isend_bytes"] = 1500
        self.assertIn("1500 bytes in long messages", self.problems()[0])

    def test_every_counter_that_is_compared(self):
        for who, section, name in (
            (self.client, stats.PROTOCOL, "rndv_rdma_cpu_send_bytes"),
            (self.client, stats.CONNECTION, "post_write"),
            (self.client, stats.CONNECTION, "post_write_bytes"),
            (self.client, stats.CONNECTION, "send_write_cqe"),
            (self.client, stats.EVENTS, "send_write_cqe"),
            (self.client, stats.EVENTS, "send_write_bytes"),
            (self.server, stats.PROTOCOL, "rndv_rdma_cpu_recv_bytes"),
            (self.server, stats.CONNECTION, "recv_write_cqe"),
            (self.server, stats.CONNECTION, "recv_write_bytes"),
            (self.server, stats.EVENTS, "recv_write_cqe"),
            (self.server, stats.EVENTS, "recv_write_bytes"),
        ):
            with self.subTest(section=section, name=name):
                saved = copy.deepcopy(who["stats"])
                who["stats"][section][name] += 1
                self.assertTrue(self.problems())
                who["stats"] = saved

    def test_every_failure_that_is_counted(self):
        for section, names in verdict.FAILURES.items():
            for name in names:
                with self.subTest(section=section, name=name):
                    self.client["stats"][section][name] = 1
                    self.assertIn(name, self.problems()[0])
                    del self.client["stats"][section][name]

    def test_a_process_that_did_not_attach(self):
        self.server["run_time_rv"] = False
        self.assertIn("server: does not say that it attached", self.problems()[0])

    def test_statistics_that_are_not_there(self):
        del self.server["stats"][stats.EVENTS]
        self.assertIn(f"no {stats.EVENTS}", self.problems()[0])


class EndTest(unittest.TestCase):
    def test_code_time_and_overflow(self):
        self.assertEqual(list(verdict.ended_well("client", result())), [])
        for change in ({"code": 1}, {"late": True}, {"overflow": True}):
            self.assertTrue(list(verdict.ended_well("client", result() | change)), change)


class WithoutRvTest(unittest.TestCase):
    def test_a_control_that_used_rv_is_none(self):
        bare = result() | {"run_time_rv": False}
        self.assertEqual(list(verdict.without_rv(bare, bare)), [])
        self.assertTrue(list(verdict.without_rv(result(), bare)))
        self.assertTrue(list(verdict.without_rv(bare | {"stats": {}}, bare)))


if __name__ == "__main__":
    unittest.main()
