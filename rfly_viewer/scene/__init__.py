# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Data of the scene, from the datagrams that arrived; without sockets and viser."""
