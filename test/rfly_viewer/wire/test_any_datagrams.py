# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Whatever arrives: the scene takes it or leaves it, and stays drawable."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np

from rfly_ue_bridge.codec.to_rflysim3d import TO_RFLYSIM3D
from rfly_viewer.scene.contacts import find_contacts
from rfly_viewer.scene.scene_state import MAX_LOG_LINES, SceneState
from rfly_viewer.scene.state_batches import read_batches

ROUNDS = 300
WORDS = (  # noqa: SIM905  a list of quoted words is harder to read
    "RflyCameraPosAng RflyChangeVehicleSize RflyMoveVehiclePosAng RflySetVehiclePosAng "
    "RflyReqObjData RflyShowTextTime RflyChange3DModel RflyScanTerrainH RflyChangeMapbyName "
    "RflyChangeViewKeyCmd RflyCameraFovDegrees 1 0 -7 1e9 nan "
    "inf 3.5 x ../../etc P é -1e308"
).split()


def some_datagram(chance):
    kind = chance.choice(list(TO_RFLYSIM3D))
    raw = bytearray(chance.randbytes(kind.size))
    if chance.random() < 0.4:
        raw[4:] = bytes(len(raw) - 4)
        for _ in range(chance.randrange(8)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
    if kind.name.startswith("Ue4CMD") and chance.random() < 0.8:
        text = " ".join(chance.choices(WORDS, k=chance.randrange(1, 9))).encode()
        raw[4:] = text[: kind.size - 5].ljust(kind.size - 4, b"\0")
    if chance.random() < 0.9:
        kind.checksum_struct.pack_into(raw, 0, chance.choice(kind.checksums))
    return bytes(
        raw[
            : chance.choice(
                (
                    len(raw),
                    len(raw),
                    len(raw),
                    chance.randrange(len(raw)),
                )
            )
        ]
    )


def test_random_and_damaged_datagrams_never_raise():
    chance = random.Random(4)
    state = SceneState(search_path=())
    counters = Counter()

    for round_ in range(ROUNDS):
        for update in read_batches([some_datagram(chance) for _ in range(20)], counters):
            state.apply(update, float(round_))
        state.labels.expire(float(round_))
        state.take_events()

        poses = state.vehicles.world(state.terrain)
        if round_ % 20 == 0:
            find_contacts(poses, state.terrain)

        assert np.isfinite(poses.position_ned).all()
        assert np.isfinite(poses.quat_ned_frd).all()
        assert np.isfinite(poses.scale).all()
        assert (np.diff(poses.id) > 0).all()
        assert len(state.log) <= MAX_LOG_LINES

    assert min(counters[reason] for reason in ("length", "checksum", "text")) > 20
    assert {kind.name for kind in TO_RFLYSIM3D} <= set(counters)
