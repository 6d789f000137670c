# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Flight and chassis control: laws, modes, mixer, guidance along paths."""
