#include "corro/corro.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <numeric>

#include "base/fork_mark.h"
#include "runtime/backend/native/job.h"

struct corro_error {
  corro_status status;
  int rank;
  std::string text;
};

struct corro_context {
  corro::Duration timeout;
  corro::ForkMark mark;  // of the process that opened it
  std::unique_ptr<corro::runtime::Job> job;
};

namespace {

using corro::Errc;
using corro::Unit;
using corro::runtime::Buffers;
using corro::runtime::DataType;
using corro::runtime::Failure;
using corro::runtime::Job;
using corro::runtime::Kind;
using corro::runtime::MutPieces;
using corro::runtime::Operation;
using corro::runtime::Outcome;
using corro::runtime::Pieces;
using corro::runtime::Reduction;

// By the numbers of corro_type and corro_kind.
constexpr std::array kTypes = {DataType::f32,    DataType::f64, DataType::u8,  DataType::i8,
                               DataType::u16,    DataType::i16, DataType::u32, DataType::i32,
                               DataType::u64,    DataType::i64, DataType::f16, DataType::bf16,
                               DataType::boolean};
constexpr std::array kKinds = {Kind::allreduce, Kind::allgather,     Kind::broadcast,
                               Kind::alltoall,  Kind::reducescatter, Kind::barrier};

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

Failure invalid(std::string text) {
  return Failure(Errc::invalid_input, -1, std::move(text));
}

// A struct of the caller's header in ours: what the older one does not have is zero.
template <class T>
T read_struct(const T* given) {
  T ours{};
  if (given) std::memcpy(&ours, given, std::min(given->size, sizeof ours));
  return ours;
}

Outcome<Unit> open(const corro_options* given, corro_context** context) {
  if (!context) return invalid("corro_open: the place for the context is NULL");
  *context = nullptr;
  const corro_options options = read_struct(given);
  if (options.timeout_ms < 0) return invalid("corro_open: timeout_ms is negative");

  auto environment =
      corro::runtime::read_environment([](const char* name) { return std::getenv(name); });
  if (!environment) return Failure(environment.error()).during("corro_open");
  auto job = Job::open(*environment);
  if (!job) return job.error().during("corro_open");

  auto made = std::make_unique<corro_context>();
  made->timeout = environment->operation_timeout;
  constexpr int64_t kLongest = int64_t{10} * 365 * 24 * 3600 * 1000;  // ten years
  if (options.timeout_ms)
    made->timeout = std::chrono::milliseconds(std::min(options.timeout_ms, kLongest));
  made->mark = corro::ForkMark::make();
  made->job = std::move(*job);
  *context = made.release();
  return Unit{};
}

// Not under a lock: another thread of the parent may have held it in the moment of the fork.
std::optional<Failure> unusable(const corro_context* context) {
  if (!context) return invalid("the context is NULL");
  if (!context->mark.here()) return invalid("this context belongs to the process that was forked");
  return std::nullopt;
}

template <class Table>
bool in_table(std::int32_t value, const Table& table) {
  return value >= 0 && static_cast<std::size_t>(value) < table.size();
}

template <class P>
Outcome<P> pieces_of(const corro_piece* pieces, std::size_t n) {
  if (n > 0 && !pieces) return invalid("the pieces are NULL");
  std::vector<typename P::Piece> all;
  for (std::size_t i = 0; i < n; ++i) {
    if (!pieces[i].data && pieces[i].bytes > 0) return invalid("the data is NULL");
    all.emplace_back(static_cast<std::uint8_t*>(pieces[i].data), pieces[i].bytes);
  }
  return P(std::move(all));
}

std::vector<std::uint64_t> numbers(const std::size_t* values, int n) {
  if (!values) return {};
  return {values, values + n};
}

Outcome<Operation> operation_of(const corro_op& op, int ranks) {
  if (!in_table(op.kind, kKinds)) return invalid("the kind is unknown");
  if (!in_table(op.type, kTypes)) return invalid("the type is unknown");
  if (op.reduction < 0 || op.reduction > static_cast<int>(last_of(Reduction{})))
    return invalid("the reduction is unknown");
  Operation made;
  made.shape.kind = kKinds[static_cast<std::size_t>(op.kind)];
  made.shape.type = kTypes[static_cast<std::size_t>(op.type)];
  made.shape.reduction = static_cast<Reduction>(op.reduction);
  made.shape.root = op.root;
  made.shape.count = op.count;
  made.shape.prescale = op.prescale == 0 ? 1 : op.prescale;
  made.shape.postscale = op.postscale == 0 ? 1 : op.postscale;
  if (made.shape.kind == Kind::allgather || made.shape.kind == Kind::reducescatter) {
    made.shape.parts = numbers(op.parts, ranks);
    made.shape.count =
        std::accumulate(made.shape.parts.begin(), made.shape.parts.end(), std::uint64_t{0});
  }
  if (made.shape.kind == Kind::alltoall) {
    made.sends = numbers(op.sends, ranks);
    made.receives = numbers(op.receives, ranks);
    made.shape.count = 0;
  }
  // What a kind does not use is not compared between ranks.
  const bool reduces = made.shape.kind == Kind::allreduce || made.shape.kind == Kind::reducescatter;
  if (!reduces) made.shape.reduction = Reduction::sum;
  if (made.shape.kind != Kind::broadcast) made.shape.root = 0;
  if (made.shape.kind == Kind::barrier) {
    made.shape.type = DataType::u8;
    made.shape.count = 0;
  }
  if (op.count > std::numeric_limits<std::ptrdiff_t>::max() / size_of(made.shape.type))
    return invalid("the count is beyond memory");
  return made;
}

Pieces readable(const MutPieces& pieces) {
  return Pieces(std::vector<Pieces::Piece>(pieces.pieces().begin(), pieces.pieces().end()));
}

// Where `in` is when the caller names none.
Pieces in_place(const Operation& op, const MutPieces& out, int rank) {
  if (op.shape.kind != Kind::allgather || op.shape.parts.empty()) return readable(out);
  const std::size_t element = size_of(op.shape.type);
  const auto own = op.shape.parts.begin() + rank;
  const std::size_t begin = std::accumulate(op.shape.parts.begin(), own, std::uint64_t{0});
  const auto bytes = corro::runtime::Range{begin, begin + *own}.scaled(element);
  return bytes.end <= out.size() ? readable(out.slice(bytes)) : Pieces();
}

Outcome<Unit> run_checked(corro_context* context, corro_group group, const Operation& op,
                          const Buffers& buffers, int rank, int ranks) {
  if (auto why = corro::runtime::invalid(op, buffers, rank, ranks)) return invalid(*why);
  return context->job->run(group, op, buffers, context->timeout);
}

Outcome<Unit> run(corro_context* context, corro_group group, const corro_op* given) {
  if (auto why = unusable(context)) return *why;
  if (!given) return invalid("the operation is NULL");
  const auto place = context->job->self_and_size(group);
  if (!place) return invalid("there is no such group");
  const auto [rank, ranks] = *place;
  const corro_op op = read_struct(given);
  if (op.size < offsetof(corro_op, out_pieces) + sizeof op.out_pieces)
    return invalid("the operation does not say its own size");
  auto made = operation_of(op, ranks);
  if (!made) return made.error();
  auto out = pieces_of<MutPieces>(op.out, op.out_pieces);
  if (!out) return out.error();
  auto in = pieces_of<Pieces>(op.in, op.in_pieces);
  if (!in) return in.error();
  Buffers buffers{std::move(*in), std::move(*out)};
  if (op.in_pieces == 0) buffers.in = in_place(*made, buffers.out, rank);
  return run_checked(context, group, *made, buffers, rank, ranks);
}

// The calls with one buffer, in place, on all ranks.
Outcome<Unit> run_simple(corro_context* context, Kind kind, void* data, std::size_t count,
                         corro_type type, corro_reduction reduction, int root) {
  if (auto why = unusable(context)) return *why;
  if (!in_table(type, kTypes)) return invalid("the type is unknown");
  if (reduction < 0 || reduction > static_cast<int>(last_of(Reduction{})))
    return invalid("the reduction is unknown");
  if (!data && count > 0) return invalid("the data is NULL");
  Operation op;
  op.shape.kind = kind;
  op.shape.type = kTypes[static_cast<std::size_t>(type)];
  op.shape.reduction = static_cast<Reduction>(reduction);
  op.shape.root = root;
  op.shape.count = count;
  if (count > std::numeric_limits<std::ptrdiff_t>::max() / size_of(op.shape.type))
    return invalid("the count is beyond memory");
  const corro::MutByteView bytes(static_cast<std::uint8_t*>(data), count * size_of(op.shape.type));
  const auto& place = context->job->place();
  return run_checked(context, CORRO_WORLD, op, {Pieces(bytes), MutPieces(bytes)}, place.rank,
                     place.size);
}

// Adds the name of the call to its failure.
template <class Body>
corro_status named(const char* call, corro_error** why, Body body) {
  return guarded(why, [&]() -> Outcome<Unit> {
    auto outcome = body();
    const bool ours = !outcome && outcome.error().code == Errc::invalid_input;
    if (ours && outcome.error().rank == -1) return outcome.error().during(call);
    return outcome;
  });
}

}  // namespace

