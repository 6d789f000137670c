// Copyright 2026 rfly_suite maintainers
// SPDX-License-Identifier: Apache-2.0

// The hot loops as one would write them in C++ without further ado, for `bench_compiler.py`: one thread, no intrinsics,
// the textbook's algorithm. Built with -O3 -march=native when the benchmark runs.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <queue>
#include <vector>

namespace {
constexpr double INF = std::numeric_limits<double>::infinity();

struct Ground {
  const float* z;
  int64_t rows, columns;
  double origin_x, origin_y, step_x, step_y;
};

double clamped(double value, double last) { return std::min(std::max(value, 0.0), last); }

double bilinear(const Ground& g, double x, double y) {
  double u = clamped((x - g.origin_x) / g.step_x, g.rows - 1.0), v = clamped((y - g.origin_y) / g.step_y, g.columns - 1.0);
  int64_t i = std::min<int64_t>(int64_t(u), g.rows - 2), j = std::min<int64_t>(int64_t(v), g.columns - 2);
  double a = u - i, b = v - j;
  const float* p = g.z + i * g.columns + j;
  const float* q = p + g.columns;
  return (p[0] * (1 - b) + p[1] * b) * (1 - a) + (q[0] * (1 - b) + q[1] * b) * a;
}

// metres along the unit vector d from o (both in rows, columns, metres) to the ground, cell by cell
double cast_one(const Ground& g, double u, double v, double z, double du, double dv, double dz) {
  double t = 0, end = INF;
  const double from[2] = {u, v}, along[2] = {du, dv}, last[2] = {g.rows - 1.0, g.columns - 1.0};
  for (int axis = 0; axis < 2; ++axis) {
    if (along[axis] == 0) {
      if (from[axis] < 0 || from[axis] > last[axis]) return INF;
      continue;
    }
    double near = (0 - from[axis]) / along[axis], far = (last[axis] - from[axis]) / along[axis];
    t = std::max(t, std::min(near, far));
    end = std::min(end, std::max(near, far));
  }
  if (t > end) return INF;
  int64_t i = std::min<int64_t>(int64_t(clamped(u + t * du, last[0])), g.rows - 2);
  int64_t j = std::min<int64_t>(int64_t(clamped(v + t * dv, last[1])), g.columns - 2);
  const double per_u = du != 0 ? 1 / du : INF, per_v = dv != 0 ? 1 / dv : INF;
  const int step_i = du > 0 ? 1 : -1, step_j = dv > 0 ? 1 : -1;
  while (t < end) {
    double t_u = du != 0 ? (i + (du > 0) - u) * per_u : INF, t_v = dv != 0 ? (j + (dv > 0) - v) * per_v : INF;
    double leave = std::max(std::min({t_u, t_v, end}), t);
    const float* p = g.z + i * g.columns + j;
    const float* q = p + g.columns;
    double lowest = z + dz * (dz < 0 ? leave : t);
    if (lowest <= std::max({p[0], p[1], q[0], q[1]})) {
      double z00 = p[0], rise_u = q[0] - z00, rise_v = p[1] - z00, twist = (double(q[1]) - q[0]) - rise_v;
      double a = u + t * du - i, b = v + t * dv - j;
      double c = z + t * dz - (z00 + rise_u * a + rise_v * b + twist * a * b);
      if (c <= 0) return t;
      double m = dz - (rise_u + twist * b) * du - (rise_v + twist * a) * dv, k = -twist * du * dv, root = m * m - 4 * k * c;
      if (root >= 0) {
        double s = m < 0 ? 2 * c / (std::sqrt(root) - m) : (k < 0 ? (m + std::sqrt(root)) / (-2 * k) : INF);
        if (s <= leave - t) return t + s;
      }
    }
    t = leave;
    if (t_u <= t_v) i += step_i; else j += step_j;
    if (i < 0 || j < 0 || i > g.rows - 2 || j > g.columns - 2) return INF;
  }
  return INF;
}
// One vehicle of a fleet: what is not in the tables of schedules (begin, s, speed, acceleration, jerk) and of paths
// (start, kind, 12 values), whose rows first … first + count - 1 are its own.
struct Vehicle {
  int64_t kind, absolute, closed, first_law, laws, first_piece, pieces;  // kind: 0 ground, 1 multirotor, 2 fixed wing
  double height, delay, shift_x, shift_y, loop_start, loop_period, length;
};

constexpr double GRAVITY = 9.80665;
enum PieceKind { ARC = 0, SPIRAL = 1 };

// the last row of a table whose first column is not above t
const double* row_at(const double* table, int64_t rows, int64_t columns, double t) {
  int64_t low = 0, high = rows;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (table[middle * columns] <= t) low = middle + 1; else high = middle;
  }
  return table + std::max<int64_t>(low - 1, 0) * columns;
}

