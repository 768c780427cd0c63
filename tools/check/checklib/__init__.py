# SPDX-License-Identifier: GPL-2.0
"""The library behind tools/check/{run,vm-tests,probe}.

suites is the table to extend; orchestrate runs it; results counts what the
suites' output says; probe tells what a kernel tree lacks.
"""
