# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Marks of single values of a test."""

from __future__ import annotations

from typing import Any

import pytest


def exhaustively(*values: Any, id: str | None = None) -> Any:
    """Return values of a parametrised test that only `make test-exhaustive` tries."""
    return pytest.param(*values, marks=pytest.mark.exhaustive, id=id)
