# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Node runtime: QoS, parameters, diagnostics, frames, run loop. Import from the modules."""
