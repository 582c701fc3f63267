#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/codec.h"
#include "base/result.h"

namespace corro::runtime {

// One rank of a job and where it runs.
struct Peer {
  int rank = 0;
  std::string host;

  std::string text() const;  // "rank 2 on host b"
  bool operator==(const Peer&) const = default;
};

// Why the ranks of a group cannot go on, and which rank is to blame.  A rank that learns of it
// passes it on in the same words, so that all name the rank that failed first.
struct Failure {
  Errc code = Errc::io;
  std::int32_t rank = -1;  // -1: no rank in particular
  std::string text;

  Failure() = default;
  Failure(Errc why, std::int32_t whose, std::string words)
      : code(why), rank(whose), text(std::move(words)) {}
  Failure(const Error& error) : code(error.code()), text(error.text()) {}

  Failure during(std::string_view what) const {
    return Failure(code, rank, std::string(what) + ": " + text);
  }

  CORRO_FIELDS(code, rank, text)
  bool operator==(const Failure&) const = default;
};

template <class T>
using Outcome = Result<T, Failure>;

// Two ranks that are in different operations; the lower rank first, so that all say the same.
Failure mismatch(const Peer& a, std::string_view a_does, const Peer& b, std::string_view b_does);

}  // namespace corro::runtime
