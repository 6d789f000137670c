# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Config.json as RflySim's users write it, and the notes about it."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_common.errors import ConfigError
from rfly_ue_bridge import RequestLayout, VisionConfig
from rfly_ue_bridge.sensors.vision_config import to_own_address
from rfly_ue_bridge.sockets.udp_sender import local_address_towards

ENTRY = {
    "SeqID": 0,
    "TypeID": 1,
    "TargetCopter": 1,
    "TargetMountType": 0,
    "DataWidth": 640,
    "DataHeight": 480,
    "DataCheckFreq": 30,
    "SendProtocol": [1, 127, 0, 0, 1, 0, 0, 0],
    "CameraFOV": 90,
    "SensorPosXYZ": [0.3, -0.15, 0],
    "SensorAngEular": [0, 0, 0],
    "otherParams": [0] * 8,
}
NEW = {"EularOrQuat": 1, "SensorAngQuat": [0.6, 0, 0.8, 0], "otherParams": [100.0] + [0] * 15}


def config(*entries, **options):
    """The configuration of entries that differ from ENTRY; None leaves a key out."""
    whole = [{k: v for k, v in {**ENTRY, **e}.items() if v is not None} for e in entries]
    return VisionConfig.parse(json.dumps({"VisionSensors": whole}), **options)


def test_an_entry_becomes_a_sensor_and_its_request():
    found = config({})
    (sensor,) = found.sensors
    assert found.warnings == ()
    assert (sensor.seq_id, sensor.type_id, sensor.port) == (0, 1, 9999)
    assert (sensor.position, sensor.address) == ((0.3, -0.15, 0.0), (127, 0, 0, 1))

    ((datagram, port),) = found.requests()
    head = "393000000100010000008002e0011e0001007f000000000001000f27"
    angle_and_position = "000000000000b4429a99993e9a9919be"
    assert (datagram.hex(), port) == (head + angle_and_position + "00" * 100, 20010)
    assert [(len(d), p) for d, p in found.requests(RequestLayout.OLD, window=2)] == [(92, 20012)]
    assert [(len(d), p) for d, p in found.requests(RequestLayout.NEW, port=5)] == [(148, 5)]


def test_comments_and_last_commas(tmp_path):
    text = """// sensors
    {   # the only key
        "VisionSensors": [ /* one
            sensor */
            {"SeqID": 0, "TypeID": 1, "TargetCopter": 1, "TargetMountType": 0, "DataWidth": 640,
             "DataHeight": 480, "DataCheckFreq": 30, "SendProtocol": [1, 127, 0, 0, 1, 0, 0, 0,],
             "note": "a // and a # and a , ] in a text", // 9999
             "CameraFOV": 90, "SensorPosXYZ": [0.3, -0.15, 0], "SensorAngEular": [0, 0, 0],
             "otherParams": [0, 0, 0, 0, 0, 0, 0, 0],
            }, # the end
        ],
    }"""
    for encoding in ("utf-8", "utf-8-sig"):
        file = tmp_path / "Config.json"
        file.write_text(text, encoding=encoding)
        assert VisionConfig.read(file) == config({})
    file.write_text(text.replace("// sensors", "// 传感器"), encoding="gb18030")

    assert VisionConfig.read(file) == config({})


def test_both_forms_and_both_spellings():
    found = config(
        {**NEW, "SensorAngEular": None, "SensorAngEuler": [1, 2, 3]},
        {**NEW, "EularOrQuat": None, "EulerOrQuat": 0},
        {},
    )
    first, second, third = found.sensors
    assert (first.euler_or_quat, first.euler_deg) == (1.0, (1.0, 2.0, 3.0))
    assert first.quat_xyzw == (0.0, 0.8, 0.0, 0.6)
    assert first.parameters == (100.0, *(0.0,) * 15)
    assert second.euler_or_quat == 0.0
    assert third.parameters == (0.0,) * 16
    assert found.warnings == ()


def test_numbers_go_on_from_the_last_one():
    """A 0 behind the first entry is the number before it plus one."""
    ids = [{"SeqID": n} for n in (0, 0, 5, 0, 3)]
    assert [(s.seq_id, s.port) for s in config(*ids).sensors] == [
        (0, 9999), (1, 10000), (5, 10004), (6, 10005), (3, 10002)
    ]  # fmt: skip
    assert [s.seq_id for s in config({"SeqID": 2}, {"SeqID": 0}).sensors] == [2, 3]
    with pytest.raises(ConfigError, match=re.escape("VisionSensors[1].SeqID: 1")):
        config({"SeqID": 1}, {"SeqID": 1})


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"otherParams": [0] * 16}, "SDK leaves this sensor out"),
        ({"otherParams": None}, "SDK leaves this sensor out"),
        ({**NEW, "otherParams": [0] * 8}, "SDK leaves this sensor out"),
        ({**NEW, "EularOrQuat": 0, "SensorAngQuat": None}, "SDK leaves this sensor out"),
        ({"SendProtocol": [1, 127, 0, 0, 1, 9999, 0]}, "SendProtocol has 7"),
        ({"SendProtocol": [0, 127, 0, 0, 1, 9999, 0, 0]}, "shared memory"),
        ({"TypeID": 77}, "TypeID 77"),
        ({"TypeID": 7}, "scale of the depth cloud"),
        ({"TargetMountType": 4, "TargetCopter": 5}, "sensor 5"),
    ],
)
def test_what_the_sdk_would_hide_is_told(entry, told):
    found = config(entry)
    assert len(found.warnings) == len(found.sensors) == 1
    assert "VisionSensors[0]" in found.warnings[0]
    assert told in found.warnings[0]


