#include "launcher/pipe/back_off.h"

namespace corro::launcher {

namespace {

// What many pipes ask for with neighbouring seeds must not be neighbours (SplitMix64's finalizer).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

Duration back_off(int failed_attempts, std::uint64_t seed) {
  using namespace std::chrono_literals;
  constexpr Duration kFirst = 200ms;
  constexpr int kDoublings = 3;
  const Duration middle = kFirst * (1 << std::clamp(failed_attempts - 1, 0, kDoublings));
  const auto dice = mix(seed + static_cast<std::uint64_t>(failed_attempts) * 0x9e3779b97f4a7c15u);
  return middle / 2 +
         Duration(static_cast<Duration::rep>(dice % static_cast<std::uint64_t>(middle.count())));
}

}  // namespace corro::launcher
