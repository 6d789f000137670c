# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Codec of RflySim3D's packets and commands: data to bytes and back; no socket."""
