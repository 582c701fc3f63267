#include "runtime/pattern/overrides.h"

#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>

using namespace corro;
using namespace corro::runtime;

namespace {

Overrides parsed(std::string_view text) {
  auto overrides = Overrides::parse(text);
  INFO(text);
  REQUIRE(overrides);
  return *overrides;
}

std::string refusal(std::string_view text) {
  const auto overrides = Overrides::parse(text);
  return overrides ? "accepted" : overrides.error().text();
}

}  // namespace

TEST_CASE("the first rule that fits is the user's choice") {
  const auto rules = parsed("allreduce:<64K=recursive_doubling,allreduce:*=ring,broadcast=tree");
  CHECK(rules.find(Kind::allreduce, 0) == Algorithm::recursive_doubling);
  CHECK(rules.find(Kind::allreduce, 65535) == Algorithm::recursive_doubling);
  CHECK(rules.find(Kind::allreduce, 65536) == Algorithm::ring);
  CHECK(rules.find(Kind::broadcast, 1'000'000'000'000) == Algorithm::tree);
  CHECK(rules.find(Kind::allgather, 0) == std::nullopt);

  const auto gap = parsed(" allgather:<1k=recursive_doubling , allgather:>=1G=ring ");
  CHECK(gap.find(Kind::allgather, 1023) == Algorithm::recursive_doubling);
  CHECK(gap.find(Kind::allgather, 1024) == std::nullopt);
  CHECK(gap.find(Kind::allgather, 1 << 30) == Algorithm::ring);

  CHECK(parsed("").rules().empty());
  CHECK(parsed("  ").rules().empty());
}

TEST_CASE("a rule that means nothing is refused with what it could say") {
  CHECK(refusal("ring") ==
        "rule 'ring': expected collective=algorithm or collective:sizes=algorithm");
  CHECK(refusal("allreduce=ring,") ==
        "rule '': expected collective=algorithm or collective:sizes=algorithm");
  CHECK(refusal("allreduce:>=64K") ==
        "rule 'allreduce:>=64K': expected collective=algorithm or collective:sizes=algorithm");
  CHECK(refusal("reduce=ring") ==
        "rule 'reduce=ring': no collective is called 'reduce'; there are allreduce, allgather, "
        "broadcast, alltoall, reducescatter or barrier");
  CHECK(refusal("allreduce=tree") ==
        "rule 'allreduce=tree': no allreduce is called 'tree'; there is ring, halving_doubling or "
        "recursive_doubling");
  CHECK(refusal("barrier=") == "rule 'barrier=': no barrier is called ''; there is dissemination");
  CHECK(refusal("allreduce:<64X=ring") ==
        "rule 'allreduce:<64X=ring': '64X' is no size: expected bytes, such as 65536, 64K or 1M");
  CHECK(refusal("allreduce:<-1=ring") ==
        "rule 'allreduce:<-1=ring': '-1' is no size: expected bytes, such as 65536, 64K or 1M");
  CHECK(refusal("allreduce:<K=ring") ==
        "rule 'allreduce:<K=ring': 'K' is no size: expected bytes, such as 65536, 64K or 1M");
  CHECK(refusal("allreduce:<9999999999G=ring") ==
        "rule 'allreduce:<9999999999G=ring': '9999999999G' is too large a size");
  CHECK(refusal("allreduce:64K=ring") ==
        "rule 'allreduce:64K=ring': '64K': expected sizes as <64K, >=64K or *");
  CHECK(refusal("allreduce:<=64K=ring") ==
        "rule 'allreduce:<=64K=ring': '<=64K': expected sizes as <64K, >=64K or *");
  CHECK(refusal("allreduce:=ring") ==
        "rule 'allreduce:=ring': '': expected sizes as <64K, >=64K or *");
  CHECK(refusal("allreduce:<0=ring") == "rule 'allreduce:<0=ring': no size is below 0");
  CHECK(refusal("alltoall:>=1K=pairwise") ==
        "rule 'alltoall:>=1K=pairwise': never applies, because alltoall counts as 0 bytes");
}

TEST_CASE("a rule that can never apply is refused") {
  const std::string never = "never applies, because the rules before it cover all its sizes";
  CHECK(refusal("broadcast=tree,broadcast=chain") == "rule 'broadcast=chain': " + never);
  CHECK(refusal("broadcast:<2K=tree,broadcast:<1K=chain") ==
        "rule 'broadcast:<1K=chain': " + never);
  CHECK(refusal("broadcast:<2K=tree,broadcast:>=1K=chain,broadcast=tree") ==
        "rule 'broadcast=tree': " + never);
  parsed("broadcast:<1K=tree,broadcast:<2K=chain,broadcast:>=4K=tree,broadcast=chain");
}

TEST_CASE("any text is rules or is refused, and rules survive being written and read") {
  // Texts that are nearly right: pieces of rules, and any character between them.
  const auto piece = rc::gen::element<std::string>(
      "allreduce", "allgather", "broadcast", "alltoall", "reducescatter", "barrier", ":", "=", ",",
      "*", "<", ">=", "64", "K", "M", "g", "0", "18446744073709551616", "ring", "tree", "chain",
      "pairwise", "recursive_doubling", "allreduce:<1K=ring", "broadcast:>=3=chain,", " ", "-");
  rc::prop("pieces", [&] {
    std::string text;
    for (const auto& part : *rc::gen::container<std::vector<std::string>>(piece)) text += part;
    if (*rc::gen::inRange(0, 4) == 0) text += *rc::gen::arbitrary<std::string>();
    const auto overrides = Overrides::parse(text);
    if (!overrides) {
      RC_ASSERT(overrides.error().code() == Errc::invalid_input);
      RC_ASSERT(overrides.error().text().starts_with("rule '"));
      return;
    }
    const auto again = Overrides::parse(overrides->text());
    RC_ASSERT(again);
    RC_ASSERT(*again == *overrides);
  });
  rc::prop("every rule decides somewhere", [] {
    std::string text;
    for (int i = *rc::gen::inRange(1, 5); i > 0; --i) {
      const auto limit = *rc::gen::inRange(1, 9);
      const auto algorithm = *rc::gen::element<std::string>("ring", "halving_doubling");
      text += "allreduce:" + std::string(*rc::gen::arbitrary<bool>() ? "<" : ">=") +
              std::to_string(limit) + "=" + algorithm + (i > 1 ? "," : "");
    }
    const auto overrides = Overrides::parse(text);
    if (!overrides) return;
    for (const auto& rule : overrides->rules()) {
      bool decides = false;
      for (std::uint64_t bytes = 0; bytes < 10; ++bytes) {
        const auto& rules = overrides->rules();
        const auto first = std::find_if(rules.begin(), rules.end(), [&](const auto& r) {
          return r.fits(Kind::allreduce, bytes);
        });
        if (first != rules.end())
          RC_ASSERT(overrides->find(Kind::allreduce, bytes) == first->algorithm);
        decides |= first != rules.end() && &*first == &rule;
      }
      RC_ASSERT(decides);
    }
  });
}

TEST_CASE("sizes are written as short as is exact") {
  CHECK(size_text(0) == "0");
  CHECK(size_text(1023) == "1023");
  CHECK(size_text(1024) == "1K");
  CHECK(size_text(1536) == "1536");
  CHECK(size_text(3 << 20) == "3M");
  CHECK(size_text(std::uint64_t{5} << 40) == "5120G");
}
