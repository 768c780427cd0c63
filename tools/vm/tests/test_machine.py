# SPDX-License-Identifier: GPL-2.0
"""What the runner answers to a guest, and the pieces VMs are made of."""

import tempfile
import unittest
from pathlib import Path

from vmlib import config, enter, initramfs, qemu
from vmlib.machine import Machine, Rendezvous, answer
from vmlib.report import Failure


class AnswerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.rendezvous = Rendezvous(2)
        self.machines = []
        for index in (1, 2):
            hardware = qemu.Hardware(name=f"vm{index}", index=index)
            machine = Machine(hardware, "true", Path(folder.name) / f"vm{index}", shell=False)
            self.addCleanup(machine.close)
            self.machines.append(machine)

    def say(self, index, line):
        return answer(self.machines[index - 1], self.rendezvous, line, lambda: 1.0)

    def test_barrier_opens_when_all_have_come(self):
        self.assertEqual(self.say(1, "arrive a"), "1")
        self.assertEqual(self.say(1, "passed a 1"), "no")
        self.assertEqual(self.say(2, "arrive a"), "1")
        self.assertEqual(self.say(1, "passed a 1"), "yes")

    def test_barrier_can_be_used_again(self):
        for vm in (1, 2, 1):
            round_ = self.say(vm, "arrive a")
        self.assertEqual(round_, "2")
        self.assertEqual(self.say(1, "passed a 2"), "no")
        self.say(2, "arrive a")
        self.assertEqual(self.say(1, "passed a 2"), "yes")

    def test_barrier_that_cannot_open_says_so(self):
        self.say(1, "arrive a")
        self.say(2, "exit 0 0")
        self.assertEqual(self.say(1, "passed a 1"), "never: vm2 has ended")

    def test_barrier_stays_open_when_a_vm_ends_after_it(self):
        self.say(1, "arrive a")
        self.say(2, "arrive a")
        self.say(2, "exit 0 0")
        self.assertEqual(self.say(1, "passed a 1"), "yes")

    def test_value_that_nobody_can_put(self):
        self.say(2, "fail x")
        self.assertEqual(self.say(1, "get port"), "never: all other VMs have ended")

    def test_values(self):
        self.assertEqual(self.say(1, "get port"), "wait")
        self.assertEqual(self.say(2, "put port 12 and more"), "ok")
        self.assertEqual(self.say(1, "get port"), "is 12 and more")

    def test_exit(self):
        self.say(1, "exit 3 4096")
        self.assertEqual((self.machines[0].outcome.code, self.machines[0].outcome.taint), (3, 4096))

    def test_fail(self):
        self.say(2, "fail cannot add rxe0")
        self.assertEqual(self.machines[1].outcome.failure, "cannot add rxe0")
        self.assertFalse(self.machines[1].outcome.ok())

    def test_nonsense(self):
        with self.assertRaises(Failure):
            self.say(1, "exit now")

    def test_lines_in_pieces(self):
        machine = self.machines[0]
        self.assertEqual(machine.lines("out", b"ab"), [])
        self.assertEqual(machine.lines("out", b"c\r\nd\ne"), ["abc", "d"])
        self.assertEqual(machine.partial["out"], b"e")

    def test_kernel_log_and_taint(self):
        machine = self.machines[0]
        (machine.folder / "dmesg.log").write_text("[ 1.0] BUG: x\n")
        machine.judge_log([])
        self.assertEqual(machine.outcome.problems[0].line, "BUG: x")
        (machine.folder / "dmesg.log").write_text("[ 1.0] fine\n")
        machine.outcome.taint = 1 << 9
        machine.judge_log([])
        self.assertIn("tainted W", machine.outcome.problems[0].line)