struct OnPath { double x, y, tx, ty, curvature, rate; };

OnPath on_path(const double* piece, double s) {
  double run = s - piece[0];
  const double* a = piece + 2;
  if (piece[1] == ARC) {
    double x = a[0], y = a[1], curvature = a[2], c = a[3], d = a[4];
    if (curvature == 0) return {x + run * c, y + run * d, c, d, 0, 0};
    double sine = std::sin(curvature * run), cosine = std::cos(curvature * run);
    double tx = c * cosine - d * sine, ty = d * cosine + c * sine;
    return {x + (ty - d) / curvature, y - (tx - c) / curvature, tx, ty, curvature, 0};
  }
  if (piece[1] == SPIRAL) {
    double sharpness = a[3], c = a[4], d = a[5], x = 0, y = 0;
    run = s - a[2];
    double angle = 0.5 * sharpness * run * run, term = run;
    for (int n = 0; std::abs(term) > 1e-17; n += 2) {
      x += term / (2 * n + 1);
      term *= angle / (n + 1);
      y += term / (2 * n + 3);
      term *= -angle / (n + 2);
    }
    double sine = std::sin(angle), cosine = std::cos(angle);
    return {a[0] + c * x - d * y, a[1] + d * x + c * y, c * cosine - d * sine, d * cosine + c * sine, sharpness * run, sharpness};
  }
  double value[2], first[2], second[2], third[2];
  for (int axis = 0; axis < 2; ++axis) {
    const double* p = a + 6 * axis;
    value[axis] = p[0] + run * (p[1] + run * (p[2] + run * (p[3] + run * (p[4] + run * p[5]))));
    first[axis] = p[1] + run * (2 * p[2] + run * (3 * p[3] + run * (4 * p[4] + run * 5 * p[5])));
    second[axis] = 2 * p[2] + run * (6 * p[3] + run * (12 * p[4] + run * 20 * p[5]));
    third[axis] = 6 * p[3] + run * (24 * p[4] + run * 60 * p[5]);
  }
  double norm = std::hypot(first[0], first[1]), cube = norm * norm * norm;
  double curvature = (first[0] * second[1] - first[1] * second[0]) / cube;
  double rate = (first[0] * third[1] - first[1] * third[0]) / cube -
                3 * curvature * (first[0] * second[0] + first[1] * second[1]) / (norm * norm);
  return {value[0], value[1], first[0] / norm, first[1] / norm, curvature, rate};
}

struct Slope { double z, zx, zy, sx, sy, rx, ry; };

// altitude, its gradient, the smooth gradient and its rate for a velocity; a cell from the map's edge
Slope slope_at(const Ground& g, double x, double y, double vx, double vy) {
  double u = (x - g.origin_x) / g.step_x, v = (y - g.origin_y) / g.step_y;
  int64_t i = std::min(std::max<int64_t>(int64_t(u), 1), g.rows - 3), j = std::min(std::max<int64_t>(int64_t(v), 1), g.columns - 3);
  double a = u - i, b = v - j, c = 1 - a, d = 1 - b;
  const float *near = g.z + i * g.columns + j, *before = near - g.columns, *far = near + g.columns, *after = far + g.columns;
  double z00 = near[0], z01 = near[1], z10 = far[0], z11 = far[1];
  double x00 = z10 - before[0], x01 = z11 - before[1], x10 = after[0] - z00, x11 = after[1] - z01;
  double y00 = z01 - near[-1], y01 = near[2] - z00, y10 = z11 - far[-1], y11 = far[2] - z10;
  double dx2 = 2 * g.step_x, dy2 = 2 * g.step_y, va = vx / g.step_x, vb = vy / g.step_y;
  return {c * (d * z00 + b * z01) + a * (d * z10 + b * z11),
          (d * (z10 - z00) + b * (z11 - z01)) / g.step_x,
          (c * (z01 - z00) + a * (z11 - z10)) / g.step_y,
          (c * (d * x00 + b * x01) + a * (d * x10 + b * x11)) / dx2,
          (c * (d * y00 + b * y01) + a * (d * y10 + b * y11)) / dy2,
          (va * (d * (x10 - x00) + b * (x11 - x01)) + vb * (c * (x01 - x00) + a * (x11 - x10))) / dx2,
          (va * (d * (y10 - y00) + b * (y11 - y01)) + vb * (c * (y01 - y00) + a * (y11 - y10))) / dy2};
}
}  // namespace

