# SPDX-License-Identifier: GPL-2.0
"""The user's terminal, connected to a VM's serial console for a shell."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import sys
import termios
import tty

ESCAPE = b"\x1d"  # Ctrl-]


class Terminal:
    """Keys go to the VM as they are typed, Ctrl-C too; Ctrl-] ends the VM."""

    def __init__(self, selector: selectors.BaseSelector, console: socket.socket) -> None:
        self.console = console
        self.selector = selector
        self.stdin = sys.stdin.fileno()
        self.closed = False
        self.saved = None
        if os.isatty(self.stdin):
            self.saved = termios.tcgetattr(self.stdin)
            tty.setraw(self.stdin)
        selector.register(self.stdin, selectors.EVENT_READ, (self.on_keys, None, ""))

    def on_keys(self, *_: object) -> None:
        """Pass keys on; the end of a piped input is left to its last command."""
        data = os.read(self.stdin, 4096)
        if not data:
            self.selector.unregister(self.stdin)
        if self.saved and ESCAPE in data:
            self.closed = True
            return
        # An error: the VM is powering off, what was typed has nowhere to go.
        with contextlib.suppress(OSError):
            self.console.sendall(data)

    def restore(self) -> None:
        """Give the terminal back as it was."""
        if self.saved:
            termios.tcsetattr(self.stdin, termios.TCSADRAIN, self.saved)
            self.saved = None
