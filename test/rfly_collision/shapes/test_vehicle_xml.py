# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicle descriptions: safe to read, corrected in place, every other byte kept."""

from __future__ import annotations

import codecs
import contextlib
import os
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rfly_collision.shapes.vehicle_xml import (
    MAX_BYTES,
    correct_center_height,
    parse_vehicle_xml,
    read_vehicle_xml,
)
from rfly_common.errors import VehicleXmlError

TARGET = """<?xml version="1.0" encoding="utf-8"?>
<!-- a target > that stands -->
<vehicle>
  <ClassID>200150</ClassID>
  <Name>Цель 目标 <![CDATA[<1>]]></Name>
  <Scale><x>1</x><y>1</y><z>1</z></Scale>
  <body>
    <MeshPath>/Game/Target &amp; more</MeshPath>
    <!-- <CenterHeightAboveGroundCm>7</CenterHeightAboveGroundCm> -->
    <CenterHeightAboveGroundCm unit='cm > m'> 12.50 <!-- 13 --></CenterHeightAboveGroundCm>
    <NumberHeigthAboveCenterCm>20</NumberHeigthAboveCenterCm>
  </body>
</vehicle>
"""


def corrected(data, height=98.25):
    return parse_vehicle_xml(data, "t.xml").with_center_height(height).encode()


def test_what_a_description_says():
    xml = parse_vehicle_xml(TARGET.encode(), "t.xml")
    assert (xml.class_id, xml.name, xml.center_height_cm) == (
        200150,
        "Цель 目标 <1>",
        12.5,
    )


def test_only_the_number_changes():
    assert corrected(TARGET.encode()) == TARGET.replace(" 12.50 ", " 98.25 ").encode()


@pytest.mark.parametrize(
    ("encode", "declared"),
    [
        pytest.param(lambda text: text.encode(), "utf-8", id="utf-8"),
        pytest.param(lambda text: text.encode(), None, id="nothing-declared"),
        pytest.param(lambda text: codecs.BOM_UTF8 + text.encode(), "UTF-8", id="utf-8-bom"),
        pytest.param(
            lambda text: codecs.BOM_UTF8 + text.encode(),
            "gbk",
            id="bom-beats-declaration",
        ),
        pytest.param(
            lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le"),
            "UTF-16",
            id="utf-16-le",
        ),
        pytest.param(
            lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
            "UTF-16",
            id="utf-16-be",
        ),
        pytest.param(lambda text: text.encode("utf-16-le"), "UTF-16", id="utf-16-no-bom"),
        pytest.param(lambda text: text.encode(), "utf-16", id="declared-utf-16-but-single-bytes"),
        pytest.param(lambda text: text.encode("gb2312", "replace"), "GB2312", id="gb2312"),
        pytest.param(
            lambda text: text.replace("目标", "鏢靶").encode("gbk"),
            "gb2312",
            id="gbk-that-says-gb2312",
        ),
        pytest.param(lambda text: text.encode("gbk"), "GBK", id="gbk"),
        pytest.param(lambda text: text.encode("gbk"), None, id="gbk-nothing-declared"),
        pytest.param(
            lambda text: text.encode("cp1251", "replace"),
            "windows-1251",
            id="windows-1251",
        ),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_encoding_and_line_ends_stay(encode, declared, newline):
    first = f'<?xml version="1.0" encoding="{declared}"?>' if declared else '<?xml version="1.0"?>'
    text = TARGET.replace('<?xml version="1.0" encoding="utf-8"?>', first).replace("\n", newline)
    assert corrected(encode(text)) == encode(text.replace(" 12.50 ", " 98.25 "))


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        (
            "<CenterHeightAboveGroundCm/>",
            "<CenterHeightAboveGroundCm>5</CenterHeightAboveGroundCm>",
        ),
        (
            "<CenterHeightAboveGroundCm />",
            "<CenterHeightAboveGroundCm>5</CenterHeightAboveGroundCm>",
        ),
        (
            "<CenterHeightAboveGroundCm></CenterHeightAboveGroundCm>",
            "<CenterHeightAboveGroundCm>5</CenterHeightAboveGroundCm>",
        ),
        (
            "<CenterHeightAboveGroundCm><![CDATA[1e2]]></CenterHeightAboveGroundCm >",
            "<CenterHeightAboveGroundCm><![CDATA[5]]></CenterHeightAboveGroundCm >",
        ),
        (
            "<CenterHeightAboveGroundCm>&#49;2</CenterHeightAboveGroundCm>",
            "<CenterHeightAboveGroundCm>5</CenterHeightAboveGroundCm>",
        ),
    ],
)
def test_other_ways_to_write_it(element, expected):
    text = f"<vehicle><body>{element}</body></vehicle>"
    assert corrected(text.encode(), 5.0) == f"<vehicle><body>{expected}</body></vehicle>".encode()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_missing_element_comes_in_as_the_last_of_body_with_its_neighbours_layout(
    newline,
):
    lines = [
        "<vehicle>",
        "\t<body>",
        "\t\t<MeshPath>a</MeshPath> <!-- mesh -->",
        "\t</body>",
        "</vehicle>",
        "",
    ]
    expected = [*lines]
    expected[2] = "\t\t<MeshPath>a</MeshPath>"
    expected.insert(
        3, "\t\t<CenterHeightAboveGroundCm>30</CenterHeightAboveGroundCm> <!-- mesh -->"
    )
    assert corrected(newline.join(lines).encode(), 30.0) == newline.join(expected).encode()


