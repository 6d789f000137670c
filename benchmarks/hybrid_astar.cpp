// Copyright 2026 rfly_suite maintainers
// SPDX-License-Identifier: Apache-2.0

// Hybrid A* as one would write it in C++ without further ado, for `bench_compiler.py`: the same lattice, costs and
// estimate as `rfly_terrain.planning.search_kernels`, with the containers of the standard library.
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <queue>
#include <unordered_map>
#include <vector>

namespace {
constexpr double INF = std::numeric_limits<double>::infinity(), TURN = 2 * M_PI, STEP = 0.2, MARGIN = 0.11, EAGER = 1.05;
constexpr int HEADINGS = 72;

struct Pose {
  double x, y, heading;
};

struct Grid {
  const float* weight;
  const float* to_go;
  int64_t rows, columns;
  double x, y, cell;

  double at(double px, double py) const {
    double u = (px - x) / cell, v = (py - y) / cell;
    int64_t column = std::floor(u), row = std::floor(v);
    if (column < 0 || row < 0 || column >= columns || row >= rows) return 0;
    int64_t beside = column + (u - column < MARGIN ? -1 : u - column > 1 - MARGIN ? 1 : 0);
    int64_t beyond = row + (v - row < MARGIN ? -1 : v - row > 1 - MARGIN ? 1 : 0);
    if (beside < 0 || beyond < 0 || beside >= columns || beyond >= rows) return 0;
    const float *here = weight + row * columns, *there = weight + beyond * columns;
    return here[beside] == 0 || there[column] == 0 || there[beside] == 0 ? 0 : here[column];
  }
};

Pose moved(Pose from, double length, double curvature) {
  double half = curvature * length / 2, chord = std::abs(half) < 1e-12 ? length : length * std::sin(half) / half;
  return {from.x + chord * std::cos(from.heading + half), from.y + chord * std::sin(from.heading + half), from.heading + 2 * half};
}

// what a piece costs; infinite where it leaves the free cells or costs more than `most`
double piece_cost(const Grid& g, Pose from, double length, double curvature, double most) {
  int count = std::max(1.0, std::ceil(length / (STEP * g.cell)));
  double ds = length / count, before = g.at(from.x, from.y), cost = 0;
  if (before == 0) return INF;
  for (int k = 0; k < count; ++k) {
    from = moved(from, ds, curvature);
    double here = g.at(from.x, from.y);
    if (here == 0) return INF;
    cost += (before + here) / 2 * ds;
    if (cost > most) return INF;
    before = here;
  }
  return cost;
}

using Word = std::array<double, 6>;  // three lengths, three turns

double positive(double angle) {
  angle = std::fmod(angle, TURN);
  if (angle < 0) angle += TURN;
  return TURN - angle < 1e-9 ? 0 : angle;
}

Word dubins(Pose from, Pose to, double radius) {
  double along = std::atan2(to.y - from.y, to.x - from.x), d = std::hypot(to.x - from.x, to.y - from.y) / radius;
  double alpha = from.heading - along, beta = to.heading - along, best = INF;
  Word shortest{};
  auto offer = [&](double t, double p, double q, double first, double middle, double last) {
    t = positive(t), q = positive(q);
    if (t + p + q >= best - 1e-12) return;
    best = t + p + q;
    shortest = {t * radius, p * radius, q * radius, first, middle, last};
  };
  for (double side : {1.0, -1.0}) {
    double a = side * alpha, b = side * beta;
    double ahead = d + std::sin(a) - std::sin(b), aside = std::cos(b) - std::cos(a), p = std::hypot(ahead, aside);
    double angle = std::atan2(aside, ahead);
    if (p < 1e-9) offer(b - a, 0, 0, side, 0, side);
    else offer(angle - a, p, b - angle, side, 0, side);
  }
  for (double side : {1.0, -1.0}) {
    double a = side * alpha, b = side * beta, square = -2 + d * d + 2 * std::cos(a - b) + 2 * d * (std::sin(a) + std::sin(b));
    if (square < -1e-9) continue;
    double p = std::sqrt(std::max(square, 0.0));
    double angle = std::atan2(-std::cos(a) - std::cos(b), d + std::sin(a) + std::sin(b)) - std::atan2(-2, p);
    offer(angle - a, p, angle - b, side, 0, -side);
  }
  for (double side : {1.0, -1.0}) {
    double a = side * alpha, b = side * beta, cosine = (6 - d * d + 2 * std::cos(a - b) - 2 * d * (std::sin(a) - std::sin(b))) / 8;
    if (std::abs(cosine) > 1) continue;
    double p = TURN - std::acos(cosine), t = std::atan2(std::cos(b) - std::cos(a), d + std::sin(a) - std::sin(b)) - a + p / 2;
    offer(t, p, b - a - t + p, side, -side, side);
  }
  return shortest;
}

double word_cost(const Grid& g, Pose from, const Word& word, double radius, double most) {
  double cost = 0;
  for (int k = 0; k < 3; ++k) {
    if (word[k] <= 0) continue;
    cost += piece_cost(g, from, word[k], word[3 + k] / radius, most - cost);
    if (cost == INF) return INF;
    from = moved(from, word[k], word[3 + k] / radius);
  }
  return cost;
}

struct Node {
  Pose pose;
  double cost;
};
}  // namespace

