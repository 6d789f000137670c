"""The linters of ament, on a ROS machine only. ruff stands for flake8: `make lint`."""

from __future__ import annotations

import importlib
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(str(path.parent) for path in ROOT.glob("rfly_*/__init__.py"))

PHRASES = ("D400", "D401", "D402", "D403", "D415")
"""Rules for sentences. Docstrings of classes, properties and attributes are noun phrases."""
SHAPES = ("D205", "D209", "D213", "D406", "D407", "D412", "D413")
"""It begins on the line of its quotes, and a long first sentence goes on in the next line."""


@pytest.mark.needs("ament_copyright")
def test_the_licence_is_the_one_of_package_xml(capsys):
    """The files have no heads with copyright notices: the history names the authors, and LICENSE
    holds for all.
    """
    assert importlib.import_module("ament_copyright.main").main([str(ROOT / "LICENSE")]) == 0, (
        capsys.readouterr().err
    )


@pytest.mark.needs("ament_pep257")
def test_docstrings(capsys):
    arguments = ["--add-ignore", *PHRASES, *SHAPES, "--", *PACKAGES, str(ROOT / "launch")]
    assert importlib.import_module("ament_pep257.main").main(arguments) == 0, (
        capsys.readouterr().err
    )


@pytest.mark.needs("ament_xmllint")
def test_package_xml_follows_its_schema(capfd):
    """The schema comes from download.ros.org."""
    text = (ROOT / "package.xml").read_text(encoding="utf-8")
    try:
        urllib.request.urlopen(text.split('href="')[1].split('"')[0], timeout=5).close()
    except OSError:
        pytest.skip("download.ros.org does not answer")
    assert importlib.import_module("ament_xmllint.main").main([str(ROOT / "package.xml")]) == 0, (
        capfd.readouterr().err
    )
