# SPDX-License-Identifier: GPL-2.0
"""What a kernel tree or its compilers lack for building our modules, in one line."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

OLDEST = (7, 3)
LEAVE_OUT = "or leave KDIR out to build in the build root"

# Asks a program for its version; returns nothing when there is no such program.
Version = Callable[[str], str]


def program_version(program: str) -> str:
    """The first line of `program --version`, or nothing."""
    if not shutil.which(program):
        return ""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return (done.stdout.splitlines() or [""])[0]


def text_option(config: str, name: str) -> str:
    """The value of a quoted option in a kernel configuration."""
    match = re.search(rf'^{name}="(.*)"$', config, re.M)
    return match[1] if match else ""


def source_of(kdir: Path) -> Path:
    """The source directory of a kernel build directory."""
    link = kdir / "source"
    return link.resolve() if link.exists() else kdir


def release_of(kdir: Path) -> str:
    """The kernel release that the tree is for, or nothing."""
    path = kdir / "include/config/kernel.release"
    return path.read_text().strip() if path.exists() else ""


def missing(
    kdir: Path, rustc: str = "rustc", version: Version = program_version, llvm: str = ""
) -> str:
    """The first thing that is missing and its cure; nothing when all is there.

    In the order in which a person would have to put things right: the tree,
    its configuration, its preparation, the programs.
    """
    checks = (missing_tree, missing_config, missing_preparation)
    for check in checks:
        problem = check(kdir)
        if problem:
            return problem
    return missing_programs(kdir, rustc, version, llvm)


def missing_tree(kdir: Path) -> str:
    """The tree is there and is a configured kernel."""
    if not kdir.is_dir():
        return f"KDIR {kdir} does not exist; give the prepared tree of the kernel, {LEAVE_OUT}"
    if not (kdir / "Makefile").exists():
        return f"KDIR {kdir} is no kernel tree (no Makefile); give another, {LEAVE_OUT}"
    if not (kdir / ".config").exists():
        return f"KDIR {kdir} is not configured (no .config); run make olddefconfig there"
    return ""


def missing_config(kdir: Path) -> str:
    """The configuration has Rust and modules, and the series is new enough."""
    config = (kdir / ".config").read_text(errors="replace")
    release = release_of(kdir)
    match = re.match(r"(\d+)\.(\d+)", release)
    if match and (int(match[1]), int(match[2])) < OLDEST:
        return f"kernel {release} is too old; {OLDEST[0]}.{OLDEST[1]} or later is needed"
    if "\nCONFIG_RUST=y" not in "\n" + config:
        return (
            f"CONFIG_RUST is off in {kdir}/.config; take a kernel that has it on, as Debian's "
            "amd64 kernels do"
        )
    if not re.search(r"^CONFIG_INFINIBAND=[ym]$", config, re.M):
        return f"CONFIG_INFINIBAND is off in {kdir}/.config; take a kernel that has it on"
    return ""


def missing_preparation(kdir: Path) -> str:
    """What `make modules_prepare` and a build leave in the tree."""
    if not (kdir / "rust/libkernel.rmeta").exists():
        return (
            f"no Rust metadata ({kdir}/rust/libkernel.rmeta); distribution headers do not ship "
            f"it: prepare the kernel's source with its .config by make modules_prepare, {LEAVE_OUT}"
        )
    if not (kdir / "Module.symvers").exists():
        return f"no Module.symvers in {kdir}; copy it from the kernel's headers package"
    if not (source_of(kdir) / "drivers/infiniband/core").is_dir():
        return (
            f"no drivers/infiniband/core under {source_of(kdir)}; this tree is headers only: "
            f"unpack the kernel's source, {LEAVE_OUT}"
        )
    return ""


def missing_programs(kdir: Path, rustc: str, version: Version, llvm: str) -> str:
    """Compilers, in the versions that the kernel was built with."""
    config = (kdir / ".config").read_text(errors="replace")
    wanted = text_option(config, "CONFIG_RUSTC_VERSION_TEXT")
    found = version(rustc)
    if not found:
        return f"{rustc} is not installed; install {wanted or 'it'}, {LEAVE_OUT}"
    if wanted and found != wanted:
        return (
            f"the kernel was built with '{wanted}' but {rustc} is '{found}'; install that "
            f"version, {LEAVE_OUT}"
        )
    if not version("bindgen"):
        return f"bindgen is not installed; install it (Debian package bindgen), {LEAVE_OUT}"
    compiler = compiler_of(config)
    if not version(compiler):
        return f"the kernel's compiler {compiler} is not installed; install it, {LEAVE_OUT}"
    if compiler == "clang" and not llvm:
        return f"the kernel was built by clang; say LLVM=1 to make, {LEAVE_OUT}"
    return ""


def compiler_of(config: str) -> str:
    """The command of the compiler that built the kernel; a clang may be named by its maker."""
    if "\nCONFIG_CC_IS_CLANG=y" in "\n" + config:
        return "clang"
    return (text_option(config, "CONFIG_CC_VERSION_TEXT").split() or ["gcc"])[0]
