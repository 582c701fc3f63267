#include "corro/corro.h"

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <new>

#include "runtime/collective/open.h"

struct corro_error {
  corro_status status;
  int rank;
  std::string text;
};

struct corro_context {
  corro::runtime::Place place;
  corro::Duration timeout;
  pid_t owner;  // the process that opened it
  std::mutex turn;
  std::unique_ptr<corro::runtime::Communicator> communicator;  // used by whose turn it is
};

namespace {

using corro::Errc;
using corro::Unit;
namespace runtime = corro::runtime;
using runtime::Failure;
using runtime::Operation;
using runtime::Outcome;

corro_status status_of(Errc code) {
  switch (code) {
    case Errc::invalid_input:
    case Errc::exists:
      return CORRO_INVALID;
    case Errc::timed_out:
      return CORRO_TIMED_OUT;
    case Errc::peer_lost:
      return CORRO_PEER_LOST;
    case Errc::closed:
      return CORRO_LAUNCHER_LOST;
    case Errc::refused:
      return CORRO_REFUSED;
    default:
      return CORRO_SYSTEM;
  }
}

corro_status report(const Failure& failure, corro_error** why) {
  const corro_status status = status_of(failure.code);
  if (why) *why = new corro_error{status, failure.rank, failure.text};
  return status;
}

// No exception leaves the library; those that can come are the standard library's.
template <class Body>
corro_status guarded(corro_error** why, Body body) noexcept {
  if (why) *why = nullptr;
  try {
    const Outcome<Unit> outcome = body();
    return outcome ? CORRO_OK : report(outcome.error(), why);
  } catch (const std::bad_alloc&) {
    return CORRO_NO_MEMORY;
  } catch (const std::exception&) {
    return CORRO_SYSTEM;
  }
}

Failure invalid(const char* text) {
  return Failure(Errc::invalid_input, -1, text);
}

// What a caller's header did not have yet lies past the end of its struct.
int64_t timeout_ms(const corro_options* options) {
  constexpr std::size_t end = offsetof(corro_options, timeout_ms) + sizeof(int64_t);
  return options && options->size >= end ? options->timeout_ms : 0;
}

Outcome<Unit> open(const corro_options* options, corro_context** context) {
  if (!context) return invalid("corro_open: the place for the context is NULL");
  *context = nullptr;
  if (timeout_ms(options) < 0) return invalid("corro_open: timeout_ms is negative");

  auto environment = runtime::read_environment([](const char* name) { return std::getenv(name); });
  if (!environment) return Failure(environment.error()).during("corro_open");
  auto communicator = runtime::open_communicator(*environment);
  if (!communicator) return communicator.error().during("corro_open");

  auto made = std::make_unique<corro_context>();
  made->place = environment->place;
  made->timeout = environment->operation_timeout;
  if (const auto ms = timeout_ms(options)) made->timeout = std::chrono::milliseconds(ms);
  made->owner = ::getpid();
  made->communicator = std::move(*communicator);
  *context = made.release();
  return Unit{};
}

template <class Enum>
bool known(std::int32_t value, Enum any) {
  return value >= 0 && value <= static_cast<std::int32_t>(last_of(any));
}

std::optional<Failure> unfit(const corro_context* context, const void* data, std::size_t count,
                             corro_type type) {
  if (!context) return invalid("the context is NULL");
  if (!known(type, runtime::DataType{})) return invalid("the type is unknown");
  if (!data && count > 0) return invalid("the data is NULL");
  const std::size_t size = runtime::size_of(static_cast<runtime::DataType>(type));
  if (count > std::numeric_limits<std::ptrdiff_t>::max() / size)
    return invalid("the count is beyond memory");
  if (reinterpret_cast<std::uintptr_t>(data) % size != 0)
    return invalid("the data is not aligned for its type");
  return std::nullopt;
}

Outcome<Unit> run(corro_context* context, const Operation& operation, void* data) {
  // Not under the lock: another thread of the parent may have held it in the moment of the fork.
  if (context->owner != ::getpid())
    return invalid("this context belongs to the process that was forked");
  const corro::MutByteView bytes(static_cast<std::uint8_t*>(data), operation.bytes());
  const std::scoped_lock turn(context->turn);
  return context->communicator->run(operation, bytes, context->timeout);
}

}  // namespace

corro_status corro_open(const corro_options* options, corro_context** context, corro_error** why) {
  return guarded(why, [&] { return open(options, context); });
}

void corro_close(corro_context* context) {
  delete context;
}

corro_status corro_allreduce(corro_context* context, void* data, size_t count, corro_type type,
                             corro_reduction reduction, corro_error** why) {
  return guarded(why, [&]() -> Outcome<Unit> {
    if (const auto wrong = unfit(context, data, count, type))
      return wrong->during("corro_allreduce");
    if (!known(reduction, runtime::Reduction{}))
      return invalid("the reduction is unknown").during("corro_allreduce");
    return run(context,
               {.collective = runtime::Collective::allreduce,
                .type = static_cast<runtime::DataType>(type),
                .reduction = static_cast<runtime::Reduction>(reduction),
                .count = count},
               data);
  });
}

corro_status corro_broadcast(corro_context* context, void* data, size_t count, corro_type type,
                             int root, corro_error** why) {
  return guarded(why, [&]() -> Outcome<Unit> {
    if (const auto wrong = unfit(context, data, count, type))
      return wrong->during("corro_broadcast");
    if (root < 0 || root >= context->place.size)
      return invalid("no rank has the number of the root").during("corro_broadcast");
    return run(context,
               {.collective = runtime::Collective::broadcast,
                .type = static_cast<runtime::DataType>(type),
                .root = root,
                .count = count},
               data);
  });
}

corro_status corro_barrier(corro_context* context, corro_error** why) {
  return guarded(why, [&]() -> Outcome<Unit> {
    if (!context) return invalid("corro_barrier: the context is NULL");
    return run(context, Operation{}, nullptr);
  });
}

int corro_rank(const corro_context* context) {
  return context ? context->place.rank : -1;
}
int corro_size(const corro_context* context) {
  return context ? context->place.size : -1;
}
int corro_local_rank(const corro_context* context) {
  return context ? context->place.local_rank : -1;
}
int corro_local_size(const corro_context* context) {
  return context ? context->place.local_size : -1;
}
int corro_cross_rank(const corro_context* context) {
  return context ? context->place.cross_rank : -1;
}
int corro_cross_size(const corro_context* context) {
  return context ? context->place.cross_size : -1;
}

const char* corro_error_text(const corro_error* error) {
  return error ? error->text.c_str() : "";
}

corro_status corro_error_status(const corro_error* error) {
  return error ? error->status : CORRO_OK;
}

int corro_error_rank(const corro_error* error) {
  return error ? error->rank : -1;
}

void corro_error_free(corro_error* error) {
  delete error;
}

const char* corro_version(void) {
  return CORRO_VERSION;
}
