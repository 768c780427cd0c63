# SPDX-License-Identifier: GPL-2.0
"""The channel between the VMs: lines of text that the runner keeps, see guest/vm-ctl."""

from __future__ import annotations

import fcntl
import json
import time
from pathlib import Path
from typing import Any

PORTS = Path("/sys/class/virtio-ports")
LOCK = Path("/run/vm-ctl.lock")
POLL_SECONDS = 0.05


class PeerGone(Exception):
    """The other VM has ended, so no answer will come."""


def device() -> Path:
    """The port to the runner."""
    for file in PORTS.glob("*/name"):
        if file.read_text().strip() == "ctl":
            return Path("/dev") / file.parent.name
    raise FileNotFoundError("no virtio port named ctl")


def ask(line: str) -> str:
    """Say one line to the runner; its answer. The port can be open once at a time."""
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with device().open("r+b", buffering=0) as port:
            port.write(line.encode() + b"\n")
            answer = b""
            while not answer.endswith(b"\n"):
                answer += port.read(65536)
    return answer.decode().rstrip("\n")


def put(key: str, value: Any) -> None:
    """Make a value known to the other VM."""
    ask(f"put {key} {json.dumps(value)}")


def get(key: str) -> Any:
    """A value that the other VM has put; wait for it."""
    while True:
        answer = ask(f"get {key}")
        if answer.startswith("is "):
            return json.loads(answer[3:])
        if answer.startswith("never"):
            raise PeerGone(answer)
        time.sleep(POLL_SECONDS)
