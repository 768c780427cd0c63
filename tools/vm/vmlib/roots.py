# SPDX-License-Identifier: GPL-2.0
"""The two root file systems: `build` (compilers, kernel tree, QEMU) and `vm`.

Each is made once by mmdebstrap and cached under a name that has a hash of its
inputs in it, so that a change of a package list makes a new one. A root that
has its info.json is complete; anything else is left over and made again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import config, enter, kernels, mirrors
from .report import Failure, Ticker, run_logged, say

# Bytes that a root needs while it is made, and planned seconds, for messages.
NEEDED_BYTES = {"build": 8 << 30, "vm": 2 << 30}
PLANNED = {"build": 110, "prepare": 90, "vm": 40}


@dataclass(frozen=True)
class Root:
    """A finished root; `info` tells about the build root's kernel."""

    kind: str
    folder: Path
    info: dict[str, str]

    @property
    def tree(self) -> Path:
        """The directory to chroot into."""
        return self.folder / "tree"

    @property
    def release(self) -> str:
        """The kernel release of a build root."""
        return self.info["release"]

    @property
    def modules(self) -> Path:
        """The stock modules of a build root's kernel."""
        return self.tree / "usr/lib/modules" / self.release

    @property
    def kernel_image(self) -> Path:
        """The stock vmlinuz of a build root."""
        return self.tree / f"boot/vmlinuz-{self.release}"

    def variables(self) -> dict[str, str]:
        """What commands inside the build root find in their environment."""
        if self.kind != "build":
            return {}
        return {
            "KDIR": "/usr/src/kbuild",
            "KSRC": f"/usr/src/linux-source-{self.info['series']}",
            "KCC": self.info["cc"],
            "KRELEASE": self.release,
        }


def kernel_conf() -> dict[str, str]:
    """The settings of kernel.conf."""
    return config.read_conf(config.VM_DIR / "kernel.conf")


def key(kind: str) -> str:
    """A hash of everything a root is made from, and of who can use it."""
    names = ["kernel.conf", f"{kind}.packages", *(["prepare-build"] if kind == "build" else [])]
    digest = hashlib.sha256(f"format 1 root {enter.is_root()}\n".encode())
    for name in names:
        digest.update((config.VM_DIR / name).read_bytes())
    return digest.hexdigest()[:12]


def folder(kind: str) -> Path:
    """Where the root of this kind is, or will be."""
    return config.cache_dir() / "roots" / f"{kind}-{key(kind)}"


def find(kind: str) -> Root | None:
    """The finished root, if there is one."""
    place = folder(kind)
    try:
        info = json.loads((place / "info.json").read_text())
    except FileNotFoundError:
        return None
    return Root(kind, place, info)


def ensure(kind: str) -> Root:
    """The root of this kind, made now if it is not there."""
    if not enter.is_root():
        enter.check_user_namespaces()
    root = find(kind)
    if root:
        return root
    with lock():
        return find(kind) or make(kind)