def test_a_missing_element_in_one_line():
    text = b"<vehicle><body><MeshPath>a</MeshPath></body></vehicle>"
    new = b"</MeshPath><CenterHeightAboveGroundCm>-1.5</CenterHeightAboveGroundCm></body>"
    assert corrected(text, -1.5) == text.replace(b"</MeshPath></body>", new)


@pytest.mark.parametrize(
    ("height", "text"),
    [(0.1 + 0.2, "0.3"), (-0.00001, "0"), (100.0, "100"), (1e-3, "0.001")],
)
def test_numbers_as_people_write_them(height, text):
    data = (
        b"<vehicle><body><CenterHeightAboveGroundCm>1</CenterHeightAboveGroundCm></body></vehicle>"
    )
    assert corrected(data, height) == data.replace(b">1<", b">" + text.encode() + b"<")


BOMB = b"""<?xml version="1.0"?>
<!DOCTYPE vehicle [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<vehicle><Name>&b;</Name></vehicle>"""
EXTERNAL = b'<!DOCTYPE vehicle SYSTEM "file:///etc/passwd"><vehicle/>'
DEEP = b"<vehicle>" + b"<a>" * 200 + b"</a>" * 200 + b"</vehicle>"
HEIGHT = b"<CenterHeightAboveGroundCm>1</CenterHeightAboveGroundCm>"


@pytest.mark.parametrize(
    ("data", "named"),
    [
        pytest.param(BOMB, "line 2", id="entities"),
        pytest.param(EXTERNAL, "document type", id="external"),
        pytest.param(
            b"<vehicle>" + b" " * MAX_BYTES + b"</vehicle>",
            "at most 1,000,000",
            id="huge",
        ),
        pytest.param(DEEP, "100 elements deep", id="deep"),
        pytest.param(b"", "no element found", id="empty"),
        pytest.param(b"<vehicle>\n<body>\n</vehicle>", "line 3", id="mismatched-tag"),
        pytest.param(b"<robot/>", "<robot>", id="no-vehicle"),
        pytest.param(
            b"<vehicle><body>" + HEIGHT + b"\n" + HEIGHT + b"</body></vehicle>",
            "line 2",
            id="twice",
        ),
        pytest.param(
            b"<vehicle>" + HEIGHT + b"</vehicle>",
            "expected it in <body>",
            id="elsewhere",
        ),
        pytest.param(
            b"<vehicle><body><CenterHeightAboveGroundCm>tall</CenterHeightAboveGroundCm></body></vehicle>",
            "'tall', expected a number",
            id="no-number",
        ),
        pytest.param(
            b"<vehicle><body><CenterHeightAboveGroundCm><b/>5</CenterHeightAboveGroundCm></body></vehicle>",
            "<b> in CenterHeightAboveGroundCm",
            id="child",
        ),
        pytest.param(
            b'<?xml version="1.0" encoding="rot13"?><vehicle/>',
            "'rot13'",
            id="codec-of-no-text",
        ),
        pytest.param(
            b'<?xml version="1.0" encoding="utf-8"?><vehicle>\xff</vehicle>',
            "byte 48 (0xff)",
            id="bad-byte",
        ),
        pytest.param(
            codecs.BOM_UTF32_LE + "<vehicle/>".encode("utf-32-le"),
            "UTF-32",
            id="utf-32",
        ),
    ],
)
def test_refused_descriptions(data, named):
    with pytest.raises(VehicleXmlError) as caught:
        parse_vehicle_xml(data, "t.xml")
    assert "t.xml" in str(caught.value)
    assert named in str(caught.value)


@pytest.mark.parametrize("text", [b"<vehicle/>", b"<vehicle><body/></vehicle>"])
def test_without_a_body_there_is_no_place(text):
    with pytest.raises(VehicleXmlError, match="body"):
        corrected(text)


@pytest.mark.parametrize("height", [float("nan"), float("inf"), 1e7])
def test_refused_numbers(height):
    with pytest.raises(VehicleXmlError, match="CenterHeightAboveGroundCm"):
        corrected(TARGET.encode(), height)


