# SPDX-License-Identifier: GPL-2.0
"""Which kernel of the archive to take, and asking the archive what it has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import apt, mirrors
from .report import Failure

FLAVOUR = apt.ARCHITECTURE


@dataclass(frozen=True)
class Kernel:
    """A kernel release for which image, headers and source are to be had."""

    series: str
    release: str
    version: str

    def packages(self, pocket: str) -> list[str]:
        """Its binary packages, each pinned to the pocket it comes from."""
        names = (
            f"linux-image-{self.release}",
            f"linux-headers-{self.release}",
            f"linux-source-{self.series}",
        )
        return [f"{name}/{pocket}" for name in names]


def series_key(series: str) -> tuple[int, ...]:
    """Sort key of a series such as 7.3 or 7.10."""
    return tuple(int(part) for part in series.split("."))


def version_key(version: str) -> list[tuple[int, int | str]]:
    """Sort key good enough for the versions of one source package."""
    parts = re.findall(r"\d+|[a-z~+]+", version)
    return [(1, int(part)) if part.isdigit() else (0, part) for part in parts]


def pick(packages: Iterable[tuple[str, str]], wanted: str) -> Kernel:
    """The newest complete kernel of the wanted series, else of the next later.

    Complete: the image, the headers and the source have the same version, for
    modules are built from the one and loaded into the other.
    """
    by_name: dict[str, set[str]] = {}
    for name, version in packages:
        by_name.setdefault(name, set()).add(version)

    found: dict[str, list[Kernel]] = {}
    for name, versions in by_name.items():
        match = re.match(rf"linux-image-((\d+\.\d+)[.\d]*[^-]*-{FLAVOUR})$", name)
        if not match:
            continue
        release, series = match[1], match[2]
        headers = by_name.get(f"linux-headers-{release}", set())
        source = by_name.get(f"linux-source-{series}", set())
        for version in versions & headers & source:
            found.setdefault(series, []).append(Kernel(series, release, version))

    later = sorted((s for s in found if series_key(s) >= series_key(wanted)), key=series_key)
    if not later:
        raise Failure(
            f"the archive has no kernel {wanted} or later with image, headers and source of one "
            "version; try another DEBIAN_MIRROR, or set KERNEL_SERIES in tools/vm/kernel.conf"
        )
    return max(found[later[0]], key=lambda kernel: version_key(kernel.version))


def parse_stanzas(text: str) -> list[tuple[str, str]]:
    """Name and version of each package in a Packages file or apt-cache dump."""
    pairs = []
    for stanza in text.split("\n\n"):
        name = re.search(r"^Package: (\S+)", stanza, re.M)
        version = re.search(r"^Version: (\S+)", stanza, re.M)
        if name and version:
            pairs.append((name[1], version[1]))
    return pairs


def ask_archive(mirror: str, pocket: str, log: Path) -> list[tuple[str, str]]:
    """The packages of `pocket`."""
    line = f"deb [signed-by={mirrors.KEYRING}] {mirror} {pocket} main"
    with apt.reader([line], log) as archive:
        archive.update(f"{pocket} from {mirror}")
        return parse_stanzas(archive.run("apt-cache", "dumpavail"))
