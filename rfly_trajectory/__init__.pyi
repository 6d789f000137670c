# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

from rfly_trajectory.avoidance.avoidance import Avoidance as Avoidance
from rfly_trajectory.avoidance.avoidance import AvoidanceAction as AvoidanceAction
from rfly_trajectory.avoidance.avoidance import OtherVehicles as OtherVehicles
from rfly_trajectory.avoidance.avoidance import abilities as abilities
from rfly_trajectory.fleet.deconflict import AllowedChange as AllowedChange
from rfly_trajectory.fleet.deconflict import deconflict as deconflict
from rfly_trajectory.fleet.fleet import Fleet as Fleet
from rfly_trajectory.fleet.fleet import FleetMotion as FleetMotion
from rfly_trajectory.fleet.fleet import Limits as Limits
from rfly_trajectory.fleet.fleet import Vehicle as Vehicle
from rfly_trajectory.fleet.fleet_file import load_fleet as load_fleet
from rfly_trajectory.fleet.fleet_file import shipped_fleets as shipped_fleets
from rfly_trajectory.motion.speed_profile import SpeedProfile as SpeedProfile
from rfly_trajectory.paths.dubins import Dubins as Dubins
from rfly_trajectory.paths.dubins import DubinsPath as DubinsPath
from rfly_trajectory.paths.dubins import dubins_path as dubins_path
from rfly_trajectory.paths.path import Path as Path
from rfly_trajectory.paths.point_files import read_points as read_points
from rfly_trajectory.paths.shapes import Circle as Circle
from rfly_trajectory.paths.shapes import Ellipse as Ellipse
from rfly_trajectory.paths.shapes import FigureEight as FigureEight
from rfly_trajectory.paths.shapes import LawnMower as LawnMower
from rfly_trajectory.paths.shapes import Line as Line
from rfly_trajectory.paths.shapes import PathShape as PathShape
from rfly_trajectory.paths.shapes import Polyline as Polyline
from rfly_trajectory.paths.shapes import Spline as Spline
