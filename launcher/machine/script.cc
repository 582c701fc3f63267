#include "launcher/machine/script.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include "base/process.h"

namespace corro::launcher {

namespace {

namespace fs = std::filesystem;

// How an interpreter reads its command line, as far as the way to its script goes.
struct Interpreter {
  std::string_view no_script;  // letters of options after which there is none
  std::string_view with_word;  // letters of options that have a word of their own
  std::span<const std::string_view> long_with_word;
  bool searches_path;
};

constexpr std::string_view kLongOfPython[] = {"--check-hash-based-pycs"};
constexpr std::string_view kLongOfShells[] = {"--rcfile", "--init-file"};
constexpr Interpreter kPython{"cm", "WX", kLongOfPython, false};
constexpr Interpreter kShell{"cs", "oO", kLongOfShells, true};
constexpr std::string_view kShells[] = {"sh", "bash", "dash", "ksh", "zsh"};

const Interpreter* interpreter_named(const std::string& program) {
  const auto name = fs::path(program).filename().string();
  if (name.starts_with("python")) return &kPython;
  const bool is_shell =
      std::find(std::begin(kShells), std::end(kShells), name) != std::end(kShells);
  return is_shell ? &kShell : nullptr;
}

enum class After { option, word, nothing };

// What may follow an option: the next, a word that belongs to it, or no script at all.
After after(const Interpreter& interpreter, std::string_view option) {
  const auto& long_ones = interpreter.long_with_word;
  if (option.starts_with("--"))
    return std::find(long_ones.begin(), long_ones.end(), option) != long_ones.end() ? After::word
                                                                                    : After::option;
  for (std::size_t i = 1; i < option.size(); ++i) {
    if (interpreter.no_script.find(option[i]) != option.npos) return After::nothing;
    if (interpreter.with_word.find(option[i]) != option.npos)
      return i + 1 == option.size() ? After::word : After::option;
  }
  return After::option;
}

bool is_option(std::string_view word) {
  return word.size() > 1 && (word.front() == '-' || word.front() == '+');
}

}  // namespace

std::optional<Script> script_of(std::span<const std::string> argv) {
  const auto* interpreter = argv.empty() ? nullptr : interpreter_named(argv.front());
  if (!interpreter) return std::nullopt;
  std::size_t at = 1;
  for (; at < argv.size() && is_option(argv[at]); ++at) {
    if (argv[at] == "--") {
      ++at;
      break;
    }
    const auto next = after(*interpreter, argv[at]);
    if (next == After::nothing) return std::nullopt;
    if (next == After::word) ++at;
  }
  if (at >= argv.size() || argv[at] == "-") return std::nullopt;
  const bool is_bare = argv[at].find('/') == std::string::npos;
  return Script{argv[at], interpreter->searches_path && is_bare};
}

std::optional<FoundScript> look_for_script(const InspectionRequest& request) {
  const auto script = script_of(request.argv);
  if (!script) return std::nullopt;
  const auto path = (fs::path(request.cwd) / script->name).string();
  if (::access(path.c_str(), R_OK) == 0) return FoundScript{path, true, true, {}};
  const int number = errno;
  if (script->may_be_in_path)
    if (auto found = find_program(script->name, request.env, request.cwd))
      return FoundScript{std::move(*found), true, true, {}};
  const bool exists = number != ENOENT && number != ENOTDIR;
  return FoundScript{path, exists, false, Error::from_errno(path, number).text()};
}

}  // namespace corro::launcher
