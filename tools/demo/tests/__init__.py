# SPDX-License-Identifier: GPL-2.0
"""Unit tests of the demo."""
