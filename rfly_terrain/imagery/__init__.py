# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pictures of the ground from above, such as orthophotos, and where they lie on a terrain."""
