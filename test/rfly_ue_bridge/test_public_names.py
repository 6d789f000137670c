# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Names that the package offers."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rfly_ue_bridge


@pytest.mark.parametrize("name", rfly_ue_bridge.__all__)
def test_every_public_name_is_there(name):
    assert getattr(rfly_ue_bridge, name) is not None
    assert name in dir(rfly_ue_bridge)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Wings"):
        rfly_ue_bridge.Wings  # noqa: B018


def test_importing_the_package_and_its_codec_needs_no_numpy():
    """`rfly send` answers at once."""
    code = "import sys, rfly_ue_bridge.codec.commands; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
