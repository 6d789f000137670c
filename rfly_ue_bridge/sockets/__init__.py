# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""UDP sockets: sender, receiver, rate limiter."""
