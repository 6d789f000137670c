// Copyright 2026 rfly_suite maintainers
// SPDX-License-Identifier: Apache-2.0

// The land-air vehicle's equations (docs/model) as one would write them in C++ without further ado, for
// `bench_compiler.py`: vectors, one vehicle, RK4. `land_air.h` is written from the model's own layout and parameters.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "land_air.h"

namespace {

struct Ground {
  const float* z;
  int64_t rows, columns;
  double origin_x, origin_y, step_x, step_y;
};

struct Vector {
  double x, y, z;
};
Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
Vector operator*(double f, Vector a) { return {f * a.x, f * a.y, f * a.z}; }
double dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
Vector cross(Vector a, Vector b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
Vector at(const double* x) { return {x[0], x[1], x[2]}; }

struct Rotation {
  Vector rows[3];
  explicit Rotation(const double* q) {
    double w = q[0], x = q[1], y = q[2], z = q[3], s = 2 / (w * w + x * x + y * y + z * z);
    rows[0] = {1 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)};
    rows[1] = {s * (x * y + w * z), 1 - s * (x * x + z * z), s * (y * z - w * x)};
    rows[2] = {s * (x * z - w * y), s * (y * z + w * x), 1 - s * (x * x + y * y)};
  }
  Vector operator()(Vector a) const { return {dot(rows[0], a), dot(rows[1], a), dot(rows[2], a)}; }
  Vector back(Vector a) const { return a.x * rows[0] + a.y * rows[1] + a.z * rows[2]; }
};

double clamp(double value, double low, double high) { return std::min(std::max(value, low), high); }

struct Cell {
  int64_t i, j;
  double a, b;
  Cell(const Ground& g, double x, double y) {
    double u = clamp((x - g.origin_x) / g.step_x, 0, g.rows - 1.0), v = clamp((y - g.origin_y) / g.step_y, 0, g.columns - 1.0);
    i = std::min<int64_t>(int64_t(u), g.rows - 2), j = std::min<int64_t>(int64_t(v), g.columns - 2);
    a = u - i, b = v - j;
  }
  double between(double f00, double f01, double f10, double f11) const {
    return (f00 * (1 - b) + f01 * b) * (1 - a) + (f10 * (1 - b) + f11 * b) * a;
  }
};

double altitude(const Ground& g, double x, double y) {
  Cell c(g, x, y);
  const float *p = g.z + c.i * g.columns + c.j, *q = p + g.columns;
  return c.between(p[0], p[1], q[0], q[1]);
}

double slope_x(const Ground& g, int64_t i, int64_t j) {
  int64_t low = std::max<int64_t>(i - 1, 0), high = std::min(i + 1, g.rows - 1);
  return (double(g.z[high * g.columns + j]) - g.z[low * g.columns + j]) / ((high - low) * g.step_x);
}

double slope_y(const Ground& g, int64_t i, int64_t j) {
  int64_t low = std::max<int64_t>(j - 1, 0), high = std::min(j + 1, g.columns - 1);
  return (double(g.z[i * g.columns + high]) - g.z[i * g.columns + low]) / ((high - low) * g.step_y);
}

Vector normal_at(const Ground& g, double x, double y) {
  Cell c(g, x, y);
  int64_t i = c.i, j = c.j;
  double along_x = c.between(slope_x(g, i, j), slope_x(g, i, j + 1), slope_x(g, i + 1, j), slope_x(g, i + 1, j + 1));
  double along_y = c.between(slope_y(g, i, j), slope_y(g, i, j + 1), slope_y(g, i + 1, j), slope_y(g, i + 1, j + 1));
  return 1 / std::sqrt(along_x * along_x + along_y * along_y + 1) * Vector{-along_x, -along_y, 1};
}

struct Wheel {
  Vector hub, axle, heading, left, normal;
  double height, load, compression, distance, radius, speed, gain_x, gain_y, limit_x, limit_y, slip;
};

// what is needed of an evaluation after the step
struct Met {
  Wheel wheels[4];
  Vector specific_force;
  double rotor_down_speed;
  int points_down;
};

struct Body {
  Rotation rotation;
  Vector velocity, air, rates, gravity;
};

Vector axle_of(int i, double steering, const Parameters& p) {
  double tangent = p.steering_sign[i] * steering / (1 - p.point_y[i] * steering / p.steering_lever);
  double cosine = 1 / std::sqrt(1 + tangent * tangent);
  return {-tangent * cosine, cosine, 0};
}

double magic_formula(double slip, double shape, double curvature) {
  double z = slip / shape;
  return std::sin(shape * std::atan(z - curvature * (z - std::atan(z))));
}

void contact(const double* x, int i, const Body& body, const Parameters& p, const Ground& g, Vector place, double* dx, Wheel& w) {
  Vector up = normal_at(g, place.x, place.y), normal = body.rotation.back(up);
  double distance = w.height * up.z;
  if (distance >= p.wheel_radius || normal.z <= 0.2) return;
  Vector velocity = body.velocity + cross(body.rates, w.hub) + Vector{0, 0, x[STRUT_RATE + i]};
  w.compression = p.wheel_radius - distance;
  w.load = std::max(0.0, p.tyre_stiffness * w.compression - p.tyre_damping * dot(velocity, normal));
  if (w.load <= 0) return;
  Vector heading = cross(w.axle, normal);
  w.heading = 1 / std::sqrt(dot(heading, heading)) * heading;
  w.left = cross(normal, w.heading);
  w.normal = normal;
  w.distance = distance, w.radius = p.wheel_radius - w.compression / 3;
  double along = dot(velocity, w.heading), slide_x = along - w.radius * x[WHEEL_SPEED + i];
  double slide_y = dot(velocity + cross(body.rates, -distance * normal), w.left);
  w.speed = std::abs(along);
  dx[TYRE_X + i] = -slide_x - w.speed * x[TYRE_X + i] / p.relaxation_x;
  dx[TYRE_Y + i] = -slide_y - w.speed * x[TYRE_Y + i] / p.relaxation_y;
  double guarded = std::max(w.load, 1e-6 * p.nominal_load), ratio = guarded / (p.cornering_load_ratio * p.nominal_load);
  double friction = std::max(0.2, 1 - p.friction_load_loss * (guarded - p.nominal_load) / p.nominal_load) * guarded;
  double peak_x = p.friction_x * friction, peak_y = p.friction_y * friction;
  w.gain_x = p.slip_stiffness * guarded / (p.relaxation_x * peak_x);
  w.gain_y = p.cornering_stiffness[i] * std::sin(2 * std::atan(ratio)) / (p.relaxation_y * peak_y);
  double slip_x = w.gain_x * x[TYRE_X + i], slip_y = w.gain_y * x[TYRE_Y + i];
  if (w.speed < p.low_speed) {
    double damping = 0.5 * (1 + std::cos(M_PI * w.speed / p.low_speed)) * p.low_speed_damping * w.load / p.nominal_load;
    slip_x -= damping * slide_x / peak_x;
    slip_y -= damping * slide_y / peak_y;
  }
  w.slip = std::sqrt(slip_x * slip_x + slip_y * slip_y);
  double share = 1 / std::max(w.slip, 1e-300);
  w.limit_x = peak_x * slip_x * share, w.limit_y = peak_y * slip_y * share;
}

double strut_force(const double* x, int i, const Parameters& p) {
  double strut = x[STRUT + i], rate = x[STRUT_RATE + i], other = x[STRUT + (i ^ 1)];
  double force = std::max(0.0, p.spring_load[i] + p.spring[i] * strut) + (rate > 0 ? p.bump_damping : p.rebound_damping) * rate;
  if (strut > p.bump_stop) force += std::max(0.0, p.bump_stop_stiffness * (strut - p.bump_stop) + p.stop_damping * rate);
  if (strut < p.rebound_stop) force += std::min(0.0, p.rebound_stop_stiffness * (strut - p.rebound_stop) + p.stop_damping * rate);
  return force + p.anti_roll[i] * (strut - other);
}

double torque_ratio(const Parameters& p, double speed, double thrust, Vector velocity) {
  double hover = std::max(speed * std::sqrt(p.thrust_coefficient / (2 * M_PI * p.air_density)) / p.rotor_radius, 1e-9);
  double climb = velocity.z / hover, level = std::hypot(velocity.x, velocity.y) / hover;
  double steepest = std::max(climb, -1.5 * std::sqrt(thrust));
  double induced = 2 * thrust / (steepest + std::sqrt(steepest * steepest + 4 * (thrust + level * level)) + 1e-300);
  for (int k = 0; k < 3; ++k) {
    double through = steepest + induced, square = level * level + through * through;
    double error = induced * induced * square - thrust * thrust;
    double slope = 2 * induced * (square + induced * through), bend = 2 * (square + induced * (4 * through + induced));
    induced -= 2 * error * slope / (2 * slope * slope - error * bend + 1e-300);
  }
  double drag = (thrust - 1) * (-0.0216 * 0.1 + 0.400 * 0.01 * (thrust + 1)) / 0.01054;
  return 1 + p.figure_of_merit * (thrust * (climb + induced) - 1) + (1 - p.figure_of_merit) * drag;
}

void derivative(const double* x, const double* command, const double* brake, Vector wind, const Parameters& p, const Ground& g,
                double* dx, Met& met) {
  Rotation rotation(x + QUATERNION);
  Body body{rotation, rotation.back(at(x + VELOCITY)), rotation.back(at(x + VELOCITY) - wind), at(x + RATES),
            -p.gravity * rotation.rows[2]};
  double steering = std::tan(x[ROTOR_SPEED + p.rotors]);
  Vector force{0, 0, 0}, moment{0, 0, 0}, turning{0, 0, 0};

  // weight and drag
  double quadratic = std::sqrt(dot(body.air, body.air));
  force = {p.mass_sprung * body.gravity.x - (p.linear_drag[0] + quadratic * p.drag_area[0]) * body.air.x,
           p.mass_sprung * body.gravity.y - (p.linear_drag[1] + quadratic * p.drag_area[1]) * body.air.y,
           p.mass_sprung * body.gravity.z - (p.linear_drag[2] + quadratic * p.drag_area[2]) * body.air.z};
  moment = {-p.rotational_drag[0] * body.rates.x, -p.rotational_drag[1] * body.rates.y, -p.rotational_drag[2] * body.rates.z};

  // wheels
  for (int i = 0; i < 4; ++i) {
    Wheel& w = met.wheels[i];
    w = {};
    w.hub = {p.point_x[i], p.point_y[i], p.point_z[i] + x[STRUT + i]};
    w.axle = axle_of(i, steering, p);
    dx[TYRE_X + i] = dx[TYRE_Y + i] = 0;
    Vector place = at(x + POSITION) + rotation(w.hub);
    w.height = place.z - altitude(g, place.x, place.y);
    contact(x, i, body, p, g, place, dx, w);
    double motor = x[ROTOR_SPEED + p.rotors + 1 + i] + brake[i], rate = x[STRUT_RATE + i];
    Vector tyre{0, 0, 0}, couple{0, 0, 0};
    dx[WHEEL_SPEED + i] = motor / p.wheel_inertia;
    if (w.load > 0) {
      double force_x = w.limit_x * magic_formula(w.slip, p.shape_x, p.curvature_x);
      double force_y = w.limit_y * magic_formula(w.slip, p.shape_y, p.curvature_y);
      tyre = force_x * w.heading + force_y * w.left + w.load * w.normal;
      double driving = motor - w.radius * force_x, most = p.rolling_resistance * w.load * w.radius;
      double resistance = clamp(driving + most * w.radius * x[WHEEL_SPEED + i] / p.rolling_speed, -most, most);
      dx[WHEEL_SPEED + i] = (driving - resistance) / p.wheel_inertia;
      couple = cross(-w.distance * w.normal, tyre);
    }
    double strut = strut_force(x, i, p);
    Vector apart = dot(body.rates, w.hub) * body.rates - dot(body.rates, body.rates) * w.hub +
                   Vector{2 * rate * body.rates.y, -2 * rate * body.rates.x, 0};
    Vector passed{tyre.x + p.mass_unsprung * (body.gravity.x - apart.x), tyre.y + p.mass_unsprung * (body.gravity.y - apart.y), strut};
    couple = couple - (dot(couple, w.axle) + motor) * w.axle;
    force = force + passed;
    moment = moment + cross(w.hub, passed) + couple;
    dx[STRUT + i] = rate;
    dx[STRUT_RATE + i] = body.gravity.z + (tyre.z - strut) / p.mass_unsprung - apart.z;
    turning = turning + p.wheel_inertia * x[WHEEL_SPEED + i] * w.axle;
  }

  // rotors, and what of the body touches the ground
  met.rotor_down_speed = -1, met.points_down = 0;
  for (int k = FIRST_ROTOR; k < POINTS; ++k) {
    if (k >= FIRST_ROTOR + p.rotors && k < FIRST_CORNER) continue;  // room for rotors
    Vector point{p.point_x[k], p.point_y[k], p.point_z[k]}, place = at(x + POSITION) + rotation(point);
    double height = place.z - altitude(g, place.x, place.y);
    if (k < FIRST_CORNER) {
      int j = k - FIRST_ROTOR;
      double speed = x[ROTOR_SPEED + j];
      Vector velocity = body.air + cross(body.rates, point);
      double still = p.thrust_coefficient * speed * speed;
      double thrust = clamp(still - p.inflow_coefficient * speed * velocity.z, 0, 1.5 * still);
      double torque = torque_ratio(p, speed, thrust / std::max(still, 1e-300), velocity);
      if (p.ground_effect) {
        double nearness = p.rotor_radius / (4 * std::max(height, 0.5 * p.rotor_radius));
        thrust /= 1 - nearness * nearness;
      }
      double drag = -p.rotor_drag_coefficient * speed;
      Vector push{drag * velocity.x, drag * velocity.y, thrust};
      double resistance = p.torque_coefficient * speed * std::abs(speed) * torque;
      double rate = (clamp(command[ROTOR_COMMAND + j], 0, p.max_rotor_speed) - speed) / p.rotor_lag;
      force = force + push;
      moment = moment + cross(point, push) + Vector{0, 0, -p.rotor_spin[j] * (resistance + p.rotor_inertia * rate)};
      dx[ROTOR_SPEED + j] = rate;
      turning.z += p.rotor_inertia * p.rotor_spin[j] * speed;
      if (height < 0) met.rotor_down_speed = std::max(met.rotor_down_speed, speed);
    }
    if (height >= 0) continue;
    ++met.points_down;
    Vector up = normal_at(g, place.x, place.y), normal = rotation.back(up), velocity = body.velocity + cross(body.rates, point);
    double approach = dot(velocity, normal), push = std::max(0.0, -p.body_stiffness * height * up.z - p.body_damping * approach);
    Vector sliding = velocity - approach * normal;
    double speed = std::sqrt(dot(sliding, sliding));
    Vector pressed = push * normal - p.body_friction * push * std::tanh(speed / 0.1) / std::max(speed, 1e-12) * sliding;
    force = force + pressed;
    moment = moment + cross(point, pressed);
  }

  // accelerations: section 7 with the unsprung masses' share taken out
  const double *J = p.inertia, mass = p.mass_unsprung, share = mass / p.mass;
  Vector w = body.rates, sum{0, 0, 0};
  double xx = 0, yy = 0, zz = 0, xz = 0, yz = 0;
  for (const Wheel& wheel : met.wheels) {
    Vector h = wheel.hub;
    sum = sum + h;
    xx += h.x * h.x, yy += h.y * h.y, zz += h.z * h.z, xz += h.x * h.z, yz += h.y * h.z;
  }
  turning = turning + Vector{J[0] * w.x + J[3] * w.y + J[4] * w.z, J[3] * w.x + J[1] * w.y + J[5] * w.z, J[4] * w.x + J[5] * w.y + J[2] * w.z};
  moment = moment + cross(turning, w);
  Vector m = moment + share * Vector{sum.z * force.y, -sum.z * force.x, sum.y * force.x - sum.x * force.y};
  double a00 = J[0] + mass * (zz - share * sum.z * sum.z), a11 = J[1] + mass * (zz - share * sum.z * sum.z);
  double a22 = J[2] + mass * (xx + yy - share * (sum.x * sum.x + sum.y * sum.y)), a01 = J[3];
  double a02 = J[4] - mass * (xz - share * sum.x * sum.z), a12 = J[5] - mass * (yz - share * sum.y * sum.z);
  Vector r0{a00, a01, a02}, r1{a01, a11, a12}, r2{a02, a12, a22};  // Cramer's rule
  Vector c0 = cross(r1, r2), c1 = cross(r2, r0), c2 = cross(r0, r1);
  Vector turn = 1 / dot(r0, c0) * Vector{dot({c0.x, c1.x, c2.x}, m), dot({c0.y, c1.y, c2.y}, m), dot({c0.z, c1.z, c2.z}, m)};
  Vector acceleration{force.x / p.mass - share * (sum.z * turn.y - sum.y * turn.z),
                      force.y / p.mass - share * (sum.x * turn.z - sum.z * turn.x), force.z / p.mass_sprung};
  met.specific_force = acceleration - body.gravity;

  // rates
  Vector world = rotation(acceleration);
  const double* q = x + QUATERNION;
  std::copy(x + VELOCITY, x + VELOCITY + 3, dx + POSITION);
  dx[VELOCITY] = world.x, dx[VELOCITY + 1] = world.y, dx[VELOCITY + 2] = world.z;
  dx[RATES] = turn.x, dx[RATES + 1] = turn.y, dx[RATES + 2] = turn.z;
  dx[QUATERNION] = -0.5 * (q[1] * w.x + q[2] * w.y + q[3] * w.z);
  dx[QUATERNION + 1] = 0.5 * (q[0] * w.x + q[2] * w.z - q[3] * w.y);
  dx[QUATERNION + 2] = 0.5 * (q[0] * w.y + q[3] * w.x - q[1] * w.z);
  dx[QUATERNION + 3] = 0.5 * (q[0] * w.z + q[1] * w.y - q[2] * w.x);
  for (int i = 0; i < 4; ++i) dx[STRUT_RATE + i] -= acceleration.z + turn.x * met.wheels[i].hub.y - turn.y * met.wheels[i].hub.x;
  double wanted = clamp(command[STEERING_COMMAND], -p.max_steering, p.max_steering);
  int64_t angle = ROTOR_SPEED + p.rotors;
  dx[angle] = clamp((wanted - x[angle]) / p.steering_lag, -p.max_steering_rate, p.max_steering_rate);
  for (int i = 0; i < 4; ++i) {
    double limit = p.driven[i] * std::min(p.max_drive_torque, p.drive_power / std::max(std::abs(x[WHEEL_SPEED + i]), 1e-3));
    dx[angle + 1 + i] = (clamp(command[DRIVE_COMMAND + i], -limit, limit) - x[angle + 1 + i]) / p.drive_lag;
  }
}

void brake(double* x, const double* command, double* acting, double dt, const Parameters& p) {
  double steering = std::tan(x[ROTOR_SPEED + p.rotors]);
  for (int i = 0; i < 4; ++i) {
    double carrier = dot(axle_of(i, steering, p), at(x + RATES));
    double free = x[WHEEL_SPEED + i] - dt * acting[i] / p.wheel_inertia - carrier;
    double torque = clamp(command[BRAKE_COMMAND + i], 0, p.max_brake_torque);
    double slowed = std::copysign(std::max(0.0, std::abs(free) - dt * torque / p.wheel_inertia), free);
    acting[i] = p.wheel_inertia * (slowed - free) / dt;
    x[WHEEL_SPEED + i] = slowed + carrier;
  }
}

void project(double* x, const Parameters& p, const Met& met) {
  double* q = x + QUATERNION;
  double norm = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  for (int k = 0; k < 4; ++k) q[k] /= norm;
  for (int j = 0; j < p.rotors; ++j) x[ROTOR_SPEED + j] = std::max(x[ROTOR_SPEED + j], 0.0);
  for (int i = 0; i < 4; ++i) {
    const Wheel& w = met.wheels[i];
    double slip = w.load > 0 ? std::sqrt(std::pow(w.gain_x * x[TYRE_X + i], 2) + std::pow(w.gain_y * x[TYRE_Y + i], 2)) : 0;
    double largest = p.peak_slip + (p.max_slip_deflection - p.peak_slip) * std::min(1.0, w.speed / p.low_speed);
    double kept = w.load > 0 ? (slip > largest ? largest / slip : 1) : 0;
    x[TYRE_X + i] *= kept, x[TYRE_Y + i] *= kept;
  }
}

// whether it has crashed or its state is no number any more
bool fails(const double* x, int64_t states, double dt, const Parameters& p, const Met& met, double& overturned) {
  double limit = p.max_impact * p.gravity;
  bool failed = met.points_down > 0 && dot(met.specific_force, met.specific_force) > limit * limit;
  for (const Wheel& w : met.wheels) failed |= w.compression > p.max_tyre_compression * p.wheel_radius;
  failed |= met.rotor_down_speed > p.max_strike_speed * p.max_rotor_speed;
  const double* q = x + QUATERNION;
  overturned = 1 - 2 * (q[1] * q[1] + q[2] * q[2]) < 0.5 && met.points_down > 0 ? overturned + dt : 0;
  for (int64_t n = 0; n < states; ++n) failed |= !std::isfinite(x[n]);
  return failed || overturned >= 0.5 || dot(at(x + POSITION), at(x + POSITION)) > 1e12;
}
}  // namespace

