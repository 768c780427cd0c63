# SPDX-License-Identifier: GPL-2.0
"""The source of libfabric: the distribution's tarball, fetched once, never in git."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from vmlib import apt, config, mirrors, roots
from vmlib.report import Failure, say

# The version that the distribution ships and the tests are written for. Another
# one is another client: change both lines, and look through the tests.
VERSION = "2.1.0"
SHA256 = "1a66369772d5bb151737214af1c478993e969cf298e8f9ed369e7a2ab8d8c6df"


@dataclass(frozen=True)
class Source:
    """The files that a build starts from."""

    tarball: Path
    libtool: Path


def folder() -> Path:
    """Where fetched files are kept."""
    return config.cache_dir() / "psm3" / "source"


def cached() -> Source | None:
    """What has been fetched before, if it is whole."""
    tarballs = sorted(folder().glob(f"libfabric_{VERSION}.orig.tar.*"))
    packages = sorted(folder().glob("libtool_*.deb"))
    if not tarballs or not packages:
        return None
    if digest(tarballs[0]) != SHA256:
        say(f"{tarballs[0]} is damaged; fetching it again")
        return None
    return Source(tarballs[0], packages[0])


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def ensure() -> Source:
    """The source, fetched now if it is not there."""
    return cached() or fetch()


def fetch() -> Source:
    """Get the tarball, and libtool, which generating its configure scripts takes."""
    main, suite = mirrors.from_host().main, roots.kernel_conf()["DEBIAN_SUITE"]
    log = config.BUILD / "psm3-source.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("")
    place = folder()
    place.mkdir(parents=True, exist_ok=True)
    archive_line = f"[signed-by={mirrors.KEYRING}] {main} {suite} main"
    lines = [f"{kind} {archive_line}" for kind in ("deb", "deb-src")]
    say(f"libfabric {VERSION}: fetching the source of {suite} from {main}")
    with (
        apt.reader(lines, log) as archive,
        tempfile.TemporaryDirectory(dir=place, prefix="new-") as name,
    ):
        new = Path(name)
        archive.update(f"the sources of {suite} from {main}")
        archive.run("apt-get", "source", "--download-only", "--tar-only", "libfabric", cwd=new)
        archive.run("apt-get", "download", "libtool", cwd=new)
        check(new, suite, main)
        for file in new.iterdir():
            file.rename(place / file.name)
    source = cached()
    if not source:
        raise Failure(f"{place} lacks libfabric's tarball or libtool; apt's words are in {log}")
    return source


def check(new: Path, suite: str, main: str) -> None:
    """Whether what came is what we know."""
    tarballs = sorted(new.glob("libfabric_*.orig.tar.*"))
    if not tarballs:
        raise Failure(f"{suite} at {main} has no source of libfabric")
    if tarballs[0].name.split("_")[1].split(".orig")[0] != VERSION or digest(tarballs[0]) != SHA256:
        raise Failure(
            f"{suite} at {main} has {tarballs[0].name}, which is not the libfabric {VERSION} that "
            "tools/psm3/psm3lib/source.py names"
        )
