// Copyright 2026 rfly_suite maintainers
// SPDX-License-Identifier: Apache-2.0

// Costs of driving over a map, written plainly for `bench_traversability.py`: the plane through each disc of
// cells, its roughness and largest step, as the filters of grid_map work them out cell by cell. One thread.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

struct Offset {
  int64_t row, column;
};

std::vector<Offset> disc(int64_t reach) {
  std::vector<Offset> offsets;
  for (int64_t i = -reach; i <= reach; ++i)
    for (int64_t j = -reach; j <= reach; ++j)
      if (i * i + j * j <= reach * reach) offsets.push_back({i, j});
  return offsets;
}

}  // namespace

extern "C" {

// Heights z (rows, columns) of square cells, m. limits: slope (degrees), roughness and step (m).
// Writes -1 unknown, 0 to 99, 100 forbidden -> cost, and 100 within `margin` cells of what is forbidden.
void traversability(const float* z, int64_t rows, int64_t columns, double cell, int64_t reach,
                    const double* limits, int64_t margin, int8_t* cost) {
  const std::vector<Offset> offsets = disc(reach);
  const double count = double(offsets.size());
  double spread = 0;
  for (const Offset& o : offsets) spread += double(o.row * o.row);

  // places within the disc, and whether their neighbours are in it too
  std::vector<int64_t> places;
  std::vector<uint8_t> has_right, has_below;
  for (const Offset& o : offsets) {
    places.push_back(o.row * columns + o.column);
    const int64_t right = o.column + 1;
    const int64_t below = o.row + 1;
    has_right.push_back(o.row * o.row + right * right <= reach * reach);
    has_below.push_back(below * below + o.column * o.column <= reach * reach);
  }

  std::vector<uint8_t> forbidden(rows * columns, 0);
  std::fill(cost, cost + rows * columns, int8_t(-1));
  for (int64_t row = reach; row < rows - reach; ++row) {
    for (int64_t column = reach; column < columns - reach; ++column) {
      const float* middle = z + row * columns + column;
      double sum = 0, sum_x = 0, sum_y = 0, squares = 0;
      float step = 0;
      for (size_t k = 0; k < offsets.size(); ++k) {
        const float* p = middle + places[k];
        const double height = double(*p) - double(*middle);
        sum += height;
        sum_x += height * double(offsets[k].column);
        sum_y += height * double(offsets[k].row);
        squares += height * height;
        if (has_right[k]) step = std::max(step, std::abs(p[1] - p[0]));
        if (has_below[k]) step = std::max(step, std::abs(p[columns] - p[0]));
      }

      // the plane z = mean + rise_x x + rise_y y
      const double mean = sum / count, rise_x = sum_x / spread, rise_y = sum_y / spread;
      const double slope = std::atan(std::hypot(rise_x, rise_y) / cell) * 180.0 / M_PI;
      const double rough = squares / count - mean * mean -
                           (rise_x * rise_x + rise_y * rise_y) * spread / count;
      const double worst = std::max({slope / limits[0], std::sqrt(std::max(rough, 0.0)) / limits[1],
                                     double(step) / limits[2]});
      cost[row * columns + column] = int8_t(worst >= 1 ? 100 : std::nearbyint(99 * worst));
      forbidden[row * columns + column] = worst >= 1;
    }
  }

  // a margin around what is forbidden
  const std::vector<Offset> around = disc(margin);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      if (!forbidden[row * columns + column]) continue;
      for (const Offset& o : around) {
        const int64_t i = row + o.row, j = column + o.column;
        if (i >= 0 && i < rows && j >= 0 && j < columns) cost[i * columns + j] = 100;
      }
    }
}

}  // extern "C"
