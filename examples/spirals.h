#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

// splitmix64: a few lines in any language give the same numbers.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  double between(double low, double high) {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    return low + (high - low) * (static_cast<double>(z >> 11) * 0x1p-53);
  }

 private:
  std::uint64_t state_;
};

struct Sample {
  double x, y;  // between -1 and 1, and a little over
  double arm;   // +1 or -1
};

// Two arms that wind around each other, with a little noise.
inline std::vector<Sample> two_spirals(int count) {
  constexpr double kPi = 3.14159265358979323846, kTurns = 2, kNoise = 0.03;
  Random random(1);
  std::vector<Sample> samples;
  for (int i = 0; i < count; ++i) {
    const double arm = i % 2 == 0 ? 1 : -1;
    const double radius = std::sqrt(random.between(0.01, 1));  // evenly over the plane
    const double angle = radius * kTurns * 2 * kPi;
    const double dx = random.between(-kNoise, kNoise), dy = random.between(-kNoise, kNoise);
    samples.push_back(
        {arm * radius * std::cos(angle) + dx, arm * radius * std::sin(angle) + dy, arm});
  }
  return samples;
}