corro_status corro_open(const corro_options* options, corro_context** context, corro_error** why) {
  return guarded(why, [&] { return open(options, context); });
}

// In a forked child neither locks nor mappings are as the parent has them; its descriptors go with
// the child.
void corro_close(corro_context* context) {
  if (context && !context->mark.here()) (void)context->job.release();
  delete context;
}

corro_status corro_allreduce(corro_context* context, void* data, size_t count, corro_type type,
                             corro_reduction reduction, corro_error** why) {
  return named("corro_allreduce", why, [&] {
    return run_simple(context, Kind::allreduce, data, count, type, reduction, 0);
  });
}

corro_status corro_broadcast(corro_context* context, void* data, size_t count, corro_type type,
                             int root, corro_error** why) {
  return named("corro_broadcast", why, [&] {
    return run_simple(context, Kind::broadcast, data, count, type, CORRO_SUM, root);
  });
}

corro_status corro_barrier(corro_context* context, corro_error** why) {
  return named("corro_barrier", why,
               [&] { return run_simple(context, Kind::barrier, nullptr, 0, CORRO_UINT8, 0, 0); });
}

corro_status corro_run(corro_context* context, corro_group group, const corro_op* op,
                       corro_error** why) {
  return named("corro_run", why, [&] { return run(context, group, op); });
}