def test_shared_memory_is_sent_as_udp_and_rate_0_as_30():
    (sensor,) = config({"SendProtocol": [0, 0, 0, 0, 0, 0, 0, 0], "DataCheckFreq": 0}).sensors
    assert (sensor.way, sensor.address, sensor.port) == (1, (0, 0, 0, 0), 9999)
    assert sensor.rate == 30


def test_a_port_is_of_one_sensor_only():
    same = {"SendProtocol": [1, 127, 0, 0, 1, 9999, 0, 0]}
    found = config(same, same, same)
    assert [sensor.port for sensor in found.sensors] == [9999, 10000, 10001]
    assert len(found.warnings) == 2
    with pytest.raises(ConfigError, match="SendProtocol"):
        config({"SendProtocol": [1, 127, 0, 0, 1, 10000, 0, 0]}, {})


@pytest.mark.parametrize(
    ("angles", "suspicious"),
    [
        ([0, -1.5708, 0], True),
        ([0, 0, 3.14], True),
        ([0, -1.57, 90], False),
        ([0, 1.2, 0], False),
        ([0, -90, 0], False),
        ([0, 0, 0], False),
    ],
)
def test_angles_that_look_like_radians_are_told(angles, suspicious):
    assert any("radians" in text for text in config({"SensorAngEular": angles}).warnings) is (
        suspicious
    )
    assert config({"SensorAngEular": angles}, angle_unit="rad").warnings == ()


def test_angles_in_radians_become_degrees():
    (sensor,) = config({"SensorAngEular": [0, -1.5707963, 3.1415927]}, angle_unit="rad").sensors
    assert sensor.euler_deg == pytest.approx((0.0, -90.0, 180.0), abs=1e-5)


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        ({"DataWidth": 640.5}, "DataWidth: 640.5"),
        ({"DataHeight": True}, "DataHeight: True"),
        ({"DataHeight": 70000}, "DataHeight: 70000"),
        ({"TypeID": None}, "TypeID is missing"),
        ({"TargetMountType": 5}, "TargetMountType: 5"),
        ({"SensorPosXYZ": [1, 2]}, "SensorPosXYZ: "),
        ({"SensorPosXYZ": [1, 2, "3"]}, "SensorPosXYZ: "),
        ({"CameraFOV": 1e40}, "CameraFOV: "),
        ({"otherParams": [0] * 9}, "otherParams: "),
        ({"SendProtocol": [1, 256, 0, 0, 1, 0, 0, 0]}, "SendProtocol[1]: 256"),
        ({"SendProtocol": "udp"}, "SendProtocol: 'udp'"),
        ({**NEW, "SensorAngQuat": [1, 1, 0, 0]}, "SensorAngQuat: "),
        ({**NEW, "SensorAngQuat": None}, "SensorAngQuat: "),
    ],
)
def test_errors_name_entry_and_key(entry, named):
    with pytest.raises(ConfigError) as caught:
        config({}, entry)
    assert "VisionSensors[1]" in str(caught.value)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"VisionSensors": []}', '{"VisionSensors": [3]}', "[" * 9999, "{"]
)
def test_texts_that_are_no_configuration(text, tmp_path):
    file = tmp_path / "Config.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"Config\.json"):
        VisionConfig.read(file)


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        VisionConfig.read(tmp_path / "Config.json")


@given(st.text(alphabet='{}[]",:/#*\n\\ aV0.', max_size=60))
def test_any_text_is_read_or_refused(text):
    with pytest.raises(ConfigError):
        VisionConfig.parse(text)


@pytest.mark.parametrize("host", ["127.0.0.1", "203.0.113.9"])
def test_data_are_sent_to_the_address_that_is_listened_on(host):
    """A socket bound to one of several addresses gets nothing that is sent to another."""
    entry = {"TypeID": 1, "TargetCopter": 1, "TargetMountType": 0, "SensorPosXYZ": [0, 0, 0]}
    entry |= {"DataWidth": 64, "DataHeight": 48, "DataCheckFreq": 10, "SensorAngEular": [0, 0, 0]}
    entry |= {"CameraFOV": 90, "otherParams": [0] * 8}

    def sent_to(address: str, bind: str) -> str:
        entries = [{**entry, "SendProtocol": [1, *map(int, address.split(".")), 0, 0, 0]}]
        (sensor,) = VisionConfig.parse(json.dumps({"VisionSensors": entries})).sensors
        return ".".join(map(str, to_own_address(sensor, host, bind).address))

    facing = local_address_towards(host) or "127.0.0.1"
    assert sent_to("127.0.0.1", "10.9.8.7") == sent_to("0.0.0.0", "10.9.8.7") == "10.9.8.7"
    assert sent_to("127.0.0.1", "0.0.0.0") == sent_to("127.0.0.1", "127.0.0.1") == facing
    assert sent_to("127.0.0.1", "127.0.0.2") == "127.0.0.2"
    assert sent_to("10.1.1.1", "10.9.8.7") == "10.1.1.1"
    with pytest.raises(ConfigError, match="bind: 'here' is no IPv4 address"):
        sent_to("127.0.0.1", "here")
