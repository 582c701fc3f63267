#include <kolo/kolo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/status_page.h"

namespace {

struct Close {
  void operator()(kolo_context* context) const { kolo_close(context); }
  void operator()(kolo_error* error) const { kolo_error_free(error); }
};
using Context = std::unique_ptr<kolo_context, Close>;

// A process that no launcher started.
Context alone() {
  kolo_context* context = nullptr;
  kolo_error* why = nullptr;
  REQUIRE(kolo_open(nullptr, &context, &why) == KOLO_OK);
  REQUIRE(why == nullptr);
  return Context(context);
}

// The text of an error that a call must give.
template <class Call>
std::string refusal(kolo_status expected, Call call) {
  kolo_error* why = nullptr;
  CHECK(call(&why) == expected);
  const std::unique_ptr<kolo_error, Close> owner(why);
  CHECK(kolo_error_status(why) == expected);
  return kolo_error_text(why);
}

}  // namespace

TEST_CASE("a process that nobody launched is rank 0 of 1, and every collective works") {
  const Context context = alone();
  CHECK(kolo_rank(context.get()) == 0);
  CHECK(kolo_size(context.get()) == 1);
  CHECK(kolo_local_rank(context.get()) == 0);
  CHECK(kolo_local_size(context.get()) == 1);
  CHECK(kolo_cross_rank(context.get()) == 0);
  CHECK(kolo_cross_size(context.get()) == 1);

  std::vector<float> values = {1, 2, 3};
  for (const auto reduction : {KOLO_SUM, KOLO_AVERAGE, KOLO_MIN, KOLO_MAX})
    CHECK(kolo_allreduce(context.get(), values.data(), 3, KOLO_FLOAT32, reduction, nullptr) ==
          KOLO_OK);
  CHECK(kolo_broadcast(context.get(), values.data(), 3, KOLO_FLOAT32, 0, nullptr) == KOLO_OK);
  CHECK(kolo_barrier(context.get(), nullptr) == KOLO_OK);
  CHECK(values == std::vector<float>{1, 2, 3});
  CHECK(kolo_allreduce(context.get(), nullptr, 0, KOLO_FLOAT64, KOLO_SUM, nullptr) == KOLO_OK);
}

TEST_CASE("a worker tells its agent what it calls, and when that ends") {
  const auto page = kolo::StatusBoard().next();
  REQUIRE(page);
  ::setenv(kolo::kStatusVariable, page->handle(page->fd()).c_str(), 1);
  const Context context = alone();
  ::unsetenv(kolo::kStatusVariable);
  CHECK(page->read().said_anything());
  CHECK(page->read().begun == 0);

  std::vector<double> values(16);
  CHECK(kolo_allreduce(context.get(), values.data(), 16, KOLO_FLOAT64, KOLO_SUM, nullptr) ==
        KOLO_OK);
  CHECK(page->read().text == "allreduce(sum of 16 f64), call 1");
  CHECK(kolo_barrier(context.get(), nullptr) == KOLO_OK);
  const auto status = page->read();
  CHECK(status.text == "barrier(), call 2");
  CHECK(status.begun == 2);
  CHECK(status.finished == 2);
}

TEST_CASE("arguments that cannot be are errors and not crashes") {
  const Context owner = alone();
  kolo_context* context = owner.get();
  double data[2] = {};
  void* odd = reinterpret_cast<char*>(data) + 1;

  const auto allreduce = [](kolo_context* c, void* d, size_t n, int type, int reduction) {
    return refusal(KOLO_INVALID,
                   [=](kolo_error** why) { return kolo_allreduce(c, d, n, type, reduction, why); });
  };
  CHECK(allreduce(nullptr, data, 1, 0, 0) == "kolo_allreduce: the context is NULL");
  CHECK(allreduce(context, nullptr, 1, 0, 0) == "kolo_allreduce: the data is NULL");
  CHECK(allreduce(context, odd, 1, 0, 0) == "kolo_allreduce: the data is not aligned for its type");
  CHECK(allreduce(context, data, 1, 9, 0) == "kolo_allreduce: the type is unknown");
  CHECK(allreduce(context, data, 1, 0, 9) == "kolo_allreduce: the reduction is unknown");
  CHECK(allreduce(context, data, SIZE_MAX, 1, 0) == "kolo_allreduce: the count is beyond memory");

  for (const int root : {-1, 1})
    CHECK(refusal(KOLO_INVALID, [&](kolo_error** why) {
            return kolo_broadcast(context, data, 1, KOLO_FLOAT64, root, why);
          }) == "kolo_broadcast: no rank has the number of the root");
  CHECK(refusal(KOLO_INVALID, [](kolo_error** why) { return kolo_barrier(nullptr, why); }) ==
        "kolo_barrier: the context is NULL");
  CHECK(refusal(KOLO_INVALID, [](kolo_error** why) { return kolo_open(nullptr, nullptr, why); }) ==
        "kolo_open: the place for the context is NULL");
  CHECK(kolo_barrier(context, nullptr) == KOLO_OK);  // and it is as good as before
}

TEST_CASE("nothing is a place, an error and a thing to close") {
  CHECK(kolo_rank(nullptr) == -1);
  CHECK(kolo_size(nullptr) == -1);
  CHECK(std::string(kolo_error_text(nullptr)).empty());
  CHECK(kolo_error_status(nullptr) == KOLO_OK);
  CHECK(kolo_error_rank(nullptr) == -1);
  kolo_error_free(nullptr);
  kolo_close(nullptr);
}

TEST_CASE("options of any size are taken for what they hold") {
  kolo_options options = {sizeof options, -1};
  kolo_context* context = nullptr;
  CHECK(refusal(KOLO_INVALID, [&](kolo_error** why) {
          return kolo_open(&options, &context, why);
        }) == "kolo_open: timeout_ms is negative");
  CHECK(context == nullptr);

  options.size = sizeof options.size;  // an older header's, without a timeout
  CHECK(kolo_open(&options, &context, nullptr) == KOLO_OK);
  kolo_close(context);
}

TEST_CASE("an environment that cannot be is an error that names the variable") {
  ::setenv("HOROVOD_RANK", "1", 1);
  kolo_context* context = nullptr;
  const auto text =
      refusal(KOLO_INVALID, [&](kolo_error** why) { return kolo_open(nullptr, &context, why); });
  ::unsetenv("HOROVOD_RANK");
  CHECK(text == "kolo_open: HOROVOD_SIZE is not set, though others of this job are");
}

TEST_CASE("a forked child cannot use its parent's context, but can close it") {
  const Context context = alone();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = kolo_barrier(context.get(), nullptr) == KOLO_INVALID;
    kolo_close(context.get());
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(kolo_barrier(context.get(), nullptr) == KOLO_OK);
}

TEST_CASE("the library knows its version") {
  CHECK(std::string(kolo_version()) == KOLO_VERSION);
}
