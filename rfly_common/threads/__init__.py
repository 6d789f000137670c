# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Threads that no data ends, and processes that end with their parent."""
