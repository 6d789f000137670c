# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

from rfly_mavlink.autopilots.ardupilot_parameters import (
    ardupilot_parameters as ardupilot_parameters,
)
from rfly_mavlink.autopilots.px4_parameters import px4_parameters as px4_parameters
from rfly_mavlink.links.ardupilot_session import ArdupilotSession as ArdupilotSession
from rfly_mavlink.links.mavlink_hil import HilSession as HilSession
from rfly_mavlink.links.session import LinkSession as LinkSession
from rfly_mavlink.stations.endpoint import MavlinkEndpoint as MavlinkEndpoint
from rfly_mavlink.stations.endpoint import MavlinkVehicle as MavlinkVehicle
