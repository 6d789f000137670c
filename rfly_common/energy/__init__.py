# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Configuration files: YAML with line numbers, and JSON schema validation in plain words."""
