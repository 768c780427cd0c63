# SPDX-License-Identifier: GPL-2.0
"""What the demo and the benchmarks are made of."""
