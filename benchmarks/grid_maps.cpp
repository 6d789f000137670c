// Copyright 2026 rfly_suite maintainers
// SPDX-License-Identifier: Apache-2.0

// A* and rays on a grid of cells, written plainly for `bench_occupancy.py`. One thread.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

extern "C" {

// The cost of the cheapest way from cell to cell in eight directions, in cells; infinite if there is none.
double a_star(const uint8_t* free, int64_t rows, int64_t columns, int64_t start, int64_t goal) {
  using Entry = std::pair<double, int64_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> open;
  std::vector<double> cost(rows * columns, std::numeric_limits<double>::infinity());
  std::vector<int64_t> parent(rows * columns, -1);
  std::vector<uint8_t> closed(rows * columns, 0);
  const int64_t goal_row = goal / columns;
  const int64_t goal_column = goal % columns;

  cost[start] = 0;
  open.push({0, start});
  while (!open.empty()) {
    const int64_t cell = open.top().second;
    open.pop();
    if (closed[cell]) continue;
    closed[cell] = 1;
    if (cell == goal) break;
    const int64_t row = cell / columns;
    const int64_t column = cell % columns;
    for (int64_t i = -1; i <= 1; ++i) {
      for (int64_t j = -1; j <= 1; ++j) {
        const int64_t to_row = row + i;
        const int64_t to_column = column + j;
        if (to_row < 0 || to_row >= rows || to_column < 0 || to_column >= columns) continue;
        const int64_t to = to_row * columns + to_column;
        if (!free[to] || closed[to]) continue;
        const double through = cost[cell] + (i != 0 && j != 0 ? std::sqrt(2.0) : 1.0);
        if (through >= cost[to]) continue;
        cost[to] = through;
        parent[to] = cell;
        open.push({through + std::hypot(to_row - goal_row, to_column - goal_column), to});
      }
    }
  }
  return cost[goal];
}

// Rays (count, 4) from x, y to x, y, in cells from the lower left corner: `miss` for the cells on the way,
// `hit` for the last one -> log_odds (rows, columns), row 0 on top, within `least` and `most`.
void insert_rays(const double* rays, int64_t count, int64_t rows, int64_t columns, double miss,
                 double hit, double least, double most, double* log_odds) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<int64_t> touched;
  for (int64_t n = 0; n < count; ++n, rays += 4) {
    const double dx = rays[2] - rays[0];
    const double dy = rays[3] - rays[1];
    int64_t x = int64_t(std::floor(rays[0]));
    int64_t y = int64_t(std::floor(rays[1]));
    const int64_t end_x = int64_t(std::floor(rays[2]));
    const int64_t end_y = int64_t(std::floor(rays[3]));
    const double along_x = dx != 0 ? std::abs(1 / dx) : infinity;
    const double along_y = dy != 0 ? std::abs(1 / dy) : infinity;
    double next_x = dx != 0 ? along_x * (dx > 0 ? x + 1 - rays[0] : rays[0] - x) : infinity;
    double next_y = dy != 0 ? along_y * (dy > 0 ? y + 1 - rays[1] : rays[1] - y) : infinity;
    for (int64_t left = std::abs(end_x - x) + std::abs(end_y - y); left >= 0; --left) {
      if (x >= 0 && x < columns && y >= 0 && y < rows) {
        const int64_t cell = (rows - 1 - y) * columns + x;
        log_odds[cell] += left == 0 ? hit : miss;
        touched.push_back(cell);
      }
      if (next_x < next_y) {
        x += dx > 0 ? 1 : -1;
        next_x += along_x;
      } else {
        y += dy > 0 ? 1 : -1;
        next_y += along_y;
      }
    }
  }
  for (int64_t cell : touched) log_odds[cell] = std::clamp(log_odds[cell], least, most);
}

}  // extern "C"
