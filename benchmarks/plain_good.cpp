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
  std::fill(best, best + rows * columns, std::numeric_limits<float>::infinity());
  std::priority_queue<std::pair<float, int64_t>, std::vector<std::pair<float, int64_t>>, std::greater<>> queue;
  best[goal] = 0;
  queue.emplace(0.0f, goal);
  while (!queue.empty()) {
    auto [cost, cell] = queue.top();
    queue.pop();
    if (cost > best[cell]) continue;
    int64_t row = cell / columns, column = cell % columns;
    for (int di = -2; di <= 2; ++di)
      for (int dj = -2; dj <= 2; ++dj) {
        int far = std::max(std::abs(di), std::abs(dj)), near = std::min(std::abs(di), std::abs(dj));
        if (far == 0 || (far == 2 && near != 1)) continue;
        int64_t i = row + di, j = column + dj;
        if (i < 0 || j < 0 || i >= rows || j >= columns) continue;
        auto at = [&](int64_t r, int64_t c) { return weight[(row + r) * columns + column + c]; };
        float w = at(0, 0), to = at(di, dj), sum = w + to, share = 0.5f;
        bool is_free = to > 0;
        if (far == 1 && near == 1) {
          is_free = is_free && at(di, 0) > 0 && at(0, dj) > 0;
        } else if (far == 2) {  // the two cells between
          float first = at(di / 2, dj / 2), second = at(di - di / 2, dj - dj / 2);
          is_free = is_free && first > 0 && second > 0;
          sum += first + second, share = 0.25f;
        }
        if (!is_free) continue;
        float reached = cost + std::sqrt(float(di * di + dj * dj)) * sum * share;
        if (reached < best[i * columns + j]) best[i * columns + j] = reached, queue.emplace(reached, i * columns + j);
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
}
