# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Report which of the named modules this Python lacks, and its version of NumPy, as JSON.

usage: missing_modules.py REPORT MODULE ...
"""

import importlib.metadata
import importlib.util
import json
import sys

report, *modules = sys.argv[1:]
numpy = importlib.metadata.version("numpy") if importlib.util.find_spec("numpy") else None
missing = [module for module in modules if importlib.util.find_spec(module) is None]
with open(report, "w", encoding="utf-8") as file:
    json.dump({"numpy": numpy, "missing": missing}, file)
