# SPDX-License-Identifier: GPL-2.0
"""The debug kernel: built once from the build root's kernel source, and cached.

The name in the cache has a hash of all it is made from in it: the version of the
source, those of the compilers, the configuration. One that has its info.json is
complete; anything else is left over and made again.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from . import config, enter, kconfig, kernels, roots
from .report import Failure, say

CONFIG = config.VM_DIR / "debug.config"
SCRIPT = config.VM_DIR / "prepare-debug"
# Where commands in the build root see the kernel's tree: paths in it are absolute.
TREE = Path("/usr/src/kbuild-debug")
COMPILERS = ("bindgen", "clang-19", "lld-19", "rustc")

# How many times longer than the stock kernel it may take, for the runner's bounds.
SLOWNESS = 4
# Patience, for it is slow and its hosts are. No fifth level of page tables: KASAN asks whether
# there is one, and 7.3.4 does not know while it identifies the first CPU; an interrupt then makes
# it report every access.
KERNEL_ARGS = (
    "no5lvl",
    "watchdog_thresh=60",
    "sysctl.kernel.hung_task_timeout_secs=480",
    "rcupdate.rcu_cpu_stall_timeout=300",
)

NEEDED_BYTES = 4 << 30
PLANNED = {"configure": 20, "build": 720}


@dataclass(frozen=True)
class DebugKernel:
    """A finished debug kernel."""

    folder: Path
    release: str

    @property
    def tree(self) -> Path:
        """The tree that modules are built against."""
        return self.folder / "tree"

    @property
    def kernel_image(self) -> Path:
        """The image that a VM boots."""
        return self.tree / "arch/x86/boot/bzImage"

    @property
    def modules(self) -> Path:
        """The kernel's own modules, a directory named after the release."""
        return self.tree / "install/lib/modules" / self.release

    def bind(self, mode: str = "ro") -> enter.Bind:
        """How commands in the build root get to see the tree."""
        return enter.Bind(self.tree, TREE, mode)

    def variables(self, build: roots.Root) -> dict[str, str]:
        """What commands in the build root find in their environment instead of the stock kernel."""
        return {
            "KDIR": str(TREE),
            "KSRC": build.variables()["KSRC"],
            "KRELEASE": self.release,
            "LLVM": "1",
        }


def compilers(status: str) -> list[str]:
    """The compilers and their versions out of a root's dpkg status."""
    table = dict(kernels.parse_stanzas(status))
    return [f"{name} {table.get(name, 'missing')}" for name in COMPILERS]


def key(build: roots.Root) -> str:
    """A hash of everything the kernel is made from, and of who can use it."""
    status = (build.tree / "var/lib/dpkg/status").read_text(errors="replace")
    made_from = [build.info["version"], *compilers(status), f"root {enter.is_root()}"]
    digest = hashlib.sha256("\n".join(made_from).encode())
    for path in (CONFIG, SCRIPT):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def home() -> Path:
    """Where debug kernels are cached."""
    return config.cache_dir() / "kernels"


def folder(build: roots.Root) -> Path:
    """Where the debug kernel is, or will be."""
    return home() / f"debug-{key(build)}"


def all_folders() -> list[Path]:
    """Every debug kernel in the cache, of whatever key, finished or not."""
    return sorted(home().glob("debug-*/"))


def find(build: roots.Root) -> DebugKernel | None:
    """The finished debug kernel for this build root, if there is one."""
    place = folder(build)
    try:
        info = json.loads((place / "info.json").read_text())
    except FileNotFoundError:
        return None
    return DebugKernel(place, info["release"])


def ensure(build: roots.Root) -> DebugKernel:
    """The debug kernel for this build root, made now if it is not there."""
    kernel = find(build)
    if kernel:
        return kernel
    with roots.lock():
        return find(build) or make(build)


def make(build: roots.Root) -> DebugKernel:
    """Build it from nothing."""
    roots.check_space("debug kernel", NEEDED_BYTES)
    place = folder(build)
    log = config.BUILD / "debug-kernel.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("")
    new = place.with_suffix(".new")
    roots.remove(new)
    kernel = DebugKernel(new, "")
    kernel.tree.mkdir(parents=True)
    step(build, kernel, "configure", log)
    check_options((kernel.tree / ".config").read_text())
    step(build, kernel, "build", log)
    release = (kernel.tree / "include/config/kernel.release").read_text().strip()
    (new / "info.json").write_text(json.dumps({"release": release}, indent=1) + "\n")
    new.rename(place)
    say(f"debug kernel {release} is ready: {place}")
    return DebugKernel(place, release)


def step(build: roots.Root, kernel: DebugKernel, what: str, log: Path) -> None:
    """One step of prepare-debug, inside the build root."""
    script, options = Path("/tmp/prepare-debug"), Path("/tmp/debug.config")
    argv = enter.enter_argv(
        build.tree,
        ["sh", str(script), what, build.info["series"], str(options)],
        binds=[
            kernel.bind("rw"),
            enter.Bind(SCRIPT, script, "ro"),
            enter.Bind(CONFIG, options, "ro"),
        ],
    )
    env = enter.environment({})
    roots.run_step(f"{what} the debug kernel", argv, log, PLANNED[what], env=env)


def check_options(made: str) -> None:
    """Refuse to build a kernel that lacks what it was made for."""
    lacking = kconfig.unmet(CONFIG.read_text(), made)
    if lacking:
        raise Failure(
            f"the debug kernel would lack {len(lacking)} options of {CONFIG.name}: "
            f"{', '.join(lacking)}; look up what they depend on in the kernel's Kconfig files"
        )
