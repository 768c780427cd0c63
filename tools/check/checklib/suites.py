# SPDX-License-Identifier: GPL-2.0
"""The table of suites, in the order that fails fastest. Add a row to add one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[3]

ENTER = ("tools/vm/enter", "--")
CARGO = (*ENTER, "cargo")
RELEASE = (
    *CARGO,
    *("build", "--release", "--locked", "--manifest-path", "tools/Cargo.toml", "--package"),
)
TWO_VMS = ("tools/check/vm-tests", "--vms", "2", "--rxe")
WITH_RV = ("--load", "rv")
DEBUG = ("--kernel", "debug")
WORKSPACE = ("--manifest-path", "tools/Cargo.toml", "--workspace", "--locked")
STRICT = ("KCFLAGS=-Werror", "KRUSTFLAGS=-Dwarnings")
KSELFTEST = "tools/testing/selftests"


@dataclass(frozen=True)
class Suite:
    """One suite: a command run in the top directory, and how to count its tests."""

    name: str
    what: str
    # Seconds on two cores with a warm cache, for the reader; not a bound.
    planned: int
    command: Sequence[str]
    # How its output is counted: tap, cargo, unittest, or exit (one test).
    parser: str = "exit"
    # host or vm, for check-host and check-vm; debug for check-debug, not in `make check`.
    group: str = "host"
    # Not in `make check`, for it takes too long; `make check-long` runs these.
    long: bool = False
    # Paths that the suite is made of; one that is missing is a failure.
    needs: Sequence[str] = ()
    # Suites whose failure makes this one pointless. They are run before it.
    after: Sequence[str] = ()


# The programs of tools/testing/psm3, with libfabric in the VMs.
PSM3 = "tools/testing/psm3"
PSM3_VMS = ("tools/psm3/vm-tests", "--name", "psm3", "--vms", "2", "--rxe")
PSM3_VMS_WITH_RV = (*PSM3_VMS, *WITH_RV)

# The programs of tools/testing/mpi, which load rv themselves.
MPI = "tools/testing/mpi"
MPI_VMS = ("tools/psm3/vm-tests", "--name", "mpi", "--vms", "2", "--rxe")

SUITES = (
    Suite(
        name="format",
        what="rustfmt --check, all Rust files",
        planned=3,
        command=(*ENTER, "tools/check/rustfmt", "--check"),
    ),
    Suite(
        name="tool-tests",
        what="unit tests of the Python tools",
        planned=3,
        command=("tools/check/unit-tests",),
        parser="unittest",
    ),
    Suite(
        name="abi",
        what="layout and number guards of the uapi header, C and C++",
        planned=10,
        command=(*ENTER, "make", "-C", "tools/testing/abi", "check"),
        parser="tap",
        needs=("tools/testing/abi/Makefile",),
    ),
    Suite(
        name="modules",
        what="all modules, C and Rust warnings as errors",
        planned=60,
        command=("make", "--no-print-directory", "modules", "W=1", *STRICT),
    ),
    Suite(
        name="host-tests",
        what="cargo test of the tools workspace",
        planned=60,
        command=(*CARGO, "test", *WORKSPACE),
        parser="cargo",
        needs=("tools/Cargo.toml",),
    ),
    Suite(
        name="clippy",
        what="cargo clippy of the tools workspace, warnings as errors",
        planned=30,
        command=(*CARGO, "clippy", *WORKSPACE, "--all-targets", "--", "-D", "warnings"),
        needs=("tools/Cargo.toml",),
    ),
    Suite(
        name="modules-clippy",
        what="clippy of the modules with the kernel's lints, warnings as errors",
        planned=60,
        command=(
            "make",
            "--no-print-directory",
            "modules",
            "CLIPPY=1",
            *STRICT,
            f"MODULES={REPO}/build/clippy",
        ),
        after=("modules",),
    ),
    Suite(
        name="modules-rustdoc",
        what="rustdoc of the modules' crates, warnings as errors",
        planned=40,
        command=("make", "--no-print-directory", "modules_rustdoc", *STRICT),
        after=("modules",),
    ),
    Suite(
        name="rustdoc",
        what="cargo doc of the tools workspace, warnings as errors",
        planned=30,
        command=(
            "tools/vm/enter",
            "--env",
            "RUSTDOCFLAGS=-Dwarnings",
            "--",
            "cargo",
            "doc",
            *WORKSPACE,
            "--no-deps",
        ),
        needs=("tools/Cargo.toml",),
    ),
    Suite(
        name="selftests-build",
        what="the selftests' programs, warnings as errors",
        planned=15,
        command=(*ENTER, "make", "-C", f"{KSELFTEST}/rv"),
        group="vm",
        needs=(f"{KSELFTEST}/rv/Makefile",),
    ),
    Suite(
        name="load",
        what="modules in a VM: load, use count, unload, reload, modprobe, udev",
        planned=30,
        command=("tools/check/vm-tests", "--name", "load", "tools/check/vm/load.sh"),
        parser="tap",
        group="vm",
        after=("modules",),
    ),
    Suite(
        name="selftests-rv",
        what="/dev/rv in a VM, one boot per program",
        planned=180,
        command=("tools/check/vm-tests", "--name", "rv", "--rxe", "--load", "rv", "build/tests/rv"),
        parser="tap",
        group="vm",
        needs=(f"{KSELFTEST}/rv",),
        after=("modules", "selftests-build"),
    ),
    Suite(
        name="rv-fast",
        what="the same for the MR cache, all memory registered by fast registration",
        planned=90,
        command=(
            "tools/check/vm-tests",
            "--name",
            "rv-fast",
            "--rxe",
            "--load",
            "rv",
            "--env",
            "RV_REGISTRATION=fast",
            "build/tests/rv/rv_mem",
            "build/tests/rv/rv_cache",
            "build/tests/rv/rv_evict",
        ),
        parser="tap",
        group="vm",
        needs=(f"{KSELFTEST}/rv",),
        after=("modules", "selftests-build"),
    ),
    Suite(
        name="two-vm",
        what="two VMs: transfers between hosts",
        planned=120,
        command=(*TWO_VMS, "--name", "two-vm", *WITH_RV, f"{KSELFTEST}/rv/two-vm"),
        parser="tap",
        group="vm",
        needs=(f"{KSELFTEST}/rv/two-vm",),
        after=("modules", "selftests-build"),
    ),
    Suite(
        name="two-cards",
        what="two VMs with two RDMA devices each",
        planned=40,
        command=(
            *TWO_VMS,
            "--nics",
            "2",
            "--name",
            "two-cards",
            *WITH_RV,
            f"{KSELFTEST}/rv/two-cards/rv_pair_devices",
        ),
        parser="tap",
        group="vm",
        needs=(f"{KSELFTEST}/rv/two-cards/rv_pair_devices",),
        after=("modules", "selftests-build"),
    ),
    Suite(
        name="failures",
        what="two VMs: everything that can fail between them, replaced memory a thousand times",
        planned=1200,
        command=(
            *TWO_VMS,
            "--name",
            "failures",
            *WITH_RV,
            "--env",
            "RV_LONG=1",
            "--timeout",
            "3600",
            f"{KSELFTEST}/rv/two-vm/rv_pair_fail",
            f"{KSELFTEST}/rv/two-vm/rv_pair_cache",
        ),
        parser="tap",
        group="vm",
        long=True,
        needs=(
            f"{KSELFTEST}/rv/two-vm/rv_pair_fail",
            f"{KSELFTEST}/rv/two-vm/rv_pair_cache",
        ),
        after=("modules", "selftests-build"),
    ),
    Suite(
        name="two-vm-fast",
        what="two VMs: the cache under writes, all memory registered by fast registration",
        planned=60,
        command=(
            *TWO_VMS,
            "--name",
            "two-vm-fast",
            *WITH_RV,
            "--env",
            "RV_REGISTRATION=fast",
            f"{KSELFTEST}/rv/two-vm/rv_pair_cache",
        ),
        parser="tap",
        group="vm",
        needs=(f"{KSELFTEST}/rv/two-vm",),
        after=("modules", "selftests-build"),
    ),
    Suite(
        name="rv-perf-build",
        what="rv-perf as it is installed",
        planned=20,
        command=(*RELEASE, "rv-perf"),
        group="vm",
    ),
    Suite(
        name="rv-perf-errors",
        what="rv-perf in a VM: what it says when something is missing",
        planned=20,
        command=("tools/check/vm-tests", "--name", "perf", "--rxe", "tools/testing/rv-perf/errors"),
        parser="tap",
        group="vm",
        needs=("tools/testing/rv-perf/errors",),
        after=("modules", "rv-perf-build"),
    ),
    Suite(
        name="rv-perf-transfer",
        what="rv-perf between two VMs: transfers of all kinds, and broken ones",
        planned=60,
        command=(*TWO_VMS, "--name", "perf", *WITH_RV, "tools/testing/rv-perf/transfer"),
        parser="tap",
        group="vm",
        needs=("tools/testing/rv-perf/transfer",),
        after=("modules", "rv-perf-build"),
    ),
    Suite(
        name="psm3-build",
        what="libfabric with PSM3 and fabtests, built against our header",
        planned=140,
        command=("tools/psm3/build", "release", "faults"),
        group="vm",
    ),
    Suite(
        name="psm3-control",
        what="PSM3 between two VMs without rv: what fails here is not rv's doing",
        planned=100,
        command=(*PSM3_VMS, f"{PSM3}/control"),
        parser="tap",
        group="vm",
        needs=(f"{PSM3}/control",),
        after=("psm3-build",),
    ),
    Suite(
        name="psm3-kernel",
        what="PSM3 between two VMs through rv's connections",
        planned=100,
        command=(*PSM3_VMS_WITH_RV, f"{PSM3}/kernel"),
        parser="tap",
        group="vm",
        needs=(f"{PSM3}/kernel",),
        after=("modules", "psm3-build"),
    ),
    Suite(
        name="psm3-user",
        what="PSM3 with queue pairs of its own for large messages, and rv's MR cache",
        planned=100,
        command=(*PSM3_VMS_WITH_RV, f"{PSM3}/user"),
        parser="tap",
        group="vm",
        needs=(f"{PSM3}/user",),
        after=("modules", "psm3-build"),
    ),
    Suite(
        name="psm3-user-eager",
        what="the same for all messages",
        planned=100,
        command=(*PSM3_VMS_WITH_RV, f"{PSM3}/user-eager"),
        parser="tap",
        group="vm",
        needs=(f"{PSM3}/user-eager",),
        after=("modules", "psm3-build"),
    ),
    Suite(
        name="psm3-long-control",
        what="PSM3 without rv: every program, every size",
        planned=900,
        command=(*PSM3_VMS, "--mem", "3G", "--timeout", "7200", f"{PSM3}/long-control"),
        parser="tap",
        group="vm",
        long=True,
        needs=(f"{PSM3}/long-control",),
        after=("psm3-build",),
    ),
    Suite(
        name="psm3-long",
        what="PSM3 with rv in every mode: every program, every size",
        planned=2700,
        command=(
            *PSM3_VMS_WITH_RV,
            "--mem",
            "3G",
            "--timeout",
            "7200",
            f"{PSM3}/long-kernel",
            f"{PSM3}/long-user",
            f"{PSM3}/long-user-eager",
        ),
        parser="tap",
        group="vm",
        long=True,
        needs=(f"{PSM3}/long-kernel", f"{PSM3}/long-user", f"{PSM3}/long-user-eager"),
        after=("modules", "psm3-build"),
    ),
    Suite(
        name="psm3-failures",
        what="PSM3 through rv when something breaks",
        planned=300,
        command=(*PSM3_VMS_WITH_RV, f"{PSM3}/failures"),
        parser="tap",
        group="vm",
        long=True,
        needs=(f"{PSM3}/failures",),
        after=("modules", "selftests-build", "psm3-build"),
    ),
    Suite(
        name="rv-stat-build",
        what="rv-stat as it is installed",
        planned=20,
        command=(*RELEASE, "rv-stat"),
        group="vm",
    ),
    Suite(
        name="observe-trace",
        what="trace events of transfers between two VMs, with tracefs and trace-cmd",
        planned=60,
        command=(*TWO_VMS, "--name", "observe", *WITH_RV, "tools/testing/observe/trace"),
        parser="tap",
        group="vm",
        needs=("tools/testing/observe/trace",),
        after=("modules", "rv-perf-build", "selftests-build"),
    ),
    Suite(
        name="mpi-build",
        what="the MPI program, warnings as errors",
        planned=5,
        command=(*ENTER, "make", "-C", MPI),
        group="vm",
        needs=(f"{MPI}/Makefile",),
    ),
    Suite(
        name="mpi",
        what="Open MPI over PSM3, two VMs with two ranks each: without rv, with it, and failures",
        planned=300,
        command=(*MPI_VMS, f"{MPI}/exchange", f"{MPI}/jobs"),
        parser="tap",
        group="vm",
        needs=(f"{MPI}/exchange", f"{MPI}/jobs"),
        after=("modules", "selftests-build", "psm3-build", "mpi-build"),
    ),
    Suite(
        name="mpi-long",
        what="Open MPI over PSM3: all sizes, short queues, a wire that stays cut",
        planned=900,
        command=(*MPI_VMS, "--timeout", "3600", f"{MPI}/sizes", f"{MPI}/failures"),
        parser="tap",
        group="vm",
        long=True,
        needs=(f"{MPI}/sizes", f"{MPI}/failures"),
        after=("modules", "psm3-build", "mpi-build"),
    ),
    Suite(
        name="observe-tables",
        what="debugfs tables and rv-stat, while two VMs move data",
        planned=120,
        command=(*TWO_VMS, "--name", "observe", "tools/testing/observe/tables"),
        parser="tap",
        group="vm",
        needs=("tools/testing/observe/tables",),
        after=("modules", "rv-perf-build", "rv-stat-build"),
    ),
    Suite(
        name="modules-debug",
        what="all modules against the debug kernel, by clang, with KASAN",
        planned=60,
        command=("make", "--no-print-directory", "modules_debug"),
        group="debug",
    ),
    Suite(
        name="defects-build",
        what="modules that do wrong on purpose",
        planned=20,
        command=(
            "tools/vm/enter",
            "--kernel",
            "debug",
            "--",
            "make",
            "-C",
            "tools/testing/defects",
        ),
        group="debug",
        needs=("tools/testing/defects/Makefile",),
    ),
    Suite(
        name="debug-defects",
        what="debug kernel: every mistake that it is for is seen, and fails a run",
        planned=90,
        command=("tools/testing/defects/seen",),
        parser="tap",
        group="debug",
        needs=("tools/testing/defects/seen",),
        after=("defects-build",),
    ),
    Suite(
        name="debug-load",
        what="debug kernel: modules load and unload, as in load",
        planned=60,
        command=("tools/check/vm-tests", "--name", "debug", *DEBUG, "tools/check/vm/load.sh"),
        parser="tap",
        group="debug",
        after=("modules-debug",),
    ),
    Suite(
        name="debug-rv",
        what="debug kernel: /dev/rv in a VM, one boot per program",
        planned=600,
        command=(
            "tools/check/vm-tests",
            "--name",
            "debug-rv",
            *DEBUG,
            "--rxe",
            *WITH_RV,
            "build/tests/rv",
        ),
        parser="tap",
        group="debug",
        needs=(f"{KSELFTEST}/rv",),
        after=("modules-debug", "selftests-build"),
    ),
    Suite(
        name="debug-two-vm",
        what="debug kernel: transfers between two VMs",
        planned=600,
        command=(*TWO_VMS, "--name", "debug-two-vm", *DEBUG, *WITH_RV, f"{KSELFTEST}/rv/two-vm"),
        parser="tap",
        group="debug",
        needs=(f"{KSELFTEST}/rv/two-vm",),
        after=("modules-debug", "selftests-build"),
    ),
    Suite(
        name="debug-psm3",
        what="debug kernel: a few PSM3 jobs between two VMs in each of rv's modes",
        planned=300,
        command=(*PSM3_VMS_WITH_RV, *DEBUG, f"{PSM3}/smoke"),
        parser="tap",
        group="debug",
        needs=(f"{PSM3}/smoke",),
        after=("modules-debug", "psm3-build"),
    ),
)


def choose(names: Sequence[str], group: str | None) -> list[Suite]:
    """The suites asked for with those they come after, in the table's order."""
    table = {suite.name: suite for suite in SUITES}
    unknown = [name for name in names if name not in table]
    if unknown:
        raise ValueError(f"no suite {unknown[0]}; there are: {' '.join(table)}")
    wanted = set(names)
    if not names:
        wanted = {suite.name for suite in SUITES if belongs(suite, group)}
    while True:
        more = {name for suite in wanted for name in table[suite].after} - wanted
        if not more:
            return [suite for suite in SUITES if suite.name in wanted]
        wanted |= more


def belongs(suite: Suite, group: str | None) -> bool:
    """Whether a suite is in a group: host and vm are of the short ones, as is no group."""
    if suite.long or group == "long":
        return suite.long and group == "long"
    if suite.group == "debug":
        return group == "debug"
    return group in (None, suite.group)
