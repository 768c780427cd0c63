# SPDX-License-Identifier: GPL-2.0
"""libfabric built inside the build root against our header, cached by its inputs."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vmlib import config, enter, roots
from vmlib.report import Failure, Ticker, run_logged, say

from . import source

HEADER = config.REPO / "include/uapi/rdma/rv_user_ioctls.h"
INSIDE = Path(__file__).resolve().parent.parent / "build-inside"

# Where each variant is, in the VMs and in the build root: its --prefix.
PREFIX = {"release": Path("/opt/psm3"), "faults": Path("/opt/psm3-faults")}
# Seconds on two cores, for messages.
PLANNED = {"release": 70, "faults": 50}


def key() -> str:
    """A hash of everything that the result depends on."""
    inputs = hashlib.sha256(f"format 1 {source.SHA256} {roots.key('build')}\n".encode())
    for path in (HEADER, INSIDE):
        inputs.update(path.read_bytes())
    return inputs.hexdigest()[:12]


def folder(variant: str) -> Path:
    """Where the variant is on this host, or will be."""
    return config.cache_dir() / "psm3" / f"{variant}-{key()}"


def ensure(variant: str) -> Path:
    """The directory to be seen at PREFIX[variant], built now if it is not there."""
    place = folder(variant)
    if not place.exists():
        with lock():
            if not place.exists():
                build(variant, place)
    return place


@contextmanager
def lock() -> Iterator[None]:
    """One builder at a time; others wait and say so."""
    path = config.cache_dir() / "psm3"
    path.mkdir(parents=True, exist_ok=True)
    with (path / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is building libfabric; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(variant: str, place: Path) -> None:
    """Build in the root's own /tmp, which goes away with the command."""
    root = roots.ensure("build")
    tarball = source.ensure()
    new = place.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    log = config.BUILD / f"psm3-{variant}.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("")
    what = f"build libfabric {source.VERSION} ({variant})"
    say(f"{what}: about {PLANNED[variant]} s, log {log}")
    ticker = Ticker(what, PLANNED[variant])
    status = run_logged(argv(root.tree, tarball, new, variant), log, ticker, enter.environment({}))
    if status != 0:
        raise Failure(f"{what} failed ({first_error(log)}); full log: {log}")
    new.rename(place)
    say(f"{what}: done in {ticker.seconds():.0f} s, {place}")


def argv(tree: Path, tarball: Path, new: Path, variant: str) -> list[str]:
    """The command that builds, with what it sees of this host."""
    seen = Path("/tmp/psm3")
    inside = seen / INSIDE.name
    include = seen / "include"
    binds = [
        enter.Bind(INSIDE, inside, "ro"),
        enter.Bind(tarball, seen / tarball.name, "ro"),
        enter.Bind(HEADER.parent, include / "rdma", "ro"),
        enter.Bind(new, PREFIX[variant]),
    ]
    command = [inside, seen / "work", seen / tarball.name, include, PREFIX[variant], variant]
    return enter.enter_argv(tree, [str(word) for word in command], binds=binds)


def first_error(log: Path) -> str:
    """The line of a log that most likely says what went wrong."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    for word in ("No space left on device", "configure: error:", "error:"):
        for line in lines:
            if word in line:
                return line
    return next((line for line in reversed(lines) if line), "no output")


def collect_garbage() -> None:
    """Remove the builds that the current inputs do not name."""
    kept = {source.folder(), *(folder(variant) for variant in PREFIX)}
    with lock():
        for path in sorted((config.cache_dir() / "psm3").glob("*/")):
            if path not in kept:
                say(f"removing {path}")
                shutil.rmtree(path)
