# SPDX-License-Identifier: GPL-2.0
"""Building what runs in the VMs: the modules and the tools."""

from __future__ import annotations

import os
from pathlib import Path

from vmlib import config, roots
from vmlib.report import Failure, Ticker, run_logged

TOOLS = ("rv-perf", "rv-bench", "rv-plot")
RELEASE = config.BUILD / "cargo/release"


def build(folder: Path, tools: tuple[str, ...]) -> None:
    """Build the modules and some of the tools, with the log in `folder`."""
    log = folder / "build.log"
    log.unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    make = ["make", "--no-print-directory", "modules"]
    packages = [word for tool in tools for word in ("--package", tool)]
    cargo = ["tools/vm/enter", "--", "cargo", "build", "--release", "--locked"]
    cargo += ["--manifest-path", "tools/Cargo.toml", *packages]
    for what, command in (("the modules", make), (" and ".join(tools), cargo)):
        ticker = Ticker(f"building {what}")
        code = run_logged(command, log, ticker, env=environment, cwd=config.REPO)
        if code:
            raise Failure(f"building {what} failed, exit code {code}; see {log}")


def source_tarball() -> Path:
    """The source of the kernel, a large file that every build root has."""
    folder = roots.ensure("build").tree / "usr/src"
    found = sorted(folder.glob("linux-source-*.tar.xz"))
    if not found:
        raise Failure(f"no linux-source-*.tar.xz in {folder}")
    return found[-1]
