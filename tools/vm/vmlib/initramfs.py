# SPDX-License-Identifier: GPL-2.0
"""The small initramfs that a VM boots: busybox, our guest files, a few modules."""

from __future__ import annotations

import hashlib
import io
import lzma
import stat
from pathlib import Path

from . import config
from .report import Failure

# What it takes to mount the root over 9p under an overlay, and the VM's network card.
WANTED = ("9pnet_virtio", "9p", "overlay", "virtio_net")
# The commands of busybox that initramfs-init uses.
APPLETS = ("cp", "grep", "insmod", "mkdir", "mount", "sh", "sleep", "switch_root")
GUEST_FILES = config.VM_DIR / "guest"


class Cpio:
    """Writes the "newc" archive that the kernel unpacks."""

    def __init__(self) -> None:
        self.out = io.BytesIO()
        self.inode = 0

    def add(self, name: str, mode: int, data: bytes = b"") -> None:
        """Add one entry; a symlink's target is its data."""
        self.inode += 1
        raw = name.encode() + b"\0"
        fields = (self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0)
        self.out.write(b"070701" + b"".join(b"%08X" % field for field in fields) + raw)
        self._pad()
        self.out.write(data)
        self._pad()

    def directory(self, name: str) -> None:
        """Add a directory."""
        self.add(name, stat.S_IFDIR | 0o755)

    def file(self, name: str, data: bytes, mode: int = 0o755) -> None:
        """Add a regular file."""
        self.add(name, stat.S_IFREG | mode, data)

    def symlink(self, name: str, target: str) -> None:
        """Add a symbolic link."""
        self.add(name, stat.S_IFLNK | 0o777, target.encode())

    def finish(self) -> bytes:
        """The whole archive."""
        self.add("TRAILER!!!", 0)
        return self.out.getvalue()

    def _pad(self) -> None:
        self.out.write(b"\0" * (-self.out.tell() % 4))


def parse_deps(text: str) -> dict[str, tuple[str, list[str]]]:
    """modules.dep as name -> (path, paths it needs in reverse loading order)."""
    table = {}
    for line in text.splitlines():
        path, _, needs = line.partition(":")
        name = Path(path).name.split(".ko")[0].replace("-", "_")
        table[name] = (path, needs.split())
    return table


def loading_order(deps: dict[str, tuple[str, list[str]]], builtin: set[str]) -> list[str]:
    """The paths of WANTED with what they need, each after its own needs."""
    order: list[str] = []
    for name in WANTED:
        if name in builtin:
            continue
        if name not in deps:
            raise Failure(f"the kernel has no module {name}, which a VM needs to boot")
        path, needs = deps[name]
        for item in [*reversed(needs), path]:
            if item not in order:
                order.append(item)
    return order


def read_module(path: Path) -> bytes:
    """A module's bytes, unpacked."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".ko":
        return data
    raise Failure(f"{path}: modules compressed as {path.suffix} are not supported, only .xz")


def collect(modules: Path, busybox: Path) -> bytes:
    """Make the archive for the kernel whose modules are in `modules`."""
    builtin = {
        Path(line).name.split(".ko")[0].replace("-", "_")
        for line in (modules / "modules.builtin").read_text().splitlines()
    }
    order = loading_order(parse_deps((modules / "modules.dep").read_text()), builtin)
    cpio = Cpio()
    for name in ("bin", "dev", "proc", "sys", "modules", "guest", "lower", "rw", "new"):
        cpio.directory(name)
    cpio.file("bin/busybox", busybox.read_bytes())
    for name in APPLETS:
        cpio.symlink(f"bin/{name}", "busybox")
    cpio.file("init", (GUEST_FILES / "initramfs-init").read_bytes())
    for file in sorted(GUEST_FILES.iterdir()):
        if file.name != "initramfs-init":
            cpio.file(f"guest/{file.name}", file.read_bytes())
    for number, path in enumerate(order):
        name = Path(path).name.split(".ko")[0]
        cpio.file(f"modules/{number:02}-{name}.ko", read_module(modules / path), 0o644)
    return cpio.finish()


def ensure(modules: Path, busybox: Path) -> Path:
    """The initramfs for these modules, cached under a hash of what goes into it."""
    digest = hashlib.sha256(f"{modules}\n{(modules / 'modules.dep').stat().st_mtime_ns}".encode())
    for path in [Path(__file__), *sorted(GUEST_FILES.iterdir())]:
        digest.update(path.name.encode() + path.read_bytes())
    # One for each kernel stays: VMs of both may be about to start.
    name = f"{modules.name}-{digest.hexdigest()[:12]}.cpio"
    place = config.cache_dir() / "initramfs" / name
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        for old in place.parent.glob(f"{modules.name}-*.cpio"):
            old.unlink()
        new = place.with_suffix(".new")
        new.write_bytes(collect(modules, busybox))
        new.rename(place)
    return place