// the cost of the path found from `start` to `goal`; infinite where there is none. `turns`: angles of the arcs
extern "C" double hybrid_astar(const Grid& g, const Pose& start, const Pose& goal, double radius, double length, double lattice,
                               int64_t across, const double* turns, int64_t count) {
  auto key = [&](Pose p) {
    int64_t cell = int64_t((p.y - g.y) / lattice) * across + int64_t((p.x - g.x) / lattice);
    return cell * HEADINGS + int64_t(p.heading * HEADINGS / TURN) % HEADINGS;
  };
  auto estimate = [&](Pose p) {
    int64_t row = (p.y - g.y) / g.cell, column = (p.x - g.x) / g.cell;
    Word word = dubins(p, goal, radius);
    return std::max(std::max(g.to_go[row * g.columns + column] - 1.5, 0.0) * g.cell, word[0] + word[1] + word[2]);
  };
  std::vector<Node> nodes{{start, 0}};
  std::unordered_map<int64_t, int64_t> best{{key(start), 0}};
  using Open = std::pair<double, int64_t>;
  std::priority_queue<Open, std::vector<Open>, std::greater<Open>> open;
  open.push({0, 0});
  double best_goal = INF;
  int64_t expanded = 0, next_shot = 0;
  while (!open.empty()) {
    auto [f, n] = open.top();
    open.pop();
    if (f >= best_goal) break;
    Node node = nodes[n];
    if (best[key(node.pose)] != n) continue;
    if (expanded >= next_shot) {
      Word word = dubins(node.pose, goal, radius);
      best_goal = std::min(best_goal, node.cost + word_cost(g, node.pose, word, radius, best_goal - node.cost));
      next_shot = expanded + int64_t(0.05 * (f - node.cost) / length);
    }
    ++expanded;
    for (int64_t m = 0; m < count; ++m) {
      Pose to = node.pose;
      double cost = node.cost, arc = radius * std::abs(turns[m]), line = length - arc, curvature = std::copysign(1 / radius, turns[m]);
      if (arc > 1e-9 * length) {
        cost += piece_cost(g, to, arc, curvature, best_goal - cost);
        to = moved(to, arc, curvature);
      }
      if (cost < INF && line > 1e-9 * length) {
        cost += piece_cost(g, to, line, 0, best_goal - cost);
        to = moved(to, line, 0);
      }
      if (cost == INF) continue;
      to.heading = std::fmod(std::fmod(to.heading, TURN) + TURN, TURN);
      auto [place, is_new] = best.try_emplace(key(to), int64_t(nodes.size()));
      if (!is_new && nodes[place->second].cost <= cost) continue;
      double total = cost + EAGER * estimate(to);
      if (total == INF || total >= best_goal) {
        if (is_new) best.erase(place);
        continue;
      }
      place->second = nodes.size();
      open.push({total, int64_t(nodes.size())});
      nodes.push_back({to, cost});
    }
  }
  return best_goal;
}