@contextmanager
def lock() -> Iterator[None]:
    """One maker at a time; others wait and say so."""
    path = config.cache_dir() / "roots"
    path.mkdir(parents=True, exist_ok=True)
    with (path / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is making a root file system or a kernel; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make(kind: str) -> Root:
    """Make a root from nothing."""
    check_host(kind)
    place = folder(kind)
    log = config.BUILD / f"root-{kind}.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("")
    new = place.with_suffix(".new")
    remove(new)
    new.mkdir(parents=True)
    if kind == "build":
        info = make_build(new, log)
    else:
        conf = kernel_conf()
        bootstrap("vm", new / "tree", conf, [], log)
        info = {}
    (new / "info.json").write_text(json.dumps(info, indent=1) + "\n")
    new.rename(place)
    say(f"{kind} root is ready: {place}")
    return Root(kind, place, info)


def make_build(new: Path, log: Path) -> dict[str, str]:
    """The build root: packages, then the kernel tree prepared for modules."""
    conf = kernel_conf()
    pocket, wanted = conf["KERNEL_POCKET"], conf["KERNEL_SERIES"]
    main = mirrors.from_host().main
    say(f"build root: asking {main} for kernels of {pocket}")
    kernel = kernels.pick(kernels.ask_archive(main, pocket, log), wanted)
    if kernel.series != wanted:
        say(
            f"NOTE: the archive has no kernel {wanted} any more, taking the next later series "
            f"{kernel.series}; what does not build on it will say so (tools/vm/kernel.conf)"
        )
    say(f"build root: kernel {kernel.release}, version {kernel.version}")
    bootstrap("build", new / "tree", conf, kernel.packages(pocket), log)

    script = Path("/tmp/prepare-build")
    argv = enter.enter_argv(
        new / "tree",
        ["sh", str(script), kernel.series, kernel.release],
        binds=[enter.Bind(config.VM_DIR / "prepare-build", script, "ro")],
        writable=True,
    )
    run_step("prepare the kernel tree", argv, log, PLANNED["prepare"], env=enter.environment({}))
    cc = (new / "tree/usr/src/kbuild/cc.name").read_text().strip()
    return {
        "series": kernel.series,
        "release": kernel.release,
        "version": kernel.version,
        "cc": cc,
    }


def bootstrap(kind: str, tree: Path, conf: dict[str, str], extra: list[str], log: Path) -> None:
    """Run mmdebstrap in namespaces of its own."""
    suite = conf["DEBIAN_SUITE"]
    packages = config.read_packages(config.VM_DIR / f"{kind}.packages") + extra
    argv = [*enter.namespace_argv(), "mmdebstrap", "--mode=root", "--variant=apt"]
    for option in [*mirrors.host_options(), 'APT::Sandbox::User "root"']:
        argv.append(f"--aptopt={option}")
    # No documentation and no initramfs: nobody reads the one or boots the other.
    for pattern in (
        "path-exclude=/usr/share/doc/*",
        "path-exclude=/usr/share/man/*",
        "path-exclude=/usr/share/locale/*",
    ):
        argv.append(f"--dpkgopt={pattern}")
    argv += [
        '--essential-hook=mkdir -p "$1/etc/initramfs-tools" && '
        'echo update_initramfs=no >"$1/etc/initramfs-tools/update-initramfs.conf"',
        f"--include={','.join(packages)}",
        suite,
        str(tree),
        *mirrors.source_lines(mirrors.from_host(), suite, conf["KERNEL_POCKET"]),
    ]
    env = {**enter.host_environment(), "INITRD": "No", "TMPDIR": "/tmp"}
    run_step(f"make the {kind} root", argv, log, PLANNED[kind], env=env)


def run_step(what: str, argv: list[str], log: Path, planned: int, env: dict[str, str]) -> None:
    """Run one long step with progress; on failure name the log and the last error."""
    say(f"{what}: about {planned} s, log {log}")
    ticker = Ticker(what, planned)
    status = run_logged(argv, log, ticker, env=env)
    if status != 0:
        raise Failure(f"{what} failed ({first_error(log)}); full log: {log}")
    say(f"{what}: done in {ticker.seconds():.0f} s")


def first_error(log: Path) -> str:
    """The line of a log that most likely says what went wrong."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    if any("No space left on device" in line for line in lines):
        return "the disk is full"
    for prefix in ("prepare-build:", "prepare-debug:", "enter:", "E: ", "error:"):
        for line in lines:
            if line.startswith(prefix):
                return line
    for line in lines:
        if ": error: " in line or line.startswith("error["):
            return line
    return next((line for line in reversed(lines) if line), "no output")


def check_host(kind: str) -> None:
    """Everything that must be there before the long work starts."""
    for tool in ("mmdebstrap", "unshare", "setpriv", "apt-get"):
        if not shutil.which(tool, path=enter.host_environment()["PATH"]):
            raise Failure(f"{tool} is missing; run tools/setup")
    if not mirrors.KEYRING.exists():
        raise Failure(f"{mirrors.KEYRING} is missing; run tools/setup")
    check_space(f"{kind} root", NEEDED_BYTES[kind])


def check_space(what: str, needed: int) -> None:
    """Whether the cache has room for what is about to be made."""
    cache = config.cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(cache).free
    if free < needed:
        raise Failure(
            f"{cache} has {free >> 20} MiB free, the {what} needs {needed >> 20}; "
            "make room, or set XDG_CACHE_HOME to a larger disk"
        )


def remove(path: Path) -> None:
    """Remove a root; a normal user's holds files of sub-ids, so go in for it."""
    if not path.exists():
        return
    argv = [*enter.namespace_argv(), "rm", "-rf", "--one-file-system", str(path)]
    done = subprocess.run(argv, env=enter.host_environment(), capture_output=True, text=True)
    if done.returncode != 0 or path.exists():
        raise Failure(f"cannot remove {path}: {done.stderr.strip() or 'it is still there'}")


def all_folders() -> list[Path]:
    """Every root in the cache, of whatever key, finished or not."""
    return sorted((config.cache_dir() / "roots").glob("*-*/"))


def owner_is_me(path: Path) -> bool:
    """Whether this user made the root and may remove it."""
    return path.stat().st_uid == os.geteuid()
