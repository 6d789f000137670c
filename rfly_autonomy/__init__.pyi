# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

from rfly_autonomy.control.attitude_controller import AttitudeLaw as AttitudeLaw
from rfly_autonomy.control.attitude_controller import load_attitude_law as load_attitude_law
from rfly_autonomy.control.chassis_controller import ChassisController as ChassisController
from rfly_autonomy.control.flight_controller import FlightController as FlightController
from rfly_autonomy.control.pilot import Pilot as Pilot
from rfly_autonomy.control.pilot import abort_pilot as abort_pilot
from rfly_autonomy.control.setpoint import Setpoint as Setpoint
from rfly_autonomy.estimation.estimate import Estimate as Estimate
from rfly_autonomy.estimation.estimator import StateEstimator as StateEstimator
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters as EstimatorParameters
from rfly_autonomy.guidance.mission_guide import MissionGuide as MissionGuide
from rfly_autonomy.guidance.on_board import OnBoard as OnBoard
from rfly_autonomy.guidance.planner_class import planner_class as planner_class
from rfly_autonomy.mapping.elevation_map import ElevationMap as ElevationMap
from rfly_autonomy.mapping.elevation_map import ElevationParameters as ElevationParameters
from rfly_autonomy.mapping.octomap_grid import OctomapGrid as OctomapGrid
from rfly_autonomy.mapping.octomap_parameters import OctomapParameters as OctomapParameters
from rfly_autonomy.mapping.pose_track import PoseTrack as PoseTrack
