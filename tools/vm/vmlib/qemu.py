# SPDX-License-Identifier: GPL-2.0
"""The QEMU command line of one VM. QEMU runs inside the build root."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .enter import Bind

# Where the host's directories are, as QEMU inside the build root sees them.
SOCKETS = Path("/run/vm-sockets")
LOWER = Path("/run/vm-root")
SHARES = Path("/run/vm-shares")
INITRD = Path("/run/vm-initrd")
KERNEL = Path("/run/vm-kernel")

# The largest MTU that the network card offers; above what any test asks for.
NIC_MTU = 9000


@dataclass(frozen=True)
class Share:
    """A host directory in the guest. `cache` is 9p's: loose for what never changes."""

    tag: str
    src: Path
    dst: Path
    mode: str = "ro"
    cache: str = "readahead"

    def bind(self) -> Bind:
        """How QEMU gets to see it."""
        return Bind(self.src, SHARES / self.tag, self.mode)

    def guest_line(self) -> str:
        """Its line in the guest's list of shares."""
        return f"{self.tag} {self.dst} {self.mode},cache={self.cache}"


@dataclass(frozen=True)
class Link:
    """An Ethernet link over a UNIX socket; one end listens, the other connects."""

    name: str
    server: bool

    def netdev(self, ident: str) -> str:
        """The -netdev argument of this end."""
        end = "server=on" if self.server else "server=off,reconnect-ms=100"
        path = SOCKETS / f"{self.name}.link"
        return f"stream,id={ident},{end},addr.type=unix,addr.path={path}"


@dataclass
class Hardware:
    """What a VM is made of."""

    name: str
    index: int
    cpus: int = 1
    memory: str = "2G"
    accel: str = "tcg"
    kernel_args: Sequence[str] = ()
    shares: Sequence[Share] = ()
    # One network card for each: its cable, or none.
    links: Sequence[Link | None] = (None,)
    extra: Sequence[str] = field(default_factory=tuple)


def accel_args(accel: str) -> list[str]:
    """The accelerator; `max` is every CPU feature that it can give."""
    if accel == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi", "-cpu", "max"]


def plain(accel: str, cpus: int, memory: str, append: str) -> list[str]:
    """The part of the command line that every guest has."""
    return [
        "qemu-system-x86_64", "-nodefaults", "-no-reboot", "-display", "none",
        "-machine", "pc", *accel_args(accel), "-smp", str(cpus), "-m", memory,
        "-kernel", str(KERNEL), "-initrd", str(INITRD), "-append", append,
    ]  # fmt: skip


def share_args(tag: str, path: Path, read_only: bool) -> list[str]:
    """A directory over 9p."""
    flags = ",readonly=on" if read_only else ""
    return [
        "-fsdev",
        f"local,id={tag},path={path},security_model=none,multidevs=remap{flags}",
        "-device",
        f"virtio-9p-pci,fsdev={tag},mount_tag={tag}",
    ]


def port_args(vm: str) -> list[str]:
    """Console, script output and control, each a UNIX socket on which we listen."""
    argv = []
    for port in ("console", "out", "ctl"):
        argv += ["-chardev", f"socket,id={port},path={SOCKETS / f'{vm}.{port}'}"]
    argv += ["-serial", "chardev:console", "-device", "virtio-serial-pci"]
    for number, port in enumerate(("out", "ctl"), 1):
        argv += ["-device", f"virtserialport,chardev={port},name={port},nr={number}"]
    return argv


# After so many seconds without progress RCU complains. The kernel's own 21 are not enough for an
# emulated machine with one CPU, on which a busy loop in user space keeps a thread of the lowest
# priority (khugepaged) waiting in the middle of a critical section.
RCU_STALL_SECONDS = 120


def argv(hardware: Hardware) -> list[str]:
    """The whole command line."""
    append = " ".join(
        [
            "console=ttyS0 panic=-1 oops=panic net.ifnames=0 log_buf_len=4M",
            f"rcupdate.rcu_cpu_stall_timeout={RCU_STALL_SECONDS}",
            *hardware.kernel_args,
        ]
    )
    command = plain(hardware.accel, hardware.cpus, hardware.memory, append)
    command += ["-name", hardware.name, *port_args(hardware.name)]
    command += share_args("root", LOWER, read_only=True)
    for share in hardware.shares:
        command += share_args(share.tag, SHARES / share.tag, read_only=share.mode == "ro")
    command += ["-device", "virtio-rng-pci"]
    for number, link in enumerate(hardware.links):
        command += card_args(hardware.index, number, link)
    return [*command, *hardware.extra]


def card_args(index: int, number: int, link: Link | None) -> list[str]:
    """The network card ethN of a VM."""
    ident = f"net{number}"
    # A card without a cable has a hub to itself: it is up and can carry an rxe device.
    netdev = link.netdev(ident) if link else f"hubport,id={ident},hubid={number}"
    mac = f"52:54:00:09:{number:02x}:{index:02x}"
    # Mergeable receive buffers come from a page pool, and freeing one runs soft interrupts: rdma_rxe
    # of 7.3 frees packets under a lock that those take (a QP in error with packets queued), and the
    # VM stands still. See "Known problems" in Documentation/testing.rst.
    return [
        "-netdev", netdev,
        "-device", f"virtio-net-pci,netdev={ident},mac={mac},host_mtu={NIC_MTU},mrg_rxbuf=off",
    ]  # fmt: skip


def hub_argv(links: Sequence[Link]) -> list[str]:
    """A QEMU without a machine that joins the links of three or more VMs."""
    command = ["qemu-system-x86_64", "-nodefaults", "-display", "none", "-machine", "none"]
    for number, link in enumerate(links):
        command += ["-netdev", link.netdev(f"net{number}")]
        command += ["-netdev", f"hubport,id=port{number},hubid=0,netdev=net{number}"]
    return command
