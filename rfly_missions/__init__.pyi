# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

from rfly_common.errors import MissionFileError as MissionFileError
from rfly_missions.execution.completion_monitor import CompletionMonitor as CompletionMonitor
from rfly_missions.execution.path_manager import PathManager as PathManager
from rfly_missions.execution.runner import MissionRunner as MissionRunner
from rfly_missions.followers.fixed_wing import FixedWing as FixedWing
from rfly_missions.followers.fixed_wing import FixedWingLimits as FixedWingLimits
from rfly_missions.followers.ground import Ground as Ground
from rfly_missions.followers.ground_vehicle import GroundVehicle as GroundVehicle
from rfly_missions.followers.ground_vehicle import GroundVehicleLimits as GroundVehicleLimits
from rfly_missions.followers.land_air import LandAir as LandAir
from rfly_missions.followers.multirotor import Multirotor as Multirotor
from rfly_missions.followers.multirotor import MultirotorLimits as MultirotorLimits
from rfly_missions.mission.files import Mission as Mission
from rfly_missions.mission.files import read_mission as read_mission
from rfly_missions.mission.files import write_mission as write_mission
from rfly_missions.mission.geofence import FenceCircle as FenceCircle
from rfly_missions.mission.geofence import FencePolygon as FencePolygon
from rfly_missions.mission.geofence import Geofence as Geofence
from rfly_missions.mission.items import MissionCommand as MissionCommand
from rfly_missions.mission.items import MissionItem as MissionItem
from rfly_missions.mission.items import MissionMode as MissionMode
from rfly_missions.mission.items import MissionParams as MissionParams
from rfly_missions.mission.items import UAVPathManagerBus as UAVPathManagerBus
from rfly_missions.mission.legs import DriveLeg as DriveLeg
from rfly_missions.mission.legs import FlyLeg as FlyLeg
