# SPDX-License-Identifier: GPL-2.0
"""Package mirrors and download options, taken from the host's own apt set-up."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .report import Failure

SOURCES = Path("/etc/apt")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

# Host apt options that say how to reach a mirror rather than what to install.
# Those under Acquire::http/https/ftp are proxies, time-outs and certificates.
OPTION = re.compile(
    r"Acquire::(?:(?:https?|ftp)::\S+|Check-Valid-Until|Check-Date|Retries|ForceIPv[46]"
    r"|Max-ValidTime\S*|Queue-Mode|Languages::)$"
)


@dataclass(frozen=True)
class Source:
    """One mirror with one suite, as an apt source states it."""

    uri: str
    suite: str
    components: tuple[str, ...]


@dataclass(frozen=True)
class Mirrors:
    """Where the Debian archive and its security archive are."""

    main: str
    security: str


def parse_deb822(text: str) -> Iterator[Source]:
    """The sources of a deb822 (.sources) file that are enabled and binary."""
    for stanza in re.split(r"\n\s*\n", text):
        fields: dict[str, str] = {}
        name = ""
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            if line[:1].isspace() and name:
                fields[name] += " " + line.strip()
            elif ":" in line:
                name, value = line.split(":", 1)
                name = name.strip().lower()
                fields[name] = value.strip()
        if "deb" not in fields.get("types", "").split():
            continue
        if fields.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        components = tuple(fields.get("components", "").split())
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                yield Source(uri, suite, components)


def parse_one_line(text: str) -> Iterator[Source]:
    """The binary sources of a one-line (.list) file."""
    for line in text.splitlines():
        line = re.sub(r"\[[^]]*\]", " ", line.split("#")[0])
        words = line.split()
        if len(words) >= 3 and words[0] == "deb":
            yield Source(words[1], words[2], tuple(words[3:]))


def host_sources(folder: Path = SOURCES) -> list[Source]:
    """All sources of the host, in the order in which apt reads them."""
    sources: list[Source] = []
    for path in [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]:
        if not path.is_file():
            continue
        if path.suffix == ".sources":
            sources += parse_deb822(path.read_text(errors="replace"))
        elif path.suffix == ".list":
            sources += parse_one_line(path.read_text(errors="replace"))
    return sources


def resolve_mirror_list(uri: str) -> str:
    """Replace mirror+file:/some/list (cloud images) by the list's first mirror."""
    if not uri.startswith(("mirror+file:", "mirror:file:")):
        return uri
    path = Path("/" + uri.split(":", 1)[1].removeprefix("file:").lstrip("/"))
    for line in path.read_text().splitlines() if path.exists() else []:
        words = line.split("#")[0].split()
        if words:
            return words[0]
    raise Failure(
        f"{path}, which the host's apt takes its mirror from, is missing or empty; "
        "set DEBIAN_MIRROR"
    )


def find_mirrors(sources: Sequence[Source], environ: dict[str, str]) -> Mirrors:
    """The two mirrors: from the environment, else from the host's sources.

    A Debian archive is known by its path (.../debian, .../debian-security),
    which every mirror keeps; a host that is no Debian has none of these.
    """
    main = environ.get("DEBIAN_MIRROR", "")
    security = environ.get("DEBIAN_SECURITY_MIRROR", "")
    for source in sources:
        uri = resolve_mirror_list(source.uri).rstrip("/")
        path = uri.rsplit("/", 1)[-1]
        if not security and (path == "debian-security" or "/updates" in source.suite):
            security = uri
        elif not main and path == "debian":
            main = uri
    if not main:
        raise Failure("the host's apt sources name no Debian mirror; set DEBIAN_MIRROR to one")
    main = main.rstrip("/")
    return Mirrors(main, security.rstrip("/") or re.sub(r"/debian$", "/debian-security", main))


def source_lines(mirrors: Mirrors, suite: str, pocket: str) -> list[str]:
    """The sources of a root, as one-line entries."""
    option = f"[signed-by={KEYRING}]"
    return [
        f"deb {option} {mirrors.main} {suite} main",
        f"deb {option} {mirrors.main} {suite}-updates main",
        f"deb {option} {mirrors.main} {pocket} main",
        f"deb {option} {mirrors.security} {suite}-security main",
    ]


def parse_options(dump: str) -> list[str]:
    """The lines of `apt-config dump` that are worth passing on, as NAME "VALUE"."""
    options = []
    for line in dump.splitlines():
        match = re.match(r'(\S+) "(.*)";$', line)
        if match and match[2] and OPTION.match(match[1]):
            options.append(f'{match[1]} "{match[2]}"')
    return options


def host_options() -> list[str]:
    """How the host's apt reaches its mirrors: proxies, time checks and the like."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False)
    return parse_options(dump.stdout)


def from_host() -> Mirrors:
    """The mirrors that this host is set up with."""
    return find_mirrors(host_sources(), dict(os.environ))
