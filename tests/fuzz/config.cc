#include "cli/config_file.h"
#include "cli/values.h"
#include "tests/fuzz/fuzz.h"

using namespace corro;
using namespace corro::cli;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Text text{"config.yaml", text_of({data, size})};
  const auto file = fuzz::in_time([&] { return read_config(text); });
  if (!file) return 0;
  for (const Given& given : file->options)
    fuzz::require(!complaint_about(*given.option, given.values), "what is passed on is valid");
  const auto values = gather(file->options);
  fuzz::require(bool(values), "CLI11 takes what was read");
  worker_variables(*values);
  return 0;
}
