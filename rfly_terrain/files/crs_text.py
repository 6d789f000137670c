# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Texts that name a coordinate reference system, and nothing else.

GDAL's own reader of such texts also takes names of files and addresses, behind prefixes such as
`ESRI::` and `dict:` too, and PROJ opens the files of `+init` and of grids.
"""

from __future__ import annotations

import os
import re

from rfly_common.errors import ConfigError

LONGEST = 20_000
"""Characters; the WKT of compound systems has some thousands."""
_FORMS = re.compile(
    r"""
    (?!dict:) [a-z]\w* : \w+ (\+\w+)?          # EPSG:4326, ESRI:102003, IGNF:LAMB93, EPSG:4326+5773
    | urn:ogc:def:crs:[\w.:-]+
    | (WGS|NAD)\d\d
    | \+proj=\w+ (\s+ \+\w+ (=[\w.+@,:-]*)?)*  # without a slash: no path
    | [a-z_]+ (3d)? \s* \[ .* \]                # WKT
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_OPENS_FILES = re.compile(r"init=|grids=|grids\b.*\[|PARAMETERFILE|://", re.IGNORECASE)
_NO_GRID = re.compile(r"nadgrids=@null", re.IGNORECASE)
"""What WKT of web Mercator holds; it names no file."""


def checked_crs(text: str) -> str:
    """Return the text of a coordinate reference system without blanks at its ends.

    Raises ConfigError for one that could make GDAL or PROJ open a file or an address.
    """
    text = text.strip()
    is_form = len(text) <= LONGEST and _FORMS.fullmatch(text) is not None
    if not is_form or _OPENS_FILES.search(_NO_GRID.sub("", text)) or os.path.exists(text):
        raise ConfigError(
            f"crs {text!r}: expected such as EPSG:4326, a +proj= text or WKT, no file and no "
            "address"
        )
    return text
