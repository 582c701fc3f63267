// How a SharedDomain moves and reduces data: what it writes for others in a round, and what it does
// with theirs.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/assert.h"
#include "runtime/domain/arena.h"
#include "runtime/domain/shared_domain.h"
#include "runtime/domain/stream.h"

namespace corro::runtime {

namespace {

// A result is handed on in blocks of this size, while it is in the cache.
constexpr std::size_t kBlock = 32 << 10;

// Blocks of members' buffers that are reduced where they are, in the first-level cache from being
// read to being written.  Measured; with more members fewer, longer ones cost less.
constexpr std::size_t direct_block(std::size_t members) {
  return members <= 2 ? 4 << 10 : 8 << 10;
}

}  // namespace

const std::uint8_t* SharedDomain::staged_by(const Member& member) const {
  return plan_.in_post() ? member.control->posts[parity()].data.data() : member.input[parity()];
}

void SharedDomain::stage_in(std::uint8_t* to, Range bytes) const {
  buffers_->in.each(bytes, [&](ByteView part) {
    if (scales_)
      scale(shape().type, {to, part.size()}, part, shape().prescale);
    else if (streams_)
      stream_copy(to, part.data(), part.size());
    else
      std::memcpy(to, part.data(), part.size());
    to += part.size();
  });
}

void SharedDomain::stage() {
  if (members_.size() == 1 && shape().kind != Kind::alltoall) return;
  std::uint8_t* to = plan_.in_post() ? my_post().data.data() : my_input();
  switch (shape().kind) {
    case Kind::allreduce:
    case Kind::reducescatter:
      return plan_.whole() ? stage_in(to, {0, plan_.total()}) : stage_reduction();
    case Kind::allgather: {
      const Range slice = plan_.slice(chunk_, me_);
      const std::size_t begin = plan_.part(me_).begin;
      return stage_in(to, {slice.begin - begin, slice.end - begin});
    }
    case Kind::broadcast:
      if (shape().root == me_) stage_in(to, plan_.slice(chunk_, me_));
      return;
    case Kind::alltoall:
      return stage_pairs();
    case Kind::barrier:
      return;
  }
}

// The others' slices; the own one is read where it is, if it need not be scaled.
void SharedDomain::stage_reduction() {
  if (chunk_ >= plan_.chunks()) return;
  for (int k = 0; k < size(); ++k)
    if (k != me_ || scales_) stage_in(my_input() + plan_.place(k), plan_.slice(chunk_, k));
}

void SharedDomain::stage_pairs() {
  const std::size_t n = members_.size(), unit = plan_.unit();
  if (first_) {
    std::memcpy(my_input(), operation_->sends.data(), n * sizeof(std::uint64_t));
    std::memcpy(my_input() + n * sizeof(std::uint64_t), operation_->receives.data(),
                n * sizeof(std::uint64_t));
  }
  std::size_t begin = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t bytes = operation_->sends[k] * unit;
    const Range slice = pairs_.slice(chunk_, bytes);
    if (!is_me(k))
      stage_in(my_input() + pairs_.place(static_cast<int>(k)),
               {begin + slice.begin, begin + slice.end});
    begin += bytes;
  }
}

// ---- taking -------------------------------------------------------------------------------------

void SharedDomain::consume() {
  if (mode_ == Mode::direct) {
    if (chunk_ == 0) use_direct();
    return;
  }
  if (chunk_ == ~std::uint64_t{0}) return;  // begins again
  switch (shape().kind) {
    case Kind::allreduce:
    case Kind::reducescatter:
      return consume_reduction();
    case Kind::allgather:
      return consume_gathered();
    case Kind::broadcast:
      return consume_broadcast();
    case Kind::alltoall:
      return consume_pairs();
    case Kind::barrier:
      return;
  }
}

// In blocks that stay in the first-level cache from being reduced to being handed on.
void SharedDomain::reduce_range(Range bytes, std::size_t out_at, std::uint8_t* also) {
  const Shape& what = shape();
  for (std::size_t done = 0; done < bytes.size();) {
    std::size_t most = bytes.size() - done;
    if (also != nullptr) most = std::min(most, kBlock);
    const ByteView in = buffers_->in.at(bytes.begin + done, most);
    const MutByteView out = buffers_->out.at(out_at + done, in.size());
    for (std::size_t k = 0; k < sources_.size(); ++k) run_sources_[k] = sources_[k] + done;
    if (!scales_) run_sources_[index_] = in.data();
    reduce_all(what.reduction, what.type, out, run_sources_);
    if (!finish_.nothing()) finish(finish_, out);
    if (also != nullptr) stream_copy(also + done, out.data(), out.size());
    done += out.size();
  }
}

void SharedDomain::consume_reduction() {
  const bool all = shape().kind == Kind::allreduce;
  if (members_.size() == 1) {
    const Range bytes{0, plan_.total()};
    if (scales_) {
      // Through `out`: nobody else needs it staged.
      std::size_t at = 0;
      buffers_->in.each(bytes, [&](ByteView part) {
        for (std::size_t done = 0; done < part.size();) {
          const MutByteView out = buffers_->out.at(at, part.size() - done);
          scale(shape().type, out, part.subspan(done, out.size()), shape().prescale);
          if (!finish_.nothing()) finish(finish_, out);
          done += out.size();
          at += out.size();
        }
      });
      return;
    }
    return reduce_range(bytes, 0, nullptr);
  }
  if (chunk_ < plan_.chunks()) {
    const Range slice = plan_.slice(chunk_, me_);
    const std::size_t place = plan_.place(me_);
    for (std::size_t k = 0; k < members_.size(); ++k) sources_[k] = staged_by(members_[k]) + place;
    const std::size_t out_at = all ? slice.begin : slice.begin - plan_.part(me_).begin;
    reduce_range(slice, out_at, all && !plan_.whole() ? my_result_[parity()] : nullptr);
  }
  if (all && !plan_.whole() && chunk_ > 0) copy_results();
}

