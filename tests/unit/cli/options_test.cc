#include "cli/options.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <set>

#include "base/text.h"

namespace kolo {

namespace {

std::string line_with(const std::string& text, std::string_view what) {
  for (const auto line : split(text, '\n'))
    if (line.find(what) != line.npos) return std::string(line);
  return "";
}

}  // namespace

TEST_CASE("every option of the table has a name of its own and a word about it") {
  std::set<std::string_view> names;
  for (const Option& option : options()) {
    CAPTURE(option.name);
    CHECK(option.name.starts_with("--"));
    CHECK(names.insert(option.name).second);
    CHECK_FALSE(option.help.empty());
    if (option.brief.empty()) continue;
    CHECK(option.brief.starts_with("-"));
    CHECK_FALSE(option.brief.starts_with("--"));
    CHECK(names.insert(option.brief).second);
  }
}

TEST_CASE("help has a line for every option, with its names, its value and what it does") {
  const std::string help = help_text().substr(usage_text().size());
  for (const Option& option : options()) {
    const std::string line = line_with(help, fmt::format("{} ", option.name));
    CAPTURE(option.name, line);
    CHECK(line.find(option.help) != line.npos);
    CHECK(line.find(option.value) != line.npos);
    if (!option.brief.empty())
      CHECK(line.starts_with(fmt::format("  {}, {}", option.brief, option.name)));
  }
}

TEST_CASE("usage is one line that names every option and ends with the command") {
  const std::string usage = usage_text();
  CHECK(split(usage, '\n').size() == 2);
  CHECK(usage.starts_with("usage: horovodrun "));
  CHECK(usage.ends_with(" command ...\n"));
  for (const Option& option : options()) {
    const auto name = option.brief.empty() ? option.name : option.brief;
    CHECK(usage.find(fmt::format("[{}", name)) != usage.npos);
  }
}

TEST_CASE("every option of the table is cut by each of its names") {
  for (const Option& option : options()) {
    const auto canonical = std::string(option.name) + (option.value.empty() ? "" : "=1");
    for (const auto name : {option.name, option.brief}) {
      if (name.empty()) continue;
      std::vector<std::string> arguments = {std::string(name)};
      if (!option.value.empty()) arguments.push_back("1");
      const auto parts = cut(arguments);
      REQUIRE(parts);
      CHECK(parts->options == std::vector<std::string>{canonical});
    }
  }
}

}  // namespace kolo
