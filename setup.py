# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Everything is declared in pyproject.toml but the description, which is made of README.md."""

import re
from pathlib import Path

from setuptools import setup

_PICTURE = re.compile(r"!\[([^]]*)\]\((?!\w+:)([^)]+)\)")
_LINK = re.compile(r"\[((?:!\[[^]]*\]\([^)]*\)|[^]])*)\]\((?!\w+:)([^)]+)\)")


def description(readme, repository):
    """Return a README for PyPI, which shows no file beside it.

    Relative links and pictures lead to the repository, an address as of GitHub; without one (empty)
    their texts stay.
    """
    picture = rf"![\1]({repository}/raw/HEAD/\2)" if repository else r"\1"
    link = rf"[\1]({repository}/blob/HEAD/\2)" if repository else r"\1"
    return _LINK.sub(link, _PICTURE.sub(picture, readme))


if __name__ == "__main__":
    folder = Path(__file__).parent
    declared = re.search(
        r'^Repository = "(.+?)/?"', (folder / "pyproject.toml").read_text("utf-8"), re.MULTILINE
    )
    setup(
        long_description=description(
            (folder / "README.md").read_text("utf-8"), declared[1] if declared else ""
        ),
        long_description_content_type="text/markdown",
    )
