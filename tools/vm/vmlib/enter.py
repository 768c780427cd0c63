# SPDX-License-Identifier: GPL-2.0
"""Commands inside a root: own mount and PID namespace, then chroot.

As root that is all. A normal user gets a user namespace in which root is the
user and the other ids are the user's sub-ids; root's files are then the
user's own, on both sides. Everything that a command mounts or starts lives
and dies with its namespaces: mounts never reach the host's mount table, and
killing the first process kills all.
"""

from __future__ import annotations

import getpass
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import config
from .report import Failure

ENTER_SCRIPT = config.VM_DIR / "enter-root.sh"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"

# What a command inside inherits from outside; the rest is set in environment().
PASSED = (
    "TERM", "CI", "V", "SOURCE_DATE_EPOCH", "COLUMNS", "RUST_BACKTRACE",
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
)  # fmt: skip


@dataclass(frozen=True)
class Bind:
    """One directory or file of the host, seen at `dst` inside the root."""

    src: Path
    dst: Path
    mode: str = "rw"


def host_environment() -> dict[str, str]:
    """The environment of host commands that need the sbin directories."""
    return {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{PATH}", "LC_ALL": "C.UTF-8"}


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command inside a root: little, and the same everywhere."""
    cache = config.cache_dir()
    env = {name: os.environ[name] for name in PASSED if name in os.environ}
    env.update(
        PATH=PATH,
        HOME="/tmp",
        LC_ALL="C.UTF-8",
        SSL_CERT_FILE=CA_BUNDLE,
        CARGO_HOME=str(cache / "cargo"),
        CARGO_TARGET_DIR=str(config.BUILD / "cargo"),
        REPO=str(config.REPO),
    )
    env.update(extra)
    return env


def is_root() -> bool:
    """Whether this process is the real root or at least its namespace's."""
    return os.geteuid() == 0


def has_sub_ids(table: str, user: str, uid: int) -> bool:
    """Whether /etc/sub[ug]id text gives the user a range of 65536 ids or more."""
    for line in table.splitlines():
        match = re.fullmatch(r"([^:]+):\d+:(\d+)", line.strip())
        if match and match[1] in (user, str(uid)) and int(match[2]) >= 65536:
            return True
    return False


def check_user_namespaces() -> None:
    """A normal user needs sub-ids, newuidmap and user namespaces; say which lacks."""
    user = getpass.getuser()
    for name in ("/etc/subuid", "/etc/subgid"):
        table = Path(name).read_text() if Path(name).exists() else ""
        if not has_sub_ids(table, user, os.getuid()):
            raise Failure(
                f"{name} gives user {user} no range of 65536 ids; run: sudo usermod "
                f"--add-subuids 100000-165535 --add-subgids 100000-165535 {user}"
            )
    if not shutil.which("newuidmap", path=host_environment()["PATH"]):
        raise Failure("newuidmap is missing; run tools/setup, or: sudo apt install uidmap")
    probe = subprocess.run(
        [*namespace_argv(), "true"], env=host_environment(), capture_output=True, text=True
    )
    if probe.returncode != 0:
        reason = (probe.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Failure(
            f"unprivileged user namespaces do not work here ({reason}); run as root, or: sudo "
            "sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000 "
            "(on Ubuntu also kernel.apparmor_restrict_unprivileged_userns=0)"
        )


def namespace_argv() -> list[str]:
    """The command prefix that makes the namespaces; all in them dies with us.

    setpriv ties the outer process to our life, --kill-child ties the inner
    ones to the outer process: not even SIGKILL leaves something behind.
    """
    user = [] if is_root() else ["--user", "--map-root-user", "--map-auto"]
    return [
        "setpriv", "--pdeathsig", "SIGKILL",
        "unshare", *user, "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--",
    ]  # fmt: skip


def standard_binds() -> list[Bind]:
    """What every command inside gets: repository, cache, and the host's network names."""
    cache = config.cache_dir()
    (cache / "cargo").mkdir(parents=True, exist_ok=True)
    config.BUILD.mkdir(exist_ok=True)
    binds = [Bind(config.REPO, config.REPO), Bind(cache / "cargo", cache / "cargo")]
    for name in ("/etc/resolv.conf", "/etc/hosts", CA_BUNDLE):
        if Path(name).exists():
            binds.append(Bind(Path(name), Path(name), "ro"))
    return binds


def enter_argv(
    tree: Path,
    command: Sequence[str],
    *,
    binds: Sequence[Bind],
    writable: bool = False,
    cwd: Path | None = None,
) -> list[str]:
    """The full argument vector that runs `command` inside the root `tree`."""
    argv = [*namespace_argv(), "sh", str(ENTER_SCRIPT), "--root", str(tree)]
    if writable:
        argv.append("--writable")
    for bind in binds:
        argv += ["--bind", bind.mode, str(bind.src), str(bind.dst)]
    return [*argv, "--chdir", str(cwd or Path("/")), "--", *command]