extern "C" {
void altitudes(const Ground* g, const double* x, const double* y, int64_t n, double* out) {
  for (int64_t k = 0; k < n; ++k) out[k] = bilinear(*g, x[k], y[k]);
}

void cloud(const Ground* g, float* out) {
  for (int64_t i = 0; i < g->rows; ++i)
    for (int64_t j = 0; j < g->columns; ++j) {
      *out++ = float(g->origin_x + i * g->step_x);
      *out++ = float(g->origin_y + j * g->step_y);
      *out++ = g->z[i * g->columns + j];
    }
}

void cast(const Ground* g, const float* origins, const float* directions, int64_t n, double* ranges) {
  for (int64_t k = 0; k < n; ++k) {
    const float *o = origins + 3 * k, *d = directions + 3 * k;
    double dx = d[0], dy = d[1], dz = d[2], length = std::sqrt(dx * dx + dy * dy + dz * dz);
    ranges[k] = cast_one(*g, (o[0] - g->origin_x) / g->step_x, (o[1] - g->origin_y) / g->step_y, o[2],
                         dx / length / g->step_x, dy / length / g->step_y, dz / length);
  }
}

// pairs of boxes that overlap, sort and sweep along x; returns how many, sorted by a, then b
int64_t overlaps(const double* low, const double* high, int64_t n, int64_t* pairs, int64_t room) {
  std::vector<int64_t> order(n), open;
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return low[3 * a] < low[3 * b]; });
  std::vector<std::pair<int64_t, int64_t>> found;
  for (int64_t body : order) {
    size_t kept = 0;
    const double *l = low + 3 * body, *h = high + 3 * body;
    for (int64_t other : open) {
      const double *m = low + 3 * other, *g = high + 3 * other;
      if (g[0] < l[0]) continue;
      open[kept++] = other;
      if (l[1] <= g[1] && m[1] <= h[1] && l[2] <= g[2] && m[2] <= h[2]) found.emplace_back(std::minmax(body, other));
    }
    open.resize(kept);
    open.push_back(body);
  }
  std::sort(found.begin(), found.end());
  for (size_t k = 0; k < found.size() && int64_t(k) < room; ++k) pairs[2 * k] = found[k].first, pairs[2 * k + 1] = found[k].second;
  return int64_t(found.size());
}

// least costs from every cell to the goal, Dijkstra with a binary heap; steps as kernels.cost_to_go takes them
void cost_to_go(const float* weight, int64_t rows, int64_t columns, int64_t goal, float* best) {
  struct Move { int i, j; int64_t by, first, second; bool crosses, averages_four; float share; };
  std::vector<Move> moves;
  for (int i = -2; i <= 2; ++i)
    for (int j = -2; j <= 2; ++j) {
      int far = std::max(std::abs(i), std::abs(j)), near = std::min(std::abs(i), std::abs(j));
      if (far == 0 || (far == 2 && near != 1)) continue;
      float length = std::sqrt(float(i * i + j * j));
      if (far == 2)  // a knight's move passes two cells, a diagonal one the corner of two
        moves.push_back({i, j, i * columns + j, i / 2 * columns + j / 2, (i - i / 2) * columns + j - j / 2, true, true, length / 4});
      else
        moves.push_back({i, j, i * columns + j, i * columns, j, near == 1, false, length / 2});
    }
  std::fill(best, best + rows * columns, std::numeric_limits<float>::infinity());
  std::priority_queue<std::pair<float, int64_t>, std::vector<std::pair<float, int64_t>>, std::greater<>> queue;
  best[goal] = 0;
  queue.emplace(0.0f, goal);
  while (!queue.empty()) {
    auto [cost, cell] = queue.top();
    queue.pop();
    if (cost > best[cell]) continue;
    int64_t row = cell / columns, column = cell % columns;
    for (const Move& move : moves) {
      if (row + move.i < 0 || row + move.i >= rows || column + move.j < 0 || column + move.j >= columns) continue;
      int64_t next = cell + move.by;
      float to = weight[next], first = weight[cell + move.first], second = weight[cell + move.second];
      if (to <= 0 || (move.crosses && (first <= 0 || second <= 0))) continue;
      float sum = weight[cell] + to + (move.averages_four ? first + second : 0.0f);
      float reached = cost + move.share * sum;
      if (reached < best[next]) best[next] = reached, queue.emplace(reached, next);
    }
  }
}

