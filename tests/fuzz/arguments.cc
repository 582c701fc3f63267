#include "cli/arguments.h"

#include "base/text.h"
#include "cli/values.h"
#include "tests/fuzz/fuzz.h"

using namespace corro;
using namespace corro::cli;

namespace {

// Words are parted by line ends.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (const auto word : split(text, '\n')) words.emplace_back(word);
  return words;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto words = words_of(text_of({data, size}));
  const auto read = fuzz::in_time([&] { return read_arguments(words); });
  const Standing standing = standing_after(words);
  if (!read) return 0;
  fuzz::require(read->command.size() <= words.size(), "a command is made of the words");
  if (!read->command.empty())
    fuzz::require(standing.command == words.size() - read->command.size(),
                  "the command begins where the completion sees it begin");
  for (const Given& given : read->options)
    fuzz::require(!complaint_about(*given.option, given.values), "what is passed on is valid");
  const auto values = fuzz::in_time([&] { return gather(read->options); });
  fuzz::require(bool(values), "CLI11 takes what was read");
  for (const Given& given : read->options)
    fuzz::require(values->has(given.option->name()), "nothing is lost");
  worker_variables(*values);
  return 0;
}
