# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A window in RflySim3D's place that takes requests for sensors and sends their data."""

from __future__ import annotations

import json
import socket

from rfly_ue_bridge import encode_fragments, read_request

ENTRY = {
    "SeqID": 0,
    "TypeID": 1,
    "TargetCopter": 1,
    "TargetMountType": 0,
    "DataWidth": 64,
    "DataHeight": 48,
    "DataCheckFreq": 30,
    "SendProtocol": [1, 127, 0, 0, 1, 0, 0, 0],
    "CameraFOV": 90,
    "SensorPosXYZ": [0.3, -0.15, 0.1],
    "SensorAngEular": [0, 0, 0],
    "otherParams": [0] * 8,
}


def free_ports(count):
    """Different UDP ports of this machine that nothing holds."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for opened in sockets:
        opened.bind(("127.0.0.1", 0))
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


def write_config(folder, *entries):
    """The path of a Config.json of entries that differ from ENTRY, each with a free port."""
    whole = []
    for number, (entry, port) in enumerate(zip(entries, free_ports(len(entries)), strict=True)):
        to = {"SendProtocol": [1, 127, 0, 0, 1, port, 0, 0], "SeqID": number}
        whole.append({**ENTRY, **to, **entry})
    path = folder / "Config.json"
    path.write_text(json.dumps({"VisionSensors": whole}), encoding="utf-8")
    return path


class SensorWindow:
    """The window: the newest request of each sensor, and senders of frames."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]
        self.datagrams = []
        self.sensors = {}

    def poll(self):
        """The requests that have come."""
        while True:
            try:
                datagram = self.socket.recv(65536)
            except BlockingIOError:
                return self.datagrams
            self.datagrams.append(datagram)
            sensor = read_request(datagram)
            self.sensors[sensor.seq_id] = sensor

    def send(self, seq_id, payload, time, frame=None):
        """Send a frame to where the sensor's request says."""
        for datagram in encode_fragments(payload, time, frame):
            self.send_raw(seq_id, datagram)

    def send_raw(self, seq_id, datagram):
        sensor = self.sensors[seq_id]
        self.socket.sendto(datagram, (".".join(map(str, sensor.address)), sensor.port))

    def close(self):
        self.socket.close()
