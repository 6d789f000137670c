# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The `rfly` command, one module a group.

Modules with commands have no `from __future__ import annotations`: typer 0.9 (Ubuntu 24.04) reads
none that are text.
"""
