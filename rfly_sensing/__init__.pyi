# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

from rfly_sensing.cameras import ColorCamera as ColorCamera
from rfly_sensing.cameras import DepthCamera as DepthCamera
from rfly_sensing.cameras import Gimbal as Gimbal
from rfly_sensing.lidar import Lidar as Lidar
from rfly_sensing.lidar import VehicleTrack as VehicleTrack
from rfly_sensing.neighbours import world_bodies as world_bodies
from rfly_sensing.scene_rays import SceneBodies as SceneBodies
from rfly_sensing.scene_rays import SceneRays as SceneRays