def test_correction_with_backup_and_difference(tmp_path):
    path = tmp_path / "Target.xml"
    path.write_bytes(TARGET.encode())
    path.chmod(0o640)

    done = correct_center_height(path, 98.25)
    assert (done.old_cm, done.new_cm) == (12.5, 98.25)

    # the mode stays
    assert path.read_bytes() == TARGET.replace(" 12.50 ", " 98.25 ").encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640

    assert done.backup == tmp_path / "Target.xml.bak"
    assert done.backup.read_bytes() == TARGET.encode()

    assert [line for line in done.diff.splitlines() if line[0] in "+-"][2:] == [
        "-    <CenterHeightAboveGroundCm unit='cm > m'> 12.50 <!-- 13 "
        "--></CenterHeightAboveGroundCm>",
        "+    <CenterHeightAboveGroundCm unit='cm > m'> 98.25 <!-- 13 "
        "--></CenterHeightAboveGroundCm>",
    ]

    assert read_vehicle_xml(path).center_height_cm == 98.25


def test_an_older_backup_is_never_overwritten(tmp_path):
    path = tmp_path / "Target.xml"
    path.write_bytes(TARGET.encode())
    backups = [correct_center_height(path, height).backup.name for height in (1.0, 2.0, 3.0)]
    assert backups == ["Target.xml.bak", "Target.xml.bak.1", "Target.xml.bak.2"]
    assert (tmp_path / "Target.xml.bak").read_bytes() == TARGET.encode()
    assert sorted(os.listdir(tmp_path)) == ["Target.xml", *backups]


def test_dry_run_and_an_equal_number_write_nothing(tmp_path):
    path = tmp_path / "Target.xml"
    path.write_bytes(TARGET.encode())
    assert "98.25" in correct_center_height(path, 98.25, dry_run=True).diff
    same = correct_center_height(path, 12.5)
    assert (same.diff, same.backup) == ("", None)
    assert os.listdir(tmp_path) == ["Target.xml"]
    assert path.read_bytes() == TARGET.encode()


def test_a_link_is_followed(tmp_path):
    (tmp_path / "models").mkdir()
    real = tmp_path / "models" / "Target.xml"
    real.write_bytes(TARGET.encode())
    link = tmp_path / "link.xml"
    link.symlink_to(real)
    correct_center_height(link, 98.25)
    assert link.is_symlink()
    assert read_vehicle_xml(real).center_height_cm == 98.25


PIECES = st.lists(
    st.sampled_from(
        [
            "\n",
            "\r\n",
            "\t",
            "  ",
            "<!-- <body> 目 -->",
            "<?app <x> ?>",
            "<!-- CenterHeightAboveGroundCm -->",
        ]
    ),
    max_size=5,
).map("".join)
CHILDREN = st.lists(
    st.sampled_from(
        [
            "<MeshPath>/Game/目标</MeshPath>",
            "<a b='>'/>",
            '<c d="/body>"></c>',
            "<e><![CDATA[<body>]]></e>",
            "x&lt;y",
        ]
    ),
    max_size=4,
).map("".join)


@settings(max_examples=300, deadline=None)
@given(
    gaps=st.tuples(PIECES, PIECES, PIECES, PIECES, PIECES),
    children=st.tuples(CHILDREN, CHILDREN, CHILDREN),
    inside=st.tuples(PIECES, PIECES),
    old=st.sampled_from(["1", "-12.50", "3e1", "&#50;"]),
    new=st.floats(-1e5, 1e5),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "gbk"]),
)
def test_every_other_byte_stays(gaps, children, inside, old, new, encoding):
    """Random layouts: the bytes before and behind the number stay."""
    head = '<?xml version="1.0" encoding="gbk"?>' if encoding == "gbk" else ""
    before = (
        f"{head}{gaps[0]}<vehicle>{children[0]}{gaps[1]}"
        f"<body>{gaps[2]}{children[1]}<CenterHeightAboveGroundCm>"
    )
    behind = f"</CenterHeightAboveGroundCm>{gaps[3]}{children[2]}</body>{gaps[4]}</vehicle>\n"
    before = before + inside[0]
    behind = inside[1] + behind
    data = (before + old + behind).encode(encoding)
    result = corrected(data, new)
    number = f"{new:.4f}".rstrip("0").rstrip(".")
    assert result == (before + ("0" if number == "-0" else number) + behind).encode(encoding)
    assert parse_vehicle_xml(result, "t.xml").center_height_cm == pytest.approx(new, abs=5e-5)


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=200)
    | st.lists(st.sampled_from(TARGET.split(" ")), max_size=40).map(" ".join).map(str.encode)
)
def test_any_bytes_give_a_description_or_its_own_error(data):
    with contextlib.suppress(VehicleXmlError):
        assert parse_vehicle_xml(data, "t.xml").encode() == data
