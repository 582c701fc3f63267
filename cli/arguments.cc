#include "cli/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "cli/refusal.h"

namespace corro::cli {

namespace {

using Words = std::span<const std::string>;

// One reading of a word: the option, and what is glued to its name.
struct Match {
  const Option* option;
  std::string_view name;
  std::optional<std::string> glued;
};

// What a word is, before anyone asks for values: an option, an unknown one, or no option.
struct Word {
  enum class Is { plain, known, unknown } is = Is::plain;
  Match match{};
};

// -5 and -.5 are numbers, since no option of ours looks like one.
bool is_negative_number(std::string_view word) {
  const auto digits = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  word.remove_prefix(1);
  const auto dot = word.find('.');
  if (dot == word.npos) return !word.empty() && digits(word);
  return digits(word.substr(0, dot)) && dot + 1 < word.size() && digits(word.substr(dot + 1));
}

// All that an abbreviation may mean, each name on its own, as argparse counts them.
std::vector<Match> abbreviated(std::string_view word, bool ours) {
  std::vector<Match> matches;
  const auto equals = word.find('=');
  const bool is_long = word.starts_with("--");
  const auto prefix = is_long ? word.substr(0, equals) : word;
  for (const auto& [name, option] : option_names()) {
    if (option->ours != ours) continue;
    if (!is_long && name == word.substr(0, 2))
      matches.push_back({option, name, std::string(word.substr(2))});
    else if (is_long && name.starts_with(prefix) && equals != word.npos)
      matches.push_back({option, name, std::string(word.substr(equals + 1))});
    else if (name.starts_with(prefix))
      matches.push_back({option, name, std::nullopt});
  }
  return matches;
}

Result<Word> classify(std::string_view word) {
  if (word.size() < 2 || word.front() != '-' || word == "--") return Word{};
  if (const Option* option = find_option(word))
    return Word{Word::Is::known, {option, word, std::nullopt}};
  if (const auto equals = word.find('='); equals != word.npos)
    if (const Option* option = find_option(word.substr(0, equals)))
      return Word{Word::Is::known,
                  {option, word.substr(0, equals), std::string(word.substr(equals + 1))}};

  auto matches = abbreviated(word, false);
  // `--mpi-args "-x A"` has always worked.
  if (matches.empty() && word.find(' ') == word.npos) matches = abbreviated(word, true);
  if (matches.size() == 1) return Word{Word::Is::known, matches.front()};
  if (matches.size() > 1) {
    std::vector<std::string_view> names;
    for (const Match& match : matches) names.push_back(match.name);
    return refuse(fmt::format("ambiguous option: {} could match {}", word, fmt::join(names, ", ")));
  }
  if (is_negative_number(word) || word.find(' ') != word.npos) return Word{};
  return Word{Word::Is::unknown};
}

// An option with the plain words that follow it, as many as it wants.
struct Piece {
  Match match{};  // no option: `word` is unknown
  std::string word;
  std::vector<std::string> following;
};

struct Pieces {
  std::vector<Piece> pieces;
  Words command;
};

std::size_t wanted(const Match& match) {
  return match.option->takes_value() && !match.glued ? match.option->arity : 0;
}

// argparse looks at all words before it acts on any, so ambiguity is what it complains of first.
// For one who is still typing what is ambiguous is unknown.
Result<Pieces> take_apart(Words words, bool still_typing) {
  const auto look = [still_typing](const std::string& word) {
    auto seen = classify(word);
    return seen || !still_typing ? seen : Result<Word>(Word{Word::Is::unknown});
  };
  Pieces out;
  while (!words.empty()) {
    const auto word = look(words.front());
    if (!word) return word.error();
    if (word->is == Word::Is::plain) break;
    Piece piece{word->match, words.front(), {}};
    words = words.subspan(1);
    const std::size_t values = word->is == Word::Is::known ? wanted(word->match) : 0;
    while (piece.following.size() < values && !words.empty() && words.front() != "--") {
      const auto value = look(words.front());
      if (!value) return value.error();
      if (value->is != Word::Is::plain) break;
      piece.following.push_back(words.front());
      words = words.subspan(1);
    }
    out.pieces.push_back(std::move(piece));
  }
  out.command = words;
  return out;
}

bool ends_the_reading(const Option& option) {
  return option.name() == "--help" || option.name() == "--version";
}

std::string expected(int arity) {
  return arity == 1 ? "expected one argument" : fmt::format("expected {} arguments", arity);
}

class Reader {
 public:
  Result<Arguments> read(const Pieces& pieces) {
    for (const Piece& piece : pieces.pieces) {
      if (!piece.match.option) {
        out_.unknown.push_back(piece.word);
        continue;
      }
      if (auto taken = take(piece); !taken) return taken.error();
      if (ends_the_reading(*out_.options.back().option)) return std::move(out_);
    }
    out_.command.assign(pieces.command.begin(), pieces.command.end());
    return std::move(out_);
  }

 private:
  Result<Unit> take(const Piece& piece) {
    const Option& option = *piece.match.option;
    if (piece.match.glued) {
      if (!option.takes_value()) return take_flags(piece.match);
      if (option.arity != 1) return refuse(option, expected(option.arity));
      return take(option, {*piece.match.glued});
    }
    if (piece.following.size() < wanted(piece.match)) return refuse(option, expected(option.arity));
    return take(option, piece.following);
  }

  // "-hv" is "-h -v", and so is "-h=v"; "--help=v" is nothing.  All are understood before the first
  // is acted on.
  Result<Unit> take_flags(const Match& match) {
    std::vector<const Option*> flags = {match.option};
    std::string_view glued = *match.glued;
    do {
      const Option* next = glued.empty() || match.name.starts_with("--")
                               ? nullptr
                               : find_option(fmt::format("-{}", glued.front()));
      if (!next || next->ours)
        return refuse(*flags.back(), "ignored explicit argument " + python_repr(glued));
      glued.remove_prefix(1);
      flags.push_back(next);
    } while (!glued.empty() && !flags.back()->takes_value());
    for (const Option* flag : flags) {
      const bool takes = flag->takes_value();
      if (takes && glued.empty()) return refuse(*flag, expected(flag->arity));
      auto taken =
          take(*flag, takes ? std::vector{std::string(glued)} : std::vector<std::string>{});
      if (!taken || ends_the_reading(*flag)) return taken;
    }
    return Unit{};
  }

  Result<Unit> take(const Option& option, std::vector<std::string> values) {
    if (auto complaint = complaint_about(option, values)) return refuse(*complaint);
    if (const Option* other = excluding(option))
      return refuse(option, fmt::format("not allowed with argument {}", other->names));
    out_.options.push_back({&option, std::move(values)});
    return Unit{};
  }

  // One that was given, and that the option cannot be given with.
  const Option* excluding(const Option& option) const {
    if (option.exclusive.empty()) return nullptr;
    for (const Given& given : out_.options)
      if (given.option != &option && given.option->exclusive == option.exclusive)
        return given.option;
    return nullptr;
  }

  Arguments out_;
};

}  // namespace

Result<Arguments> read_arguments(Words words) {
  const auto pieces = take_apart(words, false);
  if (!pieces) return pieces.error();
  return Reader().read(*pieces);
}

Standing standing_after(Words words) {
  const auto pieces = take_apart(words, true);
  if (!pieces->command.empty()) return {nullptr, words.size() - pieces->command.size()};
  if (pieces->pieces.empty()) return {};
  const Piece& last = pieces->pieces.back();
  const bool wants = last.match.option && last.following.size() < wanted(last.match);
  return {wants ? last.match.option : nullptr, std::nullopt};
}

}  // namespace corro::cli
