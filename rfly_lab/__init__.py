# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Laboratory: runs of scenarios, sweeps, identification from logs, their replay, learning."""

from rfly_common.imports import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
