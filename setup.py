# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

from setuptools import setup

setup()  # everything is declared in pyproject.toml
