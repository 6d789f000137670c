# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Files of unknown origin: one place for their errors, and limits on their sizes and folders."""
