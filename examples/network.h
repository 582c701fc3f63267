#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "spirals.h"

// 2 → 32 → 32 → 1 units, with tanh in between.  The sign of the output names a spiral's arm.
template <class T>
class Network {
 public:
  static constexpr std::array<std::size_t, 4> kUnits = {2, 32, 32, 1};

  // Layer by layer: a row of weights for each unit, then the biases.
  std::vector<T> parameters;

  explicit Network(Random random) {
    for (std::size_t l = 1; l < kUnits.size(); ++l) {
      const double scale = std::sqrt(3.0 / static_cast<double>(kUnits[l - 1]));
      for (std::size_t i = 0; i < kUnits[l] * kUnits[l - 1]; ++i)
        parameters.push_back(static_cast<T>(random.between(-scale, scale)));
      parameters.insert(parameters.end(), kUnits[l], T(0));
    }
  }

  T output(double x, double y) {
    units_[0] = {static_cast<T>(x), static_cast<T>(y)};
    const T* weight = parameters.data();
    for (std::size_t l = 1; l < kUnits.size(); ++l) {
      const T* bias = weight + kUnits[l] * kUnits[l - 1];
      units_[l].resize(kUnits[l]);
      for (T& unit : units_[l]) {
        unit = *bias++;
        for (const T in : units_[l - 1]) unit += *weight++ * in;
        if (l + 1 < kUnits.size()) unit = std::tanh(unit);
      }
      weight = bias;
    }
    return units_.back()[0];
  }

  // Adds to `gradient` that of the last output, times `slope`.
  void backward(T slope, std::vector<T>& gradient) {
    slopes_.back() = {slope};
    std::size_t biases = parameters.size();
    for (std::size_t l = kUnits.size() - 1; l > 0; --l) {
      biases -= kUnits[l];
      const std::size_t weights = biases - kUnits[l] * kUnits[l - 1];
      slopes_[l - 1].assign(kUnits[l - 1], T(0));
      for (std::size_t unit = 0; unit < kUnits[l]; ++unit) {
        gradient[biases + unit] += slopes_[l][unit];
        backward_row(l, slopes_[l][unit], weights + unit * kUnits[l - 1], gradient);
      }
      for (std::size_t i = 0; i < kUnits[l - 1]; ++i)
        slopes_[l - 1][i] *= 1 - units_[l - 1][i] * units_[l - 1][i];  // tanh' = 1 - tanh²
      biases = weights;
    }
  }

 private:
  void backward_row(std::size_t l, T slope, std::size_t row, std::vector<T>& gradient) {
    for (std::size_t i = 0; i < kUnits[l - 1]; ++i) {
      gradient[row + i] += slope * units_[l - 1][i];
      slopes_[l - 1][i] += slope * parameters[row + i];
    }
  }

  std::array<std::vector<T>, kUnits.size()> units_, slopes_;  // of the last output
};

// Adam, with its usual constants.
class Optimizer {
 public:
  explicit Optimizer(std::size_t parameters) : mean_(parameters), square_(parameters) {}

  template <class T>
  void step(std::vector<T>& parameters, const std::vector<T>& gradient) {
    constexpr double kRate = 0.01, kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;
    fade1_ *= kBeta1;
    fade2_ *= kBeta2;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const double g = gradient[i];
      mean_[i] = kBeta1 * mean_[i] + (1 - kBeta1) * g;
      square_[i] = kBeta2 * square_[i] + (1 - kBeta2) * g * g;
      const double way = mean_[i] / (1 - fade1_);
      parameters[i] -=
          static_cast<T>(kRate * way / (std::sqrt(square_[i] / (1 - fade2_)) + kEpsilon));
    }
  }

 private:
  std::vector<double> mean_, square_;
  double fade1_ = 1, fade2_ = 1;  // what is left of the start at zero
};
