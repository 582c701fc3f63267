#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/codec.h"
#include "base/result.h"

namespace corro::runtime {

// Why the ranks of a job cannot go on, and who is to blame.  A rank that learns of it tells its
// neighbours in the same words, so that all name the one that failed first.
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

}  // namespace corro::runtime
