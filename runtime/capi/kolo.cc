#include "kolo/kolo.h"

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

struct kolo_error {
  kolo_status status;
  int rank;
  std::string text;
};

struct kolo_context {
  kolo::Place place;
  kolo::Duration timeout;
  pid_t owner;  // the process that opened it
  std::mutex turn;
  std::unique_ptr<kolo::Communicator> communicator;  // used by whose turn it is
};

namespace {

using kolo::Errc;
using kolo::Failure;
using kolo::Operation;
using kolo::Outcome;
using kolo::Unit;

kolo_status status_of(Errc code) {
  switch (code) {
    case Errc::invalid_input:
    case Errc::exists:
      return KOLO_INVALID;
    case Errc::timed_out:
      return KOLO_TIMED_OUT;
    case Errc::peer_lost:
      return KOLO_PEER_LOST;
    case Errc::closed:
      return KOLO_LAUNCHER_LOST;
    case Errc::refused:
      return KOLO_REFUSED;
    default:
      return KOLO_SYSTEM;
  }
}

kolo_status report(const Failure& failure, kolo_error** why) {
  const kolo_status status = status_of(failure.code);
  if (why) *why = new kolo_error{status, failure.rank, failure.text};
  return status;
}

// No exception leaves the library; those that can come are the standard library's.
template <class Body>
kolo_status guarded(kolo_error** why, Body body) noexcept {
  if (why) *why = nullptr;
  try {
    const Outcome<Unit> outcome = body();
    return outcome ? KOLO_OK : report(outcome.error(), why);
  } catch (const std::bad_alloc&) {
    return KOLO_NO_MEMORY;
  } catch (const std::exception&) {
    return KOLO_SYSTEM;
  }
}

Failure invalid(const char* text) {
  return Failure(Errc::invalid_input, -1, text);
}

// What a caller's header did not have yet lies past the end of its struct.
int64_t timeout_ms(const kolo_options* options) {
  constexpr std::size_t end = offsetof(kolo_options, timeout_ms) + sizeof(int64_t);
  return options && options->size >= end ? options->timeout_ms : 0;
}

Outcome<Unit> open(const kolo_options* options, kolo_context** context) {
  if (!context) return invalid("kolo_open: the place for the context is NULL");
  *context = nullptr;
  if (timeout_ms(options) < 0) return invalid("kolo_open: timeout_ms is negative");

  auto environment = kolo::read_environment([](const char* name) { return std::getenv(name); });
  if (!environment) return Failure(environment.error()).during("kolo_open");
  auto communicator = kolo::open_communicator(*environment);
  if (!communicator) return communicator.error().during("kolo_open");

  auto made = std::make_unique<kolo_context>();
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

std::optional<Failure> unfit(const kolo_context* context, const void* data, std::size_t count,
                             kolo_type type) {
  if (!context) return invalid("the context is NULL");
  if (!known(type, kolo::DataType{})) return invalid("the type is unknown");
  if (!data && count > 0) return invalid("the data is NULL");
  const std::size_t size = kolo::size_of(static_cast<kolo::DataType>(type));
  if (count > std::numeric_limits<std::ptrdiff_t>::max() / size)
    return invalid("the count is beyond memory");
  if (reinterpret_cast<std::uintptr_t>(data) % size != 0)
    return invalid("the data is not aligned for its type");
  return std::nullopt;
}

Outcome<Unit> run(kolo_context* context, const Operation& operation, void* data) {
  // Not under the lock: another thread of the parent may have held it in the moment of the fork.
  if (context->owner != ::getpid())
    return invalid("this context belongs to the process that was forked");
  const kolo::MutByteView bytes(static_cast<std::uint8_t*>(data), operation.bytes());
  const std::scoped_lock turn(context->turn);
  return context->communicator->run(operation, bytes, context->timeout);
}

}  // namespace

kolo_status kolo_open(const kolo_options* options, kolo_context** context, kolo_error** why) {
  return guarded(why, [&] { return open(options, context); });
}

void kolo_close(kolo_context* context) {
  delete context;
}

kolo_status kolo_allreduce(kolo_context* context, void* data, size_t count, kolo_type type,
                           kolo_reduction reduction, kolo_error** why) {
  return guarded(why, [&]() -> Outcome<Unit> {
    if (const auto wrong = unfit(context, data, count, type))
      return wrong->during("kolo_allreduce");
    if (!known(reduction, kolo::Reduction{}))
      return invalid("the reduction is unknown").during("kolo_allreduce");
    return run(context,
               {.collective = kolo::Collective::allreduce,
                .type = static_cast<kolo::DataType>(type),
                .reduction = static_cast<kolo::Reduction>(reduction),
                .count = count},
               data);
  });
}

kolo_status kolo_broadcast(kolo_context* context, void* data, size_t count, kolo_type type,
                           int root, kolo_error** why) {
  return guarded(why, [&]() -> Outcome<Unit> {
    if (const auto wrong = unfit(context, data, count, type))
      return wrong->during("kolo_broadcast");
    if (root < 0 || root >= context->place.size)
      return invalid("no rank has the number of the root").during("kolo_broadcast");
    return run(context,
               {.collective = kolo::Collective::broadcast,
                .type = static_cast<kolo::DataType>(type),
                .root = root,
                .count = count},
               data);
  });
}

kolo_status kolo_barrier(kolo_context* context, kolo_error** why) {
  return guarded(why, [&]() -> Outcome<Unit> {
    if (!context) return invalid("kolo_barrier: the context is NULL");
    return run(context, Operation{}, nullptr);
  });
}

int kolo_rank(const kolo_context* context) {
  return context ? context->place.rank : -1;
}
int kolo_size(const kolo_context* context) {
  return context ? context->place.size : -1;
}
int kolo_local_rank(const kolo_context* context) {
  return context ? context->place.local_rank : -1;
}
int kolo_local_size(const kolo_context* context) {
  return context ? context->place.local_size : -1;
}
int kolo_cross_rank(const kolo_context* context) {
  return context ? context->place.cross_rank : -1;
}
int kolo_cross_size(const kolo_context* context) {
  return context ? context->place.cross_size : -1;
}

const char* kolo_error_text(const kolo_error* error) {
  return error ? error->text.c_str() : "";
}

kolo_status kolo_error_status(const kolo_error* error) {
  return error ? error->status : KOLO_OK;
}

int kolo_error_rank(const kolo_error* error) {
  return error ? error->rank : -1;
}

void kolo_error_free(kolo_error* error) {
  delete error;
}

const char* kolo_version(void) {
  return KOLO_VERSION;
}
