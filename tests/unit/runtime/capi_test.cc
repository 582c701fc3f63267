#include <corro/corro.h>
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
  void operator()(corro_context* context) const { corro_close(context); }
  void operator()(corro_error* error) const { corro_error_free(error); }
};
using Context = std::unique_ptr<corro_context, Close>;

// A process that no launcher started.
Context alone() {
  corro_context* context = nullptr;
  corro_error* why = nullptr;
  REQUIRE(corro_open(nullptr, &context, &why) == CORRO_OK);
  REQUIRE(why == nullptr);
  return Context(context);
}

// The text of an error that a call must give.
template <class Call>
std::string refusal(corro_status expected, Call call) {
  corro_error* why = nullptr;
  CHECK(call(&why) == expected);
  const std::unique_ptr<corro_error, Close> owner(why);
  CHECK(corro_error_status(why) == expected);
  return corro_error_text(why);
}

}  // namespace

TEST_CASE("a process that nobody launched is rank 0 of 1, and every collective works") {
  const Context context = alone();
  CHECK(corro_rank(context.get()) == 0);
  CHECK(corro_size(context.get()) == 1);
  CHECK(corro_local_rank(context.get()) == 0);
  CHECK(corro_local_size(context.get()) == 1);
  CHECK(corro_cross_rank(context.get()) == 0);
  CHECK(corro_cross_size(context.get()) == 1);

  std::vector<float> values = {1, 2, 3};
  for (const auto reduction : {CORRO_SUM, CORRO_AVERAGE, CORRO_MIN, CORRO_MAX})
    CHECK(corro_allreduce(context.get(), values.data(), 3, CORRO_FLOAT32, reduction, nullptr) ==
          CORRO_OK);
  CHECK(corro_broadcast(context.get(), values.data(), 3, CORRO_FLOAT32, 0, nullptr) == CORRO_OK);
  CHECK(corro_barrier(context.get(), nullptr) == CORRO_OK);
  CHECK(values == std::vector<float>{1, 2, 3});
  CHECK(corro_allreduce(context.get(), nullptr, 0, CORRO_FLOAT64, CORRO_SUM, nullptr) == CORRO_OK);
}

TEST_CASE("a worker tells its agent what it calls, and when that ends") {
  const auto page = corro::StatusBoard().next();
  REQUIRE(page);
  ::setenv(corro::kStatusVariable, page->handle(page->fd()).c_str(), 1);
  const Context context = alone();
  ::unsetenv(corro::kStatusVariable);
  CHECK(page->read().said_anything());
  CHECK(page->read().begun == 0);

  std::vector<double> values(16);
  CHECK(corro_allreduce(context.get(), values.data(), 16, CORRO_FLOAT64, CORRO_SUM, nullptr) ==
        CORRO_OK);
  CHECK(page->read().text == "allreduce(sum of 16 f64), call 1");
  CHECK(corro_barrier(context.get(), nullptr) == CORRO_OK);
  const auto status = page->read();
  CHECK(status.text == "barrier(), call 2");
  CHECK(status.begun == 2);
  CHECK(status.finished == 2);
}

TEST_CASE("arguments that cannot be are errors and not crashes") {
  const Context owner = alone();
  corro_context* context = owner.get();
  double data[2] = {};

  const auto allreduce = [](corro_context* c, void* d, size_t n, int type, int reduction) {
    return refusal(CORRO_INVALID, [=](corro_error** why) {
      return corro_allreduce(c, d, n, type, reduction, why);
    });
  };
  CHECK(allreduce(nullptr, data, 1, 0, 0) == "corro_allreduce: the context is NULL");
  CHECK(allreduce(context, nullptr, 1, 0, 0) == "corro_allreduce: the data is NULL");
  CHECK(allreduce(context, data, 1, 99, 0) == "corro_allreduce: the type is unknown");
  CHECK(allreduce(context, data, 1, 0, 9) == "corro_allreduce: the reduction is unknown");
  CHECK(allreduce(context, data, SIZE_MAX, 1, 0) == "corro_allreduce: the count is beyond memory");

  for (const int root : {-1, 1})
    CHECK(refusal(CORRO_INVALID, [&](corro_error** why) {
            return corro_broadcast(context, data, 1, CORRO_FLOAT64, root, why);
          }) == "corro_broadcast: root " + std::to_string(root) + " is not a rank of a group of 1");
  CHECK(refusal(CORRO_INVALID, [](corro_error** why) { return corro_barrier(nullptr, why); }) ==
        "corro_barrier: the context is NULL");
  CHECK(refusal(CORRO_INVALID, [](corro_error** why) {
          return corro_open(nullptr, nullptr, why);
        }) == "corro_open: the place for the context is NULL");
  CHECK(corro_barrier(context, nullptr) == CORRO_OK);  // and it is as good as before
}

