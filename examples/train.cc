// Trains a small network to tell two interleaved spirals apart, on any number of workers:
//
//   horovodrun -np 4 build/release/bin/train
//
// Every worker holds the whole network and a share of the samples.  The first parameters are
// those of rank 0 (broadcast).  In each step every worker computes its share's part of the
// gradient, the parts are added up (allreduce), and all take the same step.  So the outcome is
// that of one worker with all the samples, whatever their number.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "corro/corro.h"
#include "network.h"
#include "picture.h"
#include "spirals.h"

namespace {

constexpr const char* kUsage =
    "usage: train [--steps N] [--samples N] [--float32] [--trace] [--color]\n"
    "  --steps N     how many steps to train (1200)\n"
    "  --samples N   how many samples there are (600)\n"
    "  --float32     in single precision\n"
    "  --trace       for tests: the loss of every step, and a digest of each worker's parameters\n"
    "  --color       colours in the picture, even if the output is not a terminal\n";

struct Options {
  int steps = 1200;
  int samples = 600;
  bool float32 = false;
  bool trace = false;
  bool color = isatty(STDOUT_FILENO) != 0;
};

// This worker in its job.  If a call fails, here or because of another worker, there is nothing
// to be saved: it says why and ends, and the launcher ends the rest.
class Job {
 public:
  Job() {
    corro_error* why = nullptr;
    check(corro_open(nullptr, &context_, &why), &why);
  }
  ~Job() { corro_close(context_); }
  Job(const Job&) = delete;

  int rank() const { return corro_rank(context_); }
  int size() const { return corro_size(context_); }

  template <class T>
  void add_up(std::vector<T>& values) {
    corro_error* why = nullptr;
    check(corro_allreduce(context_, values.data(), values.size(), type<T>(), CORRO_SUM, &why),
          &why);
  }

  template <class T>
  void copy_from_rank_0(std::vector<T>& values) {
    corro_error* why = nullptr;
    check(corro_broadcast(context_, values.data(), values.size(), type<T>(), 0, &why), &why);
  }

 private:
  template <class T>
  static corro_type type() {
    return std::is_same_v<T, float> ? CORRO_FLOAT32 : CORRO_FLOAT64;
  }

  static void check(corro_status status, corro_error** why) {
    if (status == CORRO_OK) return;
    std::fprintf(stderr, "train: %s\n", corro_error_text(*why));
    std::exit(1);
  }

  corro_context* context_ = nullptr;
};

// A worker's copy of the network, and its share of the samples: every size()-th.
template <class T>
class Trainer {
 public:
  Trainer(Job& job, const std::vector<Sample>& samples)
      : job_(job),
        samples_(samples),
        network_(Random(100 + static_cast<std::uint64_t>(job.rank()))),
        optimizer_(network_.parameters.size()),
        sums_(network_.parameters.size() + 2) {
    job_.copy_from_rank_0(network_.parameters);
  }

  void step() {
    std::fill(sums_.begin(), sums_.end(), T(0));
    const auto stride = static_cast<std::size_t>(job_.size());
    for (auto i = static_cast<std::size_t>(job_.rank()); i < samples_.size(); i += stride)
      learn_from(samples_[i]);
    job_.add_up(sums_);
    optimizer_.step(network_.parameters, sums_);
  }

  double loss() const { return sums_[sums_.size() - 2]; }
  double accuracy() const { return sums_[sums_.size() - 1]; }
  Network<T>& network() { return network_; }

 private:
  // A sample's part is divided by the number of all samples and not of this worker's, so the sum
  // over the workers is the mean over the samples, even where some workers have one more.
  void learn_from(const Sample& sample) {
    const auto all = static_cast<double>(samples_.size());
    const double margin = sample.arm * static_cast<double>(network_.output(sample.x, sample.y));
    network_.backward(static_cast<T>(-sample.arm / (1 + std::exp(margin)) / all), sums_);
    const double loss = std::log1p(std::exp(-std::abs(margin))) + std::max(-margin, 0.0);
    sums_[sums_.size() - 2] += static_cast<T>(loss / all);
    sums_[sums_.size() - 1] += static_cast<T>((margin > 0 ? 1 : 0) / all);
  }

  Job& job_;
  const std::vector<Sample>& samples_;
  Network<T> network_;
  Optimizer optimizer_;
  std::vector<T> sums_;  // the gradient; and behind it, to save two exchanges, loss and accuracy
};

// FNV-1a: the same on two workers only if every bit of their parameters is.
template <class T>
std::uint64_t digest(const std::vector<T>& values) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::size_t i = 0; i < values.size() * sizeof(T); ++i)
    hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

// What a person sees: rank 0's words.
class Reporter {
 public:
  Reporter(int workers, int samples, int steps)
      : samples_(samples), steps_(steps), start_(std::chrono::steady_clock::now()) {
    std::printf("two spirals, %d samples, %d worker%s\n", samples, workers, workers > 1 ? "s" : "");
  }

  void on_step(int step, double loss, double accuracy) const {
    if (step % 100 != 0 && step != steps_) return;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start_;
    std::printf("step %5d   loss %.4f   right %5.1f %%   %7.0f samples/s\n", step, loss,
                100 * accuracy, step * samples_ / taken.count());
    std::fflush(stdout);
  }

 private:
  int samples_, steps_;
  std::chrono::steady_clock::time_point start_;
};

template <class T>
void train(const Options& options) {
  Job job;
  const auto samples = two_spirals(options.samples);
  Trainer<T> trainer(job, samples);
  const bool speaks = job.rank() == 0;

  std::optional<Reporter> reporter;
  if (speaks && !options.trace) reporter.emplace(job.size(), options.samples, options.steps);
  for (int step = 1; step <= options.steps; ++step) {
    trainer.step();
    if (reporter) reporter->on_step(step, trainer.loss(), trainer.accuracy());
    if (speaks && options.trace) std::printf("loss %.17g\n", trainer.loss());
  }

  if (options.trace) std::printf("digest %016" PRIx64 "\n", digest(trainer.network().parameters));
  if (!reporter) return;
  Picture picture;
  picture.shade([&](double x, double y) { return trainer.network().output(x, y); });
  picture.mark(samples);
  picture.print(options.color);
  std::printf("%.1f %% of the samples are on their side\n", 100 * trainer.accuracy());
}

int usage() {
  std::fputs(kUsage, stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    const bool has_value = i + 1 < argc;
    if (arg == "--float32")
      options.float32 = true;
    else if (arg == "--trace")
      options.trace = true;
    else if (arg == "--color")
      options.color = true;
    else if (arg == "--steps" && has_value)
      options.steps = std::atoi(argv[++i]);
    else if (arg == "--samples" && has_value)
      options.samples = std::atoi(argv[++i]);
    else
      return usage();
  }
  if (options.steps < 1 || options.samples < 1) return usage();
  options.float32 ? train<float>(options) : train<double>(options);
}
