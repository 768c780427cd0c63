# SPDX-License-Identifier: GPL-2.0
"""The library behind tools/psm3: libfabric with PSM3, built for tests of rv.

Reading order: source (what is built), libfabric (how it is built and cached).
"""
