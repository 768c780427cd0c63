# SPDX-License-Identifier: GPL-2.0
"""All VMs of one run: start them, serve them, end them, give the verdict."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import config, debugkernel, enter, initramfs, klog, kvm, qemu, roots, terminal
from .machine import Machine, Rendezvous, answer, terminal_size
from .report import Failure, say

# A script's own code is passed on up to 119; above that are ours.
EXIT_SCRIPT_LIMIT = 119
EXIT_TIMEOUT = 124
EXIT_KERNEL_LOG = 125
EXIT_SETUP = 126

# Generous: an emulated machine on a busy host can be twenty times slower.
BOOT_SECONDS = 300
POWER_OFF_SECONDS = 120
# When one VM has failed, the others may still finish and leave their logs.
GRACE_SECONDS = 20


@dataclass
class Plan:
    """What the command line asked for."""

    commands: Sequence[str]
    name: str
    shell: bool = False
    cpus: int = 1
    memory: str = "2G"
    accel: str = "auto"
    rxe: bool = False
    nics: int = 1
    mtu: int = 4200
    timeout: float = 900.0
    quiet: bool = False
    env: dict[str, str] = field(default_factory=dict)
    shares: Sequence[tuple[Path, Path]] = ()
    kernel_args: Sequence[str] = ()
    qemu_args: Sequence[str] = ()
    # The debug kernel, or another image with its modules; else the stock kernel.
    debug: bool = False
    kernel: Path | None = None
    modules: Path | None = None
    allow: Sequence[Path] = ()


def make_socket_folder() -> Path:
    """A directory with a path short enough for UNIX sockets.

    A run that was killed by SIGKILL could not remove its own; that is done here.
    """
    for old in Path("/tmp").glob("rdmavt-vm-*"):
        pid = old.name.split("-")[2]
        if pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"rdmavt-vm-{os.getpid()}-", dir="/tmp"))


class Runner:
    """One run of one or more VMs."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.build = roots.ensure("build")
        self.vm = roots.ensure("vm")
        kernel = debugkernel.ensure(self.build) if plan.debug else self.build
        self.image = plan.kernel or kernel.kernel_image
        self.modules = plan.modules or kernel.modules
        self.slowness = debugkernel.SLOWNESS if plan.debug else 1
        self.folder = self.make_folder()
        self.allowed = [
            rule
            for path in (config.VM_DIR / "kernel-log.allow", *plan.allow)
            for rule in klog.read_allowed(path)
        ]
        self.initrd = initramfs.ensure(self.modules, self.build.tree / "usr/bin/busybox")
        self.accel = self.choose_accel()
        self.sockets = make_socket_folder()
        self.selector = selectors.DefaultSelector()
        self.rendezvous = Rendezvous(len(plan.commands))
        self.machines: list[Machine] = []
        self.hub: subprocess.Popen[bytes] | None = None
        self.terminal: terminal.Terminal | None = None
        self.timed_out = False

    def choose_accel(self) -> str:
        """The accelerator; the stock kernel probes it, being the quickest to boot."""
        busybox = self.build.tree / "usr/bin/busybox"
        initrd = initramfs.ensure(self.build.modules, busybox)
        return kvm.choose(self.plan.accel, self.build.tree, self.build.kernel_image, initrd)

    def make_folder(self) -> Path:
        """The run's directory, and the `last` link to it."""
        folder = config.BUILD / "vm" / self.plan.name
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        link = folder.parent / f".last-{os.getpid()}"
        link.symlink_to(folder.name)
        link.rename(folder.parent / "last")
        return folder

    def run(self) -> int:
        """Do it all; whatever happens, nothing stays behind."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        try:
            self.start()
            self.serve()
        finally:
            self.stop()
        return self.verdict()

    # -- starting ---------------------------------------------------------

    def start(self) -> None:
        """Start the hub, if one is needed, and every VM."""
        count = len(self.plan.commands)
        if not self.plan.quiet:
            plural = "s" if count > 1 else ""
            say(f"booting {count} VM{plural} ({self.accel}), logs in {self.folder}")
        if count > 2:
            self.start_hub(count)
        for index, command in enumerate(self.plan.commands, 1):
            self.machines.append(self.make_machine(index, command))
        for machine in self.machines:
            self.launch(machine)

    def start_hub(self, count: int) -> None:
        """A machine-less QEMU joins three or more links."""
        links = [qemu.Link(f"vm{n}", server=True) for n in range(1, count + 1)]
        with (self.folder / "hub.log").open("wb") as log:
            self.hub = subprocess.Popen(
                self.enter_argv(qemu.hub_argv(links), []),
                env=enter.environment({"PATH": enter.host_environment()["PATH"]}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def links(self, index: int) -> list[qemu.Link | None]:
        """The VM's end of its links: two VMs have a cable for each card, more have a hub."""
        count = len(self.plan.commands)
        if count == 1:
            return [None] * self.plan.nics
        if count == 2:
            cables = range(self.plan.nics)
            return [qemu.Link(f"cable{number}", server=index == 1) for number in cables]
        return [qemu.Link(f"vm{index}", server=False)]

    def make_machine(self, index: int, command: str) -> Machine:
        """Put together one VM, not started yet."""
        plan = self.plan
        name = f"vm{index}"
        folder = self.folder / name
        shares = [
            qemu.Share("run", folder, Path("/run/vm"), "rw", "none"),
            qemu.Share("repo", config.REPO, config.REPO),
        ]
        for number, (src, dst) in enumerate(plan.shares):
            shares.append(qemu.Share(f"share{number}", src, dst, "ro", "loose"))
        hardware = qemu.Hardware(
            name=name,
            index=index,
            cpus=plan.cpus,
            memory=plan.memory,
            accel=self.accel,
            kernel_args=[*(debugkernel.KERNEL_ARGS if plan.debug else ()), *plan.kernel_args],
            shares=shares,
            links=self.links(index),
            extra=plan.qemu_args,
        )
        machine = Machine(hardware, command, folder, plan.shell and index == 1)
        machine.write_guest_files(self.guest_environment(machine, index))
        return machine

    def guest_environment(self, machine: Machine, index: int) -> dict[str, str]:
        """The variables that guest/init and the script find."""
        count = len(self.plan.commands)
        rows, columns = terminal_size()
        return {
            "VM_NAME": machine.name,
            "VM_INDEX": str(index),
            "VM_COUNT": str(count),
            "VM_IP": f"10.9.0.{index}",
            "VM_PEER_IP": f"10.9.0.{3 - index}" if count == 2 else "",
            "VM_MTU": str(self.plan.mtu),
            "VM_NICS": str(self.plan.nics),
            "VM_RXE": "1" if self.plan.rxe else "",
            "VM_SHELL": "1" if machine.shell else "",
            "VM_ROWS": rows,
            "VM_COLUMNS": columns,
            "VM_TERM": os.environ.get("TERM", "linux"),
            "VM_RESULTS": "/run/vm/results",
            "VM_ACCEL": self.accel,
            "VM_SLOWNESS": str(self.slowness),
            **self.kernel_environment(),
            "REPO": str(config.REPO),
            **self.plan.env,
        }

    def kernel_environment(self) -> dict[str, str]:
        """The variables that depend on the kernel: where our modules for it are."""
        name = "debug" if self.plan.debug else "stock"
        modules = str(config.BUILD / ("modules-debug" if self.plan.debug else "modules"))
        return {
            "VM_KERNEL": name,
            "VM_MODULES": modules,
            "MODULES": modules,
            # How many times the bounds of a machine as it should be; 4 for emulated ones.
            "RV_TIME_FACTOR": str(4 * self.slowness),
        }

    def enter_argv(self, command: list[str], binds: list[enter.Bind]) -> list[str]:
        """A command in the build root that sees this run's sockets."""
        sockets = enter.Bind(self.sockets, qemu.SOCKETS)
        return enter.enter_argv(self.build.tree, command, binds=[sockets, *binds])

    def launch(self, machine: Machine) -> None:
        """Start one VM and watch its sockets."""
        machine.listen(self.sockets)
        for port, listener in machine.listeners.items():
            self.selector.register(listener, selectors.EVENT_READ, (self.accept, machine, port))
        binds = [
            enter.Bind(self.image, qemu.KERNEL, "ro"),
            enter.Bind(self.initrd, qemu.INITRD, "ro"),
            enter.Bind(self.vm.tree, qemu.LOWER),
            enter.Bind(self.modules, qemu.LOWER / "usr/lib/modules" / self.modules.name),
            *(share.bind() for share in machine.hardware.shares),
        ]
        machine.launch(
            self.enter_argv(qemu.argv(machine.hardware), binds),
            enter.environment({"PATH": enter.host_environment()["PATH"]}),
        )

    # -- serving ----------------------------------------------------------

    def serve(self) -> None:
        """The event loop: until every VM has ended, or time is up."""
        timeout = self.plan.timeout * self.slowness
        deadline = time.monotonic() + timeout if not self.plan.shell else float("inf")
        grace = float("inf")
        while any(not machine.done for machine in self.machines):
            for key, _ in self.selector.select(timeout=0.2):
                handler, machine, port = key.data
                handler(machine, port)
            now = time.monotonic()
            for machine in self.machines:
                self.check_machine(machine, now)
            self.check_hub()
            ended = [machine for machine in self.machines if machine.done]
            if grace == float("inf") and any(m.shell or not m.outcome.ok() for m in ended):
                grace = now + (0 if self.plan.shell else GRACE_SECONDS * self.slowness)
            if now > grace:
                self.give_up("" if self.plan.shell else "ended because another VM had")
            if now > deadline:
                self.timed_out = True
                self.give_up(f"no end within {timeout:.0f} s, see --timeout")

    def accept(self, machine: Machine, port: str) -> None:
        """QEMU has connected one of a VM's ports."""
        listener = machine.listeners[port]
        connection, _ = listener.accept()
        self.selector.unregister(listener)
        machine.sockets[port] = connection
        handler = {"console": self.on_console, "out": self.on_output, "ctl": self.on_control}[port]
        self.selector.register(connection, selectors.EVENT_READ, (handler, machine, port))

    def receive(self, machine: Machine, port: str) -> bytes:
        """Read what is there; at the end of the stream stop watching it."""
        connection = machine.sockets[port]
        try:
            data = connection.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            self.selector.unregister(connection)
        if port in machine.logs:
            machine.logs[port].write(data)
        return data

    def on_console(self, machine: Machine, port: str) -> None:
        """Kernel messages, and the terminal of a shell."""
        data = self.receive(machine, port)
        if machine.shell and machine.started and not machine.reported:
            os.write(sys.stdout.fileno(), data)

    def on_output(self, machine: Machine, port: str) -> None:
        """What the script prints."""
        self.print_lines(machine, machine.lines(port, self.receive(machine, port)))

    def print_lines(self, machine: Machine, lines: list[str]) -> None:
        """Show script output, with the VM's name when there are several."""
        if self.plan.quiet:
            return
        prefix = f"{machine.name}| " if len(self.machines) > 1 else ""
        for line in lines:
            print(prefix + line, flush=True)

    def on_control(self, machine: Machine, port: str) -> None:
        """A line of vm-ctl in the guest."""
        for line in machine.lines(port, self.receive(machine, port)):
            reply = answer(machine, self.rendezvous, line, time.monotonic)
            machine.sockets[port].sendall(reply.encode() + b"\n")
            if line == "start" and machine.shell:
                self.terminal = terminal.Terminal(self.selector, machine.sockets["console"])

    def check_machine(self, machine: Machine, now: float) -> None:
        """Notice a VM that has ended, or that should have done something by now."""
        if machine.done:
            return
        assert machine.process is not None
        boot, off = BOOT_SECONDS * self.slowness, POWER_OFF_SECONDS * self.slowness
        if machine.process.poll() is not None:
            self.finish(machine)
        elif not machine.booted and now > machine.born + boot:
            self.abort(machine, f"did not boot within {boot} s; last: {machine.console_tail()}")
        elif machine.reported and now > machine.reported + off:
            self.abort(machine, f"did not power off within {off} s; last: {machine.console_tail()}")
        elif self.terminal and self.terminal.closed and machine.shell:
            machine.outcome.code = 0
            machine.kill()

    def check_hub(self) -> None:
        """Without the hub nothing that the VMs still do makes sense."""
        if self.hub and self.hub.poll() is not None:
            lines = (self.folder / "hub.log").read_text(errors="replace").splitlines()
            raise Failure(f"the VMs' network hub failed: {lines[-1] if lines else 'no reason'}")

    def abort(self, machine: Machine, why: str) -> None:
        """Kill one VM and note why; without a reason it is the end that was wanted."""
        machine.outcome.failure = why
        if not why:
            machine.outcome.code = 0
        machine.kill()
        self.finish(machine)

    def give_up(self, why: str) -> None:
        """Kill every VM that still runs."""
        for machine in self.machines:
            if not machine.done:
                self.abort(machine, why)

    def finish(self, machine: Machine) -> None:
        """A VM's QEMU is gone: read what is left in its sockets, then judge."""
        machine.judge_end()
        self.rendezvous.ended.add(machine.name)
        for port, connection in machine.sockets.items():
            while connection in (key.fileobj for key in self.selector.get_map().values()):
                handler = self.selector.get_key(connection).data[0]
                try:
                    handler(machine, port)
                except (BrokenPipeError, Failure):
                    break
        if machine.partial["out"]:
            self.print_lines(machine, [machine.partial["out"].decode(errors="replace")])
        for item in (*machine.listeners.values(), *machine.sockets.values()):
            with contextlib.suppress(KeyError):
                self.selector.unregister(item)
        machine.judge_log(self.allowed)
        machine.close()

    # -- ending -----------------------------------------------------------

    def stop(self) -> None:
        """Whatever state we are in, leave nothing behind."""
        if self.terminal:
            self.terminal.restore()
        for machine in self.machines:
            machine.kill()
        if self.hub:
            self.hub.kill()
            self.hub.wait()
        shutil.rmtree(self.sockets, ignore_errors=True)

    def verdict(self) -> int:
        """Print one line per VM, write result.json, return the exit code."""
        results = []
        for machine in self.machines:
            outcome = machine.outcome
            boot = machine.booted - machine.born if machine.booted else 0.0
            ran = (
                machine.reported - machine.started if machine.started and machine.reported else 0.0
            )
            results.append(
                {
                    "name": machine.name,
                    "code": outcome.code,
                    "failure": outcome.failure,
                    "kernel_log": [str(problem) for problem in outcome.problems],
                    "boot_seconds": round(boot, 2),
                    "script_seconds": round(ran, 2),
                }
            )
            if not self.plan.quiet or not outcome.ok():
                word = "ok" if outcome.ok() else "FAILED"
                where = "" if outcome.ok() else f"; see {machine.folder}"
                say(
                    f"{machine.name}: {word}, {outcome.text()}, boot {boot:.1f} s, "
                    f"script {ran:.1f} s{where}"
                )
            for problem in outcome.problems[1:5]:
                say(f"{machine.name}: kernel log: {problem}")
        result = {"exit": self.exit_code(), "accel": self.accel, "vms": results}
        (self.folder / "result.json").write_text(json.dumps(result, indent=1) + "\n")
        return self.exit_code()

    def exit_code(self) -> int:
        """The most telling code: time-out, kernel log, set-up, then the first script's."""
        outcomes = [machine.outcome for machine in self.machines]
        if self.timed_out:
            return EXIT_TIMEOUT
        if any(outcome.problems for outcome in outcomes):
            return EXIT_KERNEL_LOG
        codes = [outcome.code for outcome in outcomes if outcome.code]
        if codes:
            return min(codes[0], EXIT_SCRIPT_LIMIT)
        return EXIT_SETUP if any(outcome.failure for outcome in outcomes) else 0