TEST_CASE("an operation of any kind can be described, and what does not fit is said") {
  const Context owner = alone();
  float in[3] = {1, 2, 3}, out[3] = {};
  const corro_piece from[] = {{in, 8}, {in + 2, 4}}, to = {out, sizeof out};
  corro_op op{};
  op.size = sizeof op;
  op.kind = CORRO_ALLREDUCE;
  op.type = CORRO_FLOAT32;
  op.count = 3;
  op.prescale = 2;
  op.postscale = 5;
  op.in = from;
  op.in_pieces = 2;
  op.out = &to;
  op.out_pieces = 1;
  REQUIRE(corro_run(owner.get(), CORRO_WORLD, &op, nullptr) == CORRO_OK);
  CHECK(std::vector<float>(out, out + 3) == std::vector<float>{10, 20, 30});

  op.count = 4;
  CHECK(refusal(CORRO_INVALID, [&](corro_error** why) {
          return corro_run(owner.get(), CORRO_WORLD, &op, why);
        }).find("corro_run: ") == 0);
  op.kind = 77;
  CHECK(refusal(CORRO_INVALID, [&](corro_error** why) {
          return corro_run(owner.get(), CORRO_WORLD, &op, why);
        }) == "corro_run: the kind is unknown");
  CHECK(refusal(CORRO_INVALID, [&](corro_error** why) {
          return corro_run(owner.get(), 9, &op, why);
        }) == "corro_run: there is no such group");
}

TEST_CASE("a group of one rank works, and one of other ranks is refused") {
  const Context owner = alone();
  corro_group group = 0;
  const int32_t self[] = {0}, other[] = {1}, twice[] = {0, 0};
  REQUIRE(corro_group_open(owner.get(), self, 1, &group, nullptr) == CORRO_OK);
  CHECK(corro_group_rank(owner.get(), group) == 0);
  CHECK(corro_group_size(owner.get(), group) == 1);
  corro_group_close(owner.get(), group);
  CHECK(corro_group_size(owner.get(), group) == -1);
  CHECK(corro_group_open(owner.get(), other, 1, &group, nullptr) == CORRO_INVALID);
  CHECK(corro_group_open(owner.get(), twice, 2, &group, nullptr) == CORRO_INVALID);
}

TEST_CASE("nothing is a place, an error and a thing to close") {
  CHECK(corro_rank(nullptr) == -1);
  CHECK(corro_size(nullptr) == -1);
  CHECK(std::string(corro_error_text(nullptr)).empty());
  CHECK(corro_error_status(nullptr) == CORRO_OK);
  CHECK(corro_error_rank(nullptr) == -1);
  corro_error_free(nullptr);
  corro_close(nullptr);
}

TEST_CASE("options of any size are taken for what they hold") {
  corro_options options = {sizeof options, -1};
  corro_context* context = nullptr;
  CHECK(refusal(CORRO_INVALID, [&](corro_error** why) {
          return corro_open(&options, &context, why);
        }) == "corro_open: timeout_ms is negative");
  CHECK(context == nullptr);

  options.size = sizeof options.size;  // an older header's, without a timeout
  CHECK(corro_open(&options, &context, nullptr) == CORRO_OK);
  corro_close(context);
}

TEST_CASE("an environment that cannot be is an error that names the variable") {
  ::setenv("HOROVOD_RANK", "1", 1);
  corro_context* context = nullptr;
  const auto text =
      refusal(CORRO_INVALID, [&](corro_error** why) { return corro_open(nullptr, &context, why); });
  ::unsetenv("HOROVOD_RANK");
  CHECK(text == "corro_open: HOROVOD_SIZE is not set, though others of this job are");
}

TEST_CASE("a forked child cannot use its parent's context, but can close it") {
  const Context context = alone();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = corro_barrier(context.get(), nullptr) == CORRO_INVALID;
    corro_close(context.get());
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(corro_barrier(context.get(), nullptr) == CORRO_OK);
}

TEST_CASE("the library knows its version") {
  CHECK(std::string(corro_version()) == CORRO_VERSION);
}