// The others' slices of the chunk before, which they reduced while this one was on its way.
void SharedDomain::copy_results() {
  const std::size_t n = members_.size();
  for (std::size_t i = 1; i < n; ++i) {
    const std::size_t k = (index_ + i) % n;
    const Range slice = plan_.slice(chunk_ - 1, static_cast<int>(k));
    copy_out(slice.begin, members_[k].result[parity() ^ 1U], slice.size());
  }
}

void SharedDomain::copy_out(std::size_t at, const std::uint8_t* from, std::size_t bytes) const {
  buffers_->out.each({at, at + bytes}, [&](MutByteView part) {
    if (streams_out_)
      stream_copy(part.data(), from, part.size());
    else
      std::memcpy(part.data(), from, part.size());
    from += part.size();
  });
}

// From the own `in` to the own `out`, unless they are the same memory.
void SharedDomain::copy_own(Range in_bytes, std::size_t out_at) const {
  buffers_->in.each(in_bytes, [&](ByteView part) {
    buffers_->out.each({out_at, out_at + part.size()}, [&](MutByteView to) {
      if (to.data() != part.data()) std::memmove(to.data(), part.data(), to.size());
      part = part.subspan(to.size());
      out_at += to.size();
    });
  });
}

void SharedDomain::consume_gathered() {
  const std::size_t n = members_.size();
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t k = (index_ + i) % n;
    const Range slice = plan_.slice(chunk_, static_cast<int>(k));
    if (!is_me(k)) {
      copy_out(slice.begin, staged_by(members_[k]), slice.size());
      continue;
    }
    const std::size_t begin = plan_.part(me_).begin;
    copy_own({slice.begin - begin, slice.end - begin}, slice.begin);
  }
}

void SharedDomain::consume_broadcast() {
  const Range slice = plan_.slice(chunk_, shape().root);
  if (shape().root == me_) return copy_own(slice, slice.begin);
  const Member& root = members_[static_cast<std::size_t>(shape().root)];
  copy_out(slice.begin, staged_by(root), slice.size());
}

void SharedDomain::consume_pairs() {
  const std::size_t unit = plan_.unit();
  std::size_t begin = 0;
  for (std::size_t k = 0; k < members_.size(); ++k) {
    const std::size_t bytes = operation_->receives[k] * unit;
    const Range slice = pairs_.slice(chunk_, bytes);
    if (is_me(k)) {
      const auto sent = std::accumulate(operation_->sends.begin(), operation_->sends.begin() + me_,
                                        std::uint64_t{0}) *
                        unit;
      copy_own({sent + slice.begin, sent + slice.end}, begin + slice.begin);
    } else {
      copy_out(begin + slice.begin, members_[k].input[parity()] + pairs_.place(me_), slice.size());
    }
    begin += bytes;
  }
}

void SharedDomain::use_direct() {
  switch (shape().kind) {
    case Kind::allreduce:
      return reduce_direct();
    case Kind::reducescatter: {
      const Range part = plan_.part(me_);
      for (std::size_t k = 0; k < members_.size(); ++k)
        sources_[k] = in_arena(k, offers_[k].in) + part.begin;
      return reduce_range(part, 0, nullptr);
    }
    case Kind::allgather:
      for (int k = 0; k < size(); ++k) {
        const Range part = plan_.part(k);
        const auto from = static_cast<std::size_t>(k);
        if (k == me_)
          copy_own({0, part.size()}, part.begin);
        else
          copy_out(part.begin, in_arena(from, offers_[from].in), part.size());
      }
      return;
    case Kind::broadcast: {
      const auto root = static_cast<std::size_t>(shape().root);
      if (is_me(root)) return copy_own({0, plan_.total()}, 0);
      return copy_out(0, in_arena(root, offers_[root].in), plan_.total());
    }
    case Kind::alltoall:
    case Kind::barrier:
      return;
  }
}

// This member's share of all members' tensors, stored to all of them.  Nobody else touches that
// share, so in place is as good as out of place.
void SharedDomain::reduce_direct() {
  const std::size_t n = members_.size();
  const Range share = plan_.share(me_);
  const std::size_t block = direct_block(n);
  for (std::size_t at = share.begin; at < share.end; at += block) {
    const std::size_t bytes = std::min(block, share.end - at);
    for (std::size_t k = 0; k < n; ++k) sources_[k] = in_arena(k, offers_[k].in) + at;
    const MutByteView out(in_arena(index_, offers_[index_].out) + at, bytes);
    reduce_all(shape().reduction, shape().type, out, sources_);
    if (!finish_.nothing()) finish(finish_, out);
    for (std::size_t k = 0; k < n; ++k)
      if (!is_me(k)) std::memcpy(in_arena(k, offers_[k].out) + at, out.data(), bytes);
  }
}

}  // namespace corro::runtime
