// Copyright 2026 rfly_suite maintainers
// SPDX-License-Identifier: Apache-2.0

// A fixed amount of work that tells how fast a machine is: look-ups in a table of 512 KB, at places that nobody can
// guess, and arithmetic that waits for them.
#include <cstddef>
#include <cstdint>
#include <vector>

extern "C" double fixed_loop(int64_t steps) {
  std::vector<double> table(1 << 16);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = 1.0 / double(i + 1);

  uint64_t place = 1;
  double sum = 0.0;
  for (int64_t i = 0; i < steps; ++i) {
    place = place * 6364136223846793005u + 1442695040888963407u;
    double value = table[(place >> 48) ^ (sum > 1e9)];
    sum = sum * 0.999 + value * (1.0 - value);
  }
  return sum;
}
