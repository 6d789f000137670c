# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The pages docs/model: sections and equations named in comments exist, parameters agree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from control_rig import understeer_gradient

from rfly_amphibious import VehicleParameters
from rfly_amphibious.vehicle.vehicle_record import peak_slip
from rfly_common.config.documents import load_schema
from rfly_common.config.marked_yaml import parse_yaml
from rfly_common.config.parameter_files import read_parameters

ROOT = Path(__file__).resolve().parents[1]
MODEL = ROOT / "docs" / "model"
PAGES = {page.name: page.read_text(encoding="utf-8") for page in sorted(MODEL.glob("*.md"))}
TEXTS = [
    *ROOT.glob("*.md"),
    *(
        p
        for d in ("docs", "test", "examples", "benchmarks", "attacks")
        for p in (ROOT / d).rglob("*")
    ),
]
TEXTS += [path for package in ROOT.glob("rfly_*") for path in package.rglob("*")]
TEXTS = sorted(
    path
    for path in TEXTS
    if path.suffix in (".py", ".md", ".yaml", ".json") and path != Path(__file__)
)

NUMBERS = r"(\d+(?:\.\d+)*(?:(?:, | and | to |-|–)\d+(?:\.\d+)*)*)"
SECTION = re.compile(rf"\b[Ss]ections? {NUMBERS}")
EQUATION = re.compile(rf"\bEqs?\. {NUMBERS}")
HEADING = re.compile(r"^#+ (?:(\d+(?:\.\d+)?) )?(.*)$", re.MULTILINE)
DEFINITION = re.compile(r'^<a id="eq-([\d.]+)"></a>\*\*Eq\. ([\d.]+)\*\*', re.MULTILINE)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def numbered(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """(number, page) of each heading or equation that has a number."""
    return [
        (found[1], page)
        for page, text in PAGES.items()
        for found in pattern.finditer(text)
        if found[1]
    ]


SECTIONS = dict(numbered(HEADING))
EQUATIONS = dict(numbered(DEFINITION))


def mentions(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    """(number, what stands before the mention), line breaks and comment signs left out."""
    text = re.sub(r"\s*\n[\s#>]*", " ", text)
    for found in pattern.finditer(text):
        for number in re.findall(r"\d+(?:\.\d+)*", found[1]):
            yield number, text[max(found.start() - 40, 0) : found.start()]


def nowhere(path: Path, text: str) -> list[str]:
    """Return the numbers in the text that lead nowhere.

    Outside docs/model a section follows the name of its document.
    """
    wrong = [f"Eq. {number}" for number, _ in mentions(EQUATION, text) if number not in EQUATIONS]
    for number, before in mentions(SECTION, text):
        ours = path.parent == MODEL or before.endswith("docs/model, ")
        if ours and number not in SECTIONS:
            wrong.append(f"section {number} of docs/model")
        elif not ours and not before.endswith(", "):
            wrong.append(f"section {number} of which document? … {before}")
    return wrong


def test_sections_and_equations_lead_somewhere():
    assert len(TEXTS) > 500
    wrong = {name(path): nowhere(path, path.read_text(encoding="utf-8")) for path in TEXTS}
    assert {path: numbers for path, numbers in wrong.items() if numbers} == {}


def test_a_number_that_leads_nowhere_is_found():
    code = ROOT / "rfly_amphibious" / "some.py"
    assert nowhere(code, "docs/model, sections 4.1 and\n    # 7. Eq. 5.11, 7.6") == []
    assert nowhere(code, "Real-Time Collision Detection, 2005, section 5.1.9") == []
    assert nowhere(code, "docs/model,\n    sections 4.1 and 4.9. Eq. 5.99") == [
        "Eq. 5.99",
        "section 4.9 of docs/model",
    ]
    assert len(nowhere(code, "Ground effect. Section 4.3.")) == 1
    assert nowhere(MODEL / "04-rotors.md", "see section 4.9") == ["section 4.9 of docs/model"]


def test_numbers_are_in_order_and_on_the_page_of_their_section():
    for pattern in (HEADING, DEFINITION):
        found = numbered(pattern)
        keys = [tuple(map(int, number.split("."))) for number, _ in found]
        assert keys == sorted(set(keys))
        assert all(
            page.startswith(f"{key[0]:02}-") for key, (_, page) in zip(keys, found, strict=True)
        )

    assert all(
        found[1] == found[2] for text in PAGES.values() for found in DEFINITION.finditer(text)
    )
    assert len(SECTIONS) > 40
    assert len(EQUATIONS) > 70


def test_the_table_of_contents_has_all_pages():
    listed = re.findall(r"^(\d+)\. \[.*?\]\((.*?)\)", PAGES["README.md"], re.MULTILINE)
    assert listed == [(str(int(page[:2])), page) for page in PAGES if page != "README.md"]


def test_links_to_sections_lead_to_headings():
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        for target, anchor in re.findall(r"\]\(([\w./-]*\.md)#([^)]*)\)", text):
            path = (page.parent / target).resolve()
            if path.parent == MODEL:
                slugs = [
                    slug(f"{number} {title}") for number, title in HEADING.findall(PAGES[path.name])
                ]
                assert anchor in [*slugs, *(f"eq-{number}" for number in EQUATIONS)], (
                    f"{name(page)}: {target}#{anchor}"
                )


def slug(heading: str) -> str:
    """Return GitHub's anchor of a heading."""
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("part", ["standing", "driving", "flying"])
def test_labels_of_validation_tests_are_in_the_table(part):
    text = (
        ROOT / "test" / "rfly_amphibious" / "dynamics" / f"test_validation_{part}.py"
    ).read_text(encoding="utf-8")
    labels = set(re.findall(r"\bV\d\d[a-z]?\b", text)) | {
        f"V{label}" for label in re.findall(r"test_v(\d\d)", text)
    }
    known = set(re.findall(r"^\| (V\d\d)([a-z]?) ", PAGES["16-validation.md"], re.MULTILINE))
    assert labels
    assert labels <= {number for number, _ in known} | {number + letter for number, letter in known}


# parameters


def tables(number: str) -> list[list[list[str]]]:
    """The cells of each table, without the rule, in a section of the parameters."""
    section = re.split(r"^## ", PAGES["15-parameters.md"], flags=re.MULTILINE)
    text = next(part for part in section if part.startswith(number))
    blocks = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    rows = [
        [line.strip("| ").split(" | ") for line in block.splitlines() if "---" not in line]
        for block in blocks
    ]
    return [[[cell.strip("`") for cell in row] for row in table] for table in rows]


TABLE = {tuple(row[0].split(".", 1)): row for row in tables("15.1")[0][1:]}


def keys_of(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of all keys with a value; those of a list's items behind `[]`."""
    for key, entry in schema["properties"].items():
        items = entry.get("items", {})
        if entry.get("type") == "object":
            yield from keys_of(entry, (*path, key))
        elif items.get("type") == "object":
            yield from ((*path, f"{key}[].{last}") for (last,) in keys_of(items))
        else:
            yield (*path, key)


def test_the_parameter_table_is_the_schema():
    keys = set(keys_of(load_schema("rfly_amphibious", "vehicle_parameters"))) - {("version",)}
    assert set(TABLE) == keys


def cell(section: Any, key: str) -> str:
    """A value of a parameter file as the table has it."""
    of_list, _, last = key.rpartition("[].")
    value = [entry.get(last) for entry in section[of_list]] if of_list else section.get(key)
    values = value if isinstance(value, list) else [value]
    written = [
        "–" if v is None else f"{v:.10g}" if isinstance(v, float) else str(v) for v in values
    ]
    return ", ".join(written if set(written) != {"–"} else {"–"})


@pytest.mark.parametrize(("column", "set_name"), [(2, "full"), (3, "scale")])
def test_values_are_those_of_the_shipped_sets(column, set_name):
    data, file, _ = read_parameters("vehicle parameters", "rfly_amphibious", "vehicles", set_name)
    document = parse_yaml(data.decode(), file).value
    for (section, key), row in TABLE.items():
        assert row[column] == cell(document[section], key), f"{section}.{key}"


@pytest.mark.parametrize(("column", "set_name"), [(2, "full"), (3, "scale")])
def test_derived_numbers_are_those_of_the_code(column, set_name):
    p = VehicleParameters.load(set_name)
    inertia = p.total_inertia
    ends = slice(None, None, 2)
    derived: dict[str, Any] = {
        "sprung mass": (p.mass_sprung, p.mass),
        "total centre": p.center_x,
        "its height": p.center_height,
        "spring load": p.spring_load[ends],
        "wheel load": p.static_load[ends],
        "hubs": p.hub_position[ends, 2],
        "rolling radius": p.rolling_radius[ends],
        "J_tot": (*inertia.diagonal(), inertia[0, 2]),
        "effective mass": p.effective_mass,
        "peak": (peak_slip(p.shape_x, p.curvature_x), peak_slip(p.shape_y, p.curvature_y)),
        "understeer": understeer_gradient(p),
        "torque": p.torque_coefficient,
        "inflow": p.inflow_coefficient,
        "rotor speed": p.hover_speed,
        "strut": p.hanging_strut[ends],
    }
    rows = {row[0]: row[column].replace("−", "-").split(", ") for row in tables("15.2")[0][1:]}

    for key, value in derived.items():
        written = next(cells for quantity, cells in rows.items() if quantity.startswith(key))
        for text, exact in zip(written, np.atleast_1d(value), strict=True):
            digits = len(text.partition("e")[0].partition(".")[2]) - int(
                text.partition("e")[2] or 0
            )
            assert float(text) == pytest.approx(exact, abs=0.51 * 10.0**-digits), key
