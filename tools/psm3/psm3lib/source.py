# SPDX-License-Identifier: GPL-2.0
"""The source of libfabric: the distribution's tarball, fetched once, never in git."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from vmlib import apt, config, mirrors, roots
from vmlib.report import Failure, say

# The version that the distribution ships and the tests are written for. Another
# one is another client: change both lines, and look through the tests.
VERSION = "2.1.0"
SHA256 = "1a66369772d5bb151737214af1c478993e969cf298e8f9ed369e7a2ab8d8c6df"


def folder() -> Path:
    """Where fetched files are kept."""
    return config.cache_dir() / "psm3" / "source"


def cached() -> Path | None:
    """The tarball that has been fetched before, if it is whole."""
    tarballs = sorted(folder().glob(f"libfabric_{VERSION}.orig.tar.*"))
    if not tarballs:
        return None
    if digest(tarballs[0]) != SHA256:
        say(f"{tarballs[0]} is damaged; fetching it again")
        return None
    return tarballs[0]


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def ensure() -> Path:
    """The tarball, fetched now if it is not there."""
    return cached() or fetch()


def fetch() -> Path:
    """Get the tarball."""
    main, suite = mirrors.from_host().main, roots.kernel_conf()["DEBIAN_SUITE"]
    log = config.BUILD / "psm3-source.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("")
    place = folder()
    place.mkdir(parents=True, exist_ok=True)
    lines = [f"deb-src [signed-by={mirrors.KEYRING}] {main} {suite} main"]
    say(f"libfabric {VERSION}: fetching the source of {suite} from {main}")
    with (
        apt.reader(lines, log) as archive,
        tempfile.TemporaryDirectory(dir=place, prefix="new-") as name,
    ):
        new = Path(name)
        archive.update(f"the sources of {suite} from {main}")
        archive.run("apt-get", "source", "--download-only", "--tar-only", "libfabric", cwd=new)
        check(new, suite, main)
        for file in new.iterdir():
            file.rename(place / file.name)
    tarball = cached()
    if not tarball:
        raise Failure(f"{place} lacks libfabric's tarball; apt's words are in {log}")
    return tarball


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