// n vehicles as Multi3DData100New, 100 in each; out holds ceil(n / 100) of 3,804 bytes
void packets(const int64_t* ids, const int64_t* types, const double* position, const double* euler, int64_t n, char* out) {
#pragma pack(push, 1)
  struct Packet {
    int32_t checksum;
    uint16_t id[100], type[100];
    float position[300], euler[300];
    uint16_t scale[300];
    float rpm[100];
  };
#pragma pack(pop)
  static_assert(sizeof(Packet) == 3804);
  for (int64_t first = 0; first < n; first += 100, out += sizeof(Packet)) {
    Packet packet{};
    packet.checksum = 1234567890;
    for (int64_t k = 0; k < std::min<int64_t>(100, n - first); ++k) {
      packet.id[k] = uint16_t(ids[first + k]), packet.type[k] = uint16_t(types[first + k]);
      for (int c = 0; c < 3; ++c) {
        packet.position[3 * k + c] = float(position[3 * (first + k) + c]);
        packet.euler[3 * k + c] = float(euler[3 * (first + k) + c]);
        packet.scale[3 * k + c] = 100;
      }
    }
    std::memcpy(out, &packet, sizeof(Packet));
  }
}

// positions, quaternions xyzw, velocities and body rates of n vehicles at time t -> out (n, 13)
void fleet(const Ground* ground, const Vehicle* vehicles, int64_t n, const double* laws, const double* pieces, double t, double* out) {
  for (int64_t k = 0; k < n; ++k, out += 13) {
    const Vehicle& w = vehicles[k];
    const double* law = laws + 5 * w.first_law;
    double since = t - w.delay, s = law[1], v = 0, acceleration = 0, jerk = 0;
    if (since >= 0) {
      if (since > w.loop_start && std::isfinite(w.loop_period)) since = w.loop_start + std::fmod(since - w.loop_start, w.loop_period);
      law = row_at(law, w.laws, 5, since);
      double run = since - law[0];
      s = law[1] + run * (law[2] + run * (law[3] / 2 + run * law[4] / 6));
      v = law[2] + run * (law[3] + run * law[4] / 2);
      acceleration = law[3] + run * law[4], jerk = law[4];
    }
    if (w.closed) s -= w.length * std::floor(s / w.length);
    s = clamped(s, w.length);
    OnPath p = on_path(row_at(pieces + 14 * w.first_piece, w.pieces, 14, s), s);
    double x = p.x + w.shift_x, y = p.y + w.shift_y;
    Slope g = slope_at(*ground, x, y, v * p.tx, v * p.ty);
    double yaw_rate = p.curvature * v, lateral = yaw_rate * v;
    double lateral_rate = 2 * yaw_rate * acceleration + p.rate * v * v * v;
    double z, climb_rate = 0, pitch_slope = 0, roll_slope = 0, pitch_slope_rate = 0, roll_slope_rate = 0;
    if (w.absolute && w.height > g.z) {
      z = w.height;
    } else {
      z = w.absolute ? g.z : g.z + w.height, climb_rate = v * (g.zx * p.tx + g.zy * p.ty);
      pitch_slope = g.sx * p.tx + g.sy * p.ty, roll_slope = g.sy * p.tx - g.sx * p.ty;
      pitch_slope_rate = g.rx * p.tx + g.ry * p.ty + roll_slope * yaw_rate;
      roll_slope_rate = g.ry * p.tx - g.rx * p.ty - pitch_slope * yaw_rate;
    }
    double &q = pitch_slope, &r = roll_slope, &q_rate = pitch_slope_rate, &r_rate = roll_slope_rate;
    if (w.kind == 2) {
      double climb = 1 + q * q;
      r = -climb * lateral / GRAVITY, r_rate = -(2 * q * q_rate * lateral + climb * lateral_rate) / GRAVITY;
    } else if (w.kind == 1) {
      q = -acceleration / GRAVITY, q_rate = -jerk / GRAVITY, r = -lateral / GRAVITY, r_rate = -lateral_rate / GRAVITY;
    }
    double norm = std::sqrt(1 + q * q), pitch = -std::atan(q), roll = std::atan(r / norm), yaw = std::atan2(p.ty, p.tx);
    double pitch_rate = -q_rate / (norm * norm), roll_rate = (r_rate * norm - r * q * q_rate / norm) / (norm * norm + r * r);
    double cy = std::cos(yaw / 2), sy = std::sin(yaw / 2), cp = std::cos(pitch / 2), sp = std::sin(pitch / 2);
    double cr = std::cos(roll / 2), sr = std::sin(roll / 2);
    double cos_roll = std::cos(roll), sin_roll = std::sin(roll), sin_pitch = -q / norm, cos_pitch = 1 / norm;
    const double state[13] = {
        x, y, z,
        sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy, cr * cp * sy - sr * sp * cy, cr * cp * cy + sr * sp * sy,
        v * p.tx, v * p.ty, climb_rate,
        roll_rate - yaw_rate * sin_pitch,
        pitch_rate * cos_roll + yaw_rate * sin_roll * cos_pitch,
        -pitch_rate * sin_roll + yaw_rate * cos_roll * cos_pitch};
    std::copy(state, state + 13, out);
  }
}
}
