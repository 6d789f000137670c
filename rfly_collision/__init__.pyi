# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

from rfly_collision.narrow_phase.bodies import Bodies as Bodies
from rfly_collision.narrow_phase.bodies import Contacts as Contacts
from rfly_collision.shapes.shape import Box as Box
from rfly_collision.shapes.shape import Capsule as Capsule
from rfly_collision.shapes.shape import ConvexHull as ConvexHull
from rfly_collision.shapes.shape import Shape as Shape
from rfly_collision.shapes.shape import Sphere as Sphere
from rfly_collision.shapes.vehicle_shapes import VehicleShape as VehicleShape
from rfly_collision.shapes.vehicle_shapes import VehicleShapes as VehicleShapes
from rfly_collision.shapes.vehicle_shapes import load_shapes as load_shapes
from rfly_collision.shapes.vehicle_shapes import shipped_shapes as shipped_shapes
from rfly_collision.world.collision_world import CollisionWorld as CollisionWorld
from rfly_collision.world.contact_tracker import ContactEvents as ContactEvents
from rfly_collision.world.scene import Scene as Scene
from rfly_common.errors import BodiesError as BodiesError
from rfly_common.errors import CrowdError as CrowdError
from rfly_common.errors import ShapeError as ShapeError
