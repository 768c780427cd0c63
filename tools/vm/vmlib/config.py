# SPDX-License-Identifier: GPL-2.0
"""Where things are: the repository, the cache, the settings of kernel.conf."""

from __future__ import annotations

import os
import re
from pathlib import Path

VM_DIR = Path(__file__).resolve().parent.parent
REPO = VM_DIR.parent.parent
BUILD = REPO / "build"


def cache_dir() -> Path:
    """The user's cache of this project; everything in it can be made again."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base).resolve() / "rdmavt-rs"


def read_conf(path: Path) -> dict[str, str]:
    """Read a file of NAME=VALUE lines; blank lines and # comments are skipped."""
    values = {}
    for line in path.read_text().splitlines():
        match = re.match(r"([A-Z_]+)=(\S*)\s*$", line)
        if match:
            values[match[1]] = match[2]
    return values


def read_packages(path: Path) -> list[str]:
    """Read a package list: one name a line, # starts a comment."""
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]
