# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`make demo`: a convoy on real terrain, observed from outside the nodes."""
