# SPDX-License-Identifier: GPL-2.0
"""KVM or emulation: decided by booting a guest, for a /dev/kvm proves nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from . import config, enter, qemu
from .report import say

PROBE_SECONDS = 15


def choose(wanted: str, tree: Path, image: Path, initrd: Path) -> str:
    """The accelerator to use: `wanted`, or for "auto" what this host can do."""
    if wanted != "auto":
        return wanted
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    verdict = config.cache_dir() / "kvm" / boot_id()
    if not verdict.exists():
        works = probe(tree, image, initrd)
        say(f"KVM: a probe guest {'booted, using KVM' if works else 'did not boot, using TCG'}")
        verdict.parent.mkdir(parents=True, exist_ok=True)
        for old in verdict.parent.iterdir():
            old.unlink()
        verdict.write_text("kvm" if works else "tcg")
    return verdict.read_text()


def boot_id() -> str:
    """A name for this boot of the host: its abilities do not change within one."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def probe(tree: Path, image: Path, initrd: Path) -> bool:
    """Whether a guest boots under KVM as far as our initramfs."""
    append = "console=ttyS0 panic=-1 vm.probe"
    command = [*qemu.plain("kvm", 1, "512M", append), "-serial", "stdio", "-monitor", "none"]
    binds = [enter.Bind(image, qemu.KERNEL, "ro"), enter.Bind(initrd, qemu.INITRD, "ro")]
    try:
        done = subprocess.run(
            enter.enter_argv(tree, command, binds=binds),
            env=enter.host_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return b"vm: probe ok" in done.stdout
