# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Path planning: driving over costs, flying over ground, both in turn."""
