#include "tests/fuzz/fuzz.h"
#include "tests/support/store_story.h"

using namespace corro;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto broken = rendezvous::StoreStory().play({data, size});
  if (broken) fuzz::require(false, broken->c_str());
  return 0;
}
