# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""What a missing optional library's error says."""

from __future__ import annotations

import sys

import pytest

from rfly_common.errors import ConfigError
from rfly_common.imports import require


@pytest.mark.parametrize(
    ("module", "install"),
    [("matplotlib", "make env"), ("torch", 'pip install ".[train]"')],
)
def test_make_env_is_named_for_what_it_installs(monkeypatch, tmp_path, module, install):
    """It installs every extra but the one for training."""
    (tmp_path / "rfly_suite.json").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError) as error:
        require(module, "this")
    assert str(error.value) == f"this needs {module}; in the folder of rfly_suite: {install}"
