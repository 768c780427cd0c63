# SPDX-License-Identifier: GPL-2.0
"""What the benchmarks are made of."""