// `steps` RK4 steps of one vehicle, x -> x; the number of steps without a crash
extern "C" int64_t land_air_steps(double* x, const double* command, const double* wind, const Parameters& p, const Ground& g,
                                  double dt, int64_t steps) {
  constexpr double AHEAD[4] = {0.5, 0.5, 1, 0}, WEIGHT[4] = {1, 2, 2, 1};
  int64_t states = FIXED_STATES + p.rotors;
  double acting[4] = {}, rate[FIXED_STATES + MAX_ROTORS] = {}, point[FIXED_STATES + MAX_ROTORS], total[FIXED_STATES + MAX_ROTORS];
  double overturned = 0;
  for (int64_t step = 0; step < steps; ++step) {
    Met first, later;
    std::copy(x, x + states, point);
    std::fill(total, total + states, 0.0);
    for (int stage = 0; stage < 4; ++stage) {
      derivative(point, command, acting, at(wind), p, g, rate, stage ? later : first);
      for (int64_t n = 0; n < states; ++n) {
        total[n] += WEIGHT[stage] * rate[n];
        point[n] = x[n] + AHEAD[stage] * dt * rate[n];
      }
    }
    for (int64_t n = 0; n < states; ++n) x[n] += dt / 6 * total[n];
    brake(x, command, acting, dt, p);
    project(x, p, first);
    if (fails(x, states, dt, p, first, overturned)) return step;
  }
  return steps;
}
