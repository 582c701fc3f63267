#include "cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "base/text.h"
#include "cli/help.h"
#include "cli/manual.h"

namespace corro::cli {

TEST_CASE("every option of the table has names of its own, a word about it, and makes sense") {
  std::set<std::string_view> names;
  for (const Option& each : options()) {
    CAPTURE(each.names);
    for (const auto name : names_of(each)) {
      CHECK(name.starts_with('-'));
      CHECK(names.insert(name).second);
      CHECK(find_option(name) == &each);
    }
    CHECK(each.name().starts_with("--"));
    CHECK(&option(each.name()) == &each);
    CHECK_FALSE(each.help.empty());
    CHECK(each.takes_value() == !each.value.empty());
    CHECK((each.kind == Kind::choice) == !each.choices.empty());
    // A flag that reaches the workers says what it sets.
    if (!each.takes_value() && !each.variable.empty()) CHECK_FALSE(each.sets.empty());
    if (each.state == State::reaches_workers) CHECK_FALSE(each.variable.empty());
    if (!each.needs.empty()) CHECK(find_option(each.needs));
  }
}

TEST_CASE("those that exclude each other are two at least") {
  std::map<std::string_view, int> sets;
  for (const Option& each : options())
    if (!each.exclusive.empty()) ++sets[each.exclusive];
  for (const auto& [word, count] : sets) {
    CAPTURE(word);
    CHECK(count >= 2);
  }
}

TEST_CASE("help has an entry for every option that is shown, and for no other") {
  const std::string help = help_text();
  for (const Option& each : options()) {
    CAPTURE(each.names);
    const auto names = fmt::format("\n  {}", fmt::join(names_of(each), ", "));
    const bool shown = help.find(names + " ") != help.npos || help.find(names + "\n") != help.npos;
    CHECK(shown == !each.hidden);
  }
  CHECK(help.find("--guard") == help.npos);
  for (const auto line : split(help, '\n'))
    if (line.find("usage") == line.npos && !line.starts_with("  horovodrun"))
      CHECK(line.size() <= 80);
}

TEST_CASE("usage is short, and says where there is more") {
  CHECK(split(usage_text({}), '\n').size() == 3);
  CHECK(usage_text({}).starts_with("usage: horovodrun "));
  CHECK(usage_text({}).find("-np NUM_PROC") != std::string::npos);
  const std::vector<std::string> words = {"hosts", "--wat"};
  CHECK(usage_text(words).starts_with(
      "usage: horovodrun hosts [EXPR] [--format horovod|openmpi|slurm|json]\n"));
}

TEST_CASE("the table fills the man page in") {
  const std::string page = manual_page(".Sh OPTIONS\n@OPTIONS@\n.Sh KEYS\n@KEYS@\n.Sh END\n");
  CHECK(page.starts_with(".Sh OPTIONS\n.Bl -tag -width Ds\n.It Fl h , Fl \\-help\n"));
  CHECK(page.find(".It Li params.cycle_time_ms\n") != page.npos);
  CHECK(page.ends_with(".El\n.Sh END\n"));
}

TEST_CASE("numbers are read as Python reads them") {
  CHECK(python_int("5") == 5);
  CHECK(python_int(" +5\n") == 5);
  CHECK(python_int("-1_000") == -1000);
  for (const auto text : {"", " ", "_1", "1_", "1__0", "+-1", "--1", "1 2", "0x10", "5.0", "１"})
    CHECK_FALSE(python_int(text));
  CHECK(python_float("1e3") == 1000.0);
  CHECK(python_float(" +.5 ") == 0.5);
  CHECK(python_float("1_0.5") == 10.5);
  CHECK(python_float("-inf") < 0);
  CHECK(python_float("1e999") > 1e308);
  for (const auto text : {"", "x", "1e", "1_e3", "0x1p3", "5s"}) CHECK_FALSE(python_float(text));
}

TEST_CASE("texts are shown as Python shows them") {
  CHECK(python_repr("a") == "'a'");
  CHECK(python_repr("it's") == "\"it's\"");
  CHECK(python_repr("'\"") == "'\\'\"'");
  CHECK(python_repr("a\nb\t\\\x01") == "'a\\nb\\t\\\\\\x01'");
}

}  // namespace corro::cli
