# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Objects on a terrain: solids, world files, populated worlds."""
