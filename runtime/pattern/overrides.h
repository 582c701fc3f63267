#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/pattern/algorithm.h"

namespace corro::runtime {

// The user's own choice of algorithms, from CORRO_ALGORITHMS:
//
//   allreduce:<64K=recursive_doubling,allreduce:*=ring,broadcast=tree
//
//   rules := rule { "," rule }
//   rule  := collective [ ":" sizes ] "=" algorithm
//   sizes := "*" | "<" size | ">=" size
//   size  := digits [ "K" | "M" | "G" ]         bytes, in powers of 1024
//
// The first rule that fits an operation applies; where none does, the costs decide.  The size is
// that of the tensor, for allgather and reducescatter of all parts together; alltoall and barrier
// count as 0, because ranks need not agree about more.
class Overrides {
 public:
  static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

  struct Rule {
    Kind kind;
    std::uint64_t from = 0, below = kNoLimit;  // bytes
    Algorithm algorithm;
    bool operator==(const Rule&) const = default;

    bool fits(Kind k, std::uint64_t bytes) const {
      return k == kind && bytes >= from && (bytes < below || below == kNoLimit);
    }
    std::string text() const;
  };

  // An empty text has no rules.  Refused, with the rule and what it could have said: an unknown
  // collective or algorithm, one that cannot do the other, a bad size, and a rule that never
  // applies because others before it cover all its sizes.
  static Result<Overrides> parse(std::string_view text);

  std::optional<Algorithm> find(Kind, std::uint64_t bytes) const;
  const std::vector<Rule>& rules() const { return rules_; }
  std::string text() const;  // parses to the same

  bool operator==(const Overrides&) const = default;

 private:
  std::vector<Rule> rules_;
};

// "65535", "64K", "3M": as short as is exact.
std::string size_text(std::uint64_t bytes);

}  // namespace corro::runtime
