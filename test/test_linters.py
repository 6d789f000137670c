# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The linters of ament, on a ROS machine only. ruff stands for flake8: `make lint`."""

from __future__ import annotations

import importlib
import runpy
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(str(path.parent) for path in ROOT.glob("rfly_*/__init__.py"))

HEADERS = runpy.run_path(str(ROOT / "docs" / "source_headers.py"))

PHRASES = ("D400", "D401", "D402", "D403", "D415")
"""Rules for sentences. Docstrings of classes, properties and attributes are noun phrases."""
SHAPES = ("D205", "D209", "D213", "D406", "D407", "D412", "D413")
"""It begins on the line of its quotes, and a long first sentence goes on in the next line."""


def test_every_source_file_has_its_header():
    """The headers are those that python docs/source_headers.py writes."""
    files = list(HEADERS["source_files"]())
    assert len(files) > 1000
    assert [str(path) for path in files if not HEADERS["has_header"](path)] == []


def test_a_header_comes_after_the_line_of_the_interpreter(tmp_path, monkeypatch):
    script = tmp_path / "docs" / "script.py"
    script.parent.mkdir()
    script.write_text("#!/usr/bin/env python3\nprint(1)\n", encoding="utf-8")
    (tmp_path / "setup.py").write_text("pass\n", encoding="utf-8")
    monkeypatch.setitem(HEADERS["main"].__globals__, "ROOT", tmp_path)

    HEADERS["main"]()
    HEADERS["main"]()

    first, second, third, fourth, last = script.read_text(encoding="utf-8").splitlines()
    assert first == "#!/usr/bin/env python3"
    assert second.startswith("# Copyright 20")
    assert third == "# SPDX-License-Identifier: Apache-2.0"
    assert (fourth, last) == ("", "print(1)")


@pytest.mark.needs("ament_copyright")
def test_copyright_and_licence_of_all_files(capsys, monkeypatch):
    """ament_copyright knows the long header of Apache's licence only (ament_lint issue 246).

    The short one is added to its licences.
    """
    licenses = importlib.import_module("ament_copyright.licenses")
    parser = importlib.import_module("ament_copyright.parser")
    short = licenses.apache2._replace(file_headers=["SPDX-License-Identifier: Apache-2.0"])
    known = parser.get_licenses()
    monkeypatch.setattr(parser, "get_licenses", lambda: {**known, "apache2_short": short})

    paths = [str(path) for path in (ROOT / "LICENSE", *HEADERS["source_files"]())]
    main = importlib.import_module("ament_copyright.main").main
    assert main(paths) == 0, capsys.readouterr().err


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