class InitramfsTest(unittest.TestCase):
    DEPS = initramfs.parse_deps(
        "kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz\n"
        "kernel/net/9p/9pnet.ko.xz: kernel/fs/netfs/netfs.ko.xz\n"
        "kernel/net/9p/9pnet_virtio.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz\n"
        "kernel/fs/netfs/netfs.ko.xz:\n"
        "kernel/fs/overlayfs/overlay.ko.xz:\n"
    )

    def test_order_puts_needs_first(self):
        order = [Path(path).name for path in initramfs.loading_order(self.DEPS, {"virtio_net"})]
        self.assertEqual(
            order,
            ["netfs.ko.xz", "9pnet.ko.xz", "9pnet_virtio.ko.xz", "9p.ko.xz", "overlay.ko.xz"],
        )

    def test_a_missing_module_is_named(self):
        with self.assertRaisesRegex(Failure, "no module virtio_net"):
            initramfs.loading_order(self.DEPS, set())

    def test_archive_is_aligned_and_closed(self):
        cpio = initramfs.Cpio()
        cpio.directory("bin")
        cpio.file("bin/a", b"12345")
        cpio.symlink("bin/b", "a")
        data = cpio.finish()
        self.assertEqual(len(data) % 4, 0)
        self.assertEqual(data[:6], b"070701")
        self.assertIn(b"TRAILER!!!", data)
        self.assertEqual(data.count(b"070701"), 4)


class EnterTest(unittest.TestCase):
    def test_sub_ids_by_name_or_number(self):
        table = "alice:100000:65536\n1001:165536:65536\nbob:1:100\n"
        self.assertTrue(enter.has_sub_ids(table, "alice", 1000))
        self.assertTrue(enter.has_sub_ids(table, "carol", 1001))
        self.assertFalse(enter.has_sub_ids(table, "bob", 1002))
        self.assertFalse(enter.has_sub_ids("", "alice", 1000))

    def test_little_environment_gets_in(self):
        env = enter.environment({"KDIR": "/k"})
        self.assertEqual(env["KDIR"], "/k")
        self.assertNotIn("MAKEFLAGS", env)
        self.assertEqual(env["LC_ALL"], "C.UTF-8")

    def test_everything_dies_with_us(self):
        argv = enter.enter_argv(Path("/r"), ["true"], binds=[])
        self.assertEqual(argv[:3], ["setpriv", "--pdeathsig", "SIGKILL"])
        self.assertIn("--kill-child=SIGKILL", argv)


class QemuTest(unittest.TestCase):
    def test_two_ends_of_a_cable(self):
        self.assertIn("server=on", qemu.Link("cable", server=True).netdev("net"))
        self.assertIn("reconnect-ms", qemu.Link("cable", server=False).netdev("net"))

    def test_shares_are_read_only_unless_asked(self):
        share = qemu.Share("repo", config.REPO, config.REPO)
        hardware = qemu.Hardware(name="vm1", index=1, shares=[share])
        line = " ".join(qemu.argv(hardware))
        self.assertIn(
            "id=root,path=/run/vm-root,security_model=none,multidevs=remap,readonly", line
        )
        self.assertIn(f"id=repo,path={qemu.SHARES}/repo,security_model=none", line)
        self.assertEqual(line.count("readonly=on"), 2)

    def test_each_card_has_its_own_cable(self):
        links = [qemu.Link(f"cable{number}", server=True) for number in range(2)]
        line = " ".join(qemu.argv(qemu.Hardware(name="vm1", index=1, links=links)))
        for number in range(2):
            self.assertIn(f"cable{number}.link", line)
            self.assertIn(f"netdev=net{number},mac=52:54:00:09:{number:02x}:01", line)

    def test_hub_has_a_port_per_vm(self):
        links = [qemu.Link(f"vm{n}", server=True) for n in (1, 2, 3)]
        self.assertEqual(" ".join(qemu.hub_argv(links)).count("hubport"), 3)


class ConfTest(unittest.TestCase):
    def test_conf_and_packages(self):
        conf = config.read_conf(config.VM_DIR / "kernel.conf")
        self.assertEqual(set(conf), {"DEBIAN_SUITE", "KERNEL_POCKET", "KERNEL_SERIES"})
        self.assertIn("rustc", config.read_packages(config.VM_DIR / "build.packages"))