corro_status corro_group_open(corro_context* context, const int32_t* ranks, size_t n,
                              corro_group* group, corro_error** why) {
  return named("corro_group_open", why, [&]() -> Outcome<Unit> {
    if (auto unfit = unusable(context)) return *unfit;
    if (!ranks || !group || n == 0) return invalid("the ranks or the place for the group is NULL");
    std::vector<int> members(ranks, ranks + n), sorted = members;
    std::sort(sorted.begin(), sorted.end());
    const auto& place = context->job->place();
    if (sorted.front() < 0 || sorted.back() >= place.size)
      return invalid(fmt::format("a rank is not one of 0 to {}", place.size - 1));
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
      return invalid("a rank is named twice");
    if (!std::binary_search(sorted.begin(), sorted.end(), place.rank))
      return invalid(fmt::format("rank {} is not one of the group's", place.rank));
    const auto opened = context->job->open_group(members);
    if (!opened) return opened.error();
    *group = *opened;
    return Unit{};
  });
}

void corro_group_close(corro_context* context, corro_group group) {
  if (!unusable(context)) context->job->close_group(group);
}

void* corro_alloc(corro_context* context, size_t bytes) {
  if (unusable(context)) return nullptr;
  try {
    return context->job->allocate(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void corro_free(corro_context* context, void* memory) {
  if (!unusable(context)) context->job->release(memory);
}

int corro_group_rank(const corro_context* context, corro_group group) {
  const auto place = context ? context->job->self_and_size(group) : std::nullopt;
  return place ? place->first : -1;
}

int corro_group_size(const corro_context* context, corro_group group) {
  const auto place = context ? context->job->self_and_size(group) : std::nullopt;
  return place ? place->second : -1;
}

int corro_rank(const corro_context* context) {
  return context ? context->job->place().rank : -1;
}
int corro_size(const corro_context* context) {
  return context ? context->job->place().size : -1;
}
int corro_local_rank(const corro_context* context) {
  return context ? context->job->place().local_rank : -1;
}
int corro_local_size(const corro_context* context) {
  return context ? context->job->place().local_size : -1;
}
int corro_cross_rank(const corro_context* context) {
  return context ? context->job->place().cross_rank : -1;
}
int corro_cross_size(const corro_context* context) {
  return context ? context->job->place().cross_size : -1;
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
