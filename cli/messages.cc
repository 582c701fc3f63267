#include "cli/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "base/text.h"
#include "cli/table.h"

namespace corro::cli {

namespace news = launcher::news;
using launcher::Failure;
using launcher::Outcome;
using launcher::WorkerEnd;

namespace {

double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

std::string headline(const Failure& failure) {
  const auto after = fmt::format(", {:.1f} s after the start", seconds(failure.after));
  const int rank = failure.rank.value_or(0);
  switch (failure.kind) {
    case Failure::Kind::worker:
      return fmt::format("rank {} on host {} {}{}", rank, failure.host, failure.cause, after);
    case Failure::Kind::not_started:
      return fmt::format("rank {} on host {} could not be started: {}", rank, failure.host,
                         failure.cause);
    case Failure::Kind::unfit:
      return fmt::format("nothing was started: {}", failure.cause);
    case Failure::Kind::host:
      return fmt::format("host {} was lost{}: {}", failure.host, after, failure.cause);
  }
  return {};
}

std::string manner_of(const WorkerEnd& end) {
  if (!end.status)
    return end.told_to_stop == SIGKILL ? "killed, and not heard of since" : "not run to an end";
  const auto how =
      end.status->signo ? "ended by " + signal_name(end.status->signo) : end.status->text();
  return end.told_to_stop && !end.status->signo
             ? fmt::format("{} after {}", how, signal_name(*end.told_to_stop))
             : how;
}

// What it did when the job failed, in a few words; empty if nobody knows.
std::string doing_of(const WorkerEnd& end) {
  if (!end.doing) return {};
  if (end.doing->under_way) return "in " + end.doing->operation;
  if (!end.doing->operation.empty()) return "after " + end.doing->operation;
  return end.doing->state;
}

// "1 and 3" reads better than a count as long as there are few.
std::string ranks_text(const std::vector<int>& ranks) {
  constexpr std::size_t kFew = 4;
  if (ranks.size() > kFew) return fmt::format("{} ranks", ranks.size());
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]);
  return text;
}

// The worker that the headline is about, if it is about one.
std::optional<int> culprit_of(const Outcome& outcome) {
  const bool one = outcome.failure && outcome.failure->kind != Failure::Kind::host;
  return one ? outcome.failure->rank : std::nullopt;
}

// How much it had in memory.  Of one that a signal ended that may be why; one that exited had a
// reason of its own.
std::string size_of(const WorkerEnd& end) {
  constexpr double kMiB = 1 << 20;
  if (!end.status || !end.status->signo || end.used.peak_rss_bytes == 0) return {};
  return fmt::format("its largest process had {:.0f} MiB",
                     static_cast<double>(end.used.peak_rss_bytes) / kMiB);
}

// What the one who failed was at.
std::string last_act(const Outcome& outcome) {
  const auto culprit = culprit_of(outcome);
  if (!culprit || static_cast<std::size_t>(*culprit) >= outcome.workers.size()) return {};
  const WorkerEnd& end = outcome.workers[*culprit];
  const auto doing = doing_of(end), size = size_of(end);
  if (doing.empty() && size.empty()) return {};
  return fmt::format("  {}{}{}{}\n", doing.empty() ? "" : "it was ", doing,
                     doing.empty() || size.empty() ? "" : "; ", size);
}

// Those of whom the same is to be said.
struct Group {
  std::string manner;
  std::vector<int> ranks;
};

// The largest first; of two alike, the one with the lowest rank.
std::vector<Group> groups_of_others(const Outcome& outcome) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> places;
  const auto culprit = culprit_of(outcome);
  for (std::size_t rank = 0; rank < outcome.workers.size(); ++rank) {
    if (culprit == static_cast<int>(rank)) continue;
    const auto doing = doing_of(outcome.workers[rank]);
    auto manner = manner_of(outcome.workers[rank]);
    if (!doing.empty()) manner = fmt::format("{}; {}", doing, manner);
    const auto [place, is_new] = places.try_emplace(manner, groups.size());
    if (is_new) groups.push_back({std::move(manner), {}});
    groups[place->second].ranks.push_back(static_cast<int>(rank));
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.ranks.size() > b.ranks.size(); });
  return groups;
}

std::string line_of(const Group& group) {
  return fmt::format("  {}: {}\n", ranks_text(group.ranks), group.manner);
}

std::string line_of_rest(std::span<const Group> groups) {
  if (groups.empty()) return {};
  if (groups.size() == 1) return line_of(groups.front());
  std::vector<int> ranks;
  for (const Group& group : groups)
    ranks.insert(ranks.end(), group.ranks.begin(), group.ranks.end());
  std::sort(ranks.begin(), ranks.end());
  return fmt::format(
      "  {} others (ranks {}): in {} other ways; see failure.json (--output-filename)\n",
      ranks.size(), number_ranges(ranks), groups.size());
}

// What became of the others, so that 64 ranks read as three lines.
std::string the_others(const Outcome& outcome) {
  constexpr std::size_t kInFull = 2;
  const auto groups = groups_of_others(outcome);
  const auto in_full = std::span(groups).first(std::min(kInFull, groups.size()));
  std::string text;
  for (const Group& group : in_full) text += line_of(group);
  return text + line_of_rest(std::span(groups).subspan(in_full.size()));
}

std::string text_of(const news::Reaching& reaching) {
  return fmt::format(
      "; host {} took longest to reach (name {:.1f} ms, connection {:.1f} ms, login {:.1f} ms, "
      "agent {:.1f} ms)",
      reaching.host, 1e3 * seconds(reaching.resolve), 1e3 * seconds(reaching.connect),
      1e3 * seconds(reaching.login), 1e3 * seconds(reaching.start));
}

struct NewsText {
  std::string operator()(const news::StoreListens& n) const {
    return fmt::format("the job's store listens on {}", n.address);
  }
  std::string operator()(const news::HostReached& n) const {
    return fmt::format("host {} was reached{}{} after {:.0f} ms{}", n.host,
                       n.address.empty() ? "" : " at ", n.address, 1e3 * seconds(n.took),
                       n.staged ? ", and given this program" : "");
  }
  std::string operator()(const news::HostReady& n) const {
    return fmt::format("host {} is ready (agent {})", n.host, n.agent_pid);
  }
  std::string operator()(const news::WorkerStarted& n) const {
    return fmt::format("rank {} runs on host {} as process {}", n.rank, n.host, n.pid);
  }
  std::string operator()(const news::Warning& n) const { return n.text; }
  std::string operator()(const news::Placed& n) const {
    Table table(n.rows.front());
    for (std::size_t i = 1; i < n.rows.size(); ++i) table.add(n.rows[i]);
    return "where the workers run:\n" + table.text();
  }
  std::string operator()(const news::RoseUp& n) const {
    const auto after = [](const char* what, const std::optional<Duration>& when) {
      return when ? fmt::format("; {} after {:.1f} ms", what, 1e3 * seconds(*when)) : "";
    };
    return fmt::format("start-up: {:.1f} ms to understand what is wanted{}{}{}{}",
                       1e3 * seconds(n.before), after("hosts were ready", n.hosts_ready),
                       after("workers ran", n.workers_started),
                       after("the last had come to the store", n.workers_met),
                       n.slowest ? text_of(*n.slowest) : "");
  }
  std::string operator()(const news::WorkerEnded& n) const {
    return fmt::format("rank {} on host {} {}", n.rank, n.host, n.status.text());
  }
};

}  // namespace

std::string message_for(const launcher::News& news) {
  return fmt::format("horovodrun: {}\n", std::visit(NewsText{}, news));
}

std::string message_for(const Error& error) {
  return fmt::format("horovodrun: error: {}\n", error.text());
}

// All of them, each with what mends it.
std::string the_unreachable(const Outcome& outcome) {
  std::string text;
  for (const launcher::Unreachable& host : outcome.unreachable) {
    text += fmt::format("horovodrun: nothing was started: {}\n", host.why);
    if (!host.fix.empty()) text += fmt::format("  {}\n", host.fix);
  }
  return text;
}

std::string report_on(const Outcome& outcome) {
  std::string text;
  if (outcome.not_shown)
    text = fmt::format(
        "horovodrun: {} bytes of output were not shown, since the terminal did not "
        "take them\n",
        outcome.not_shown);
  if (!outcome.unreachable.empty()) return text + the_unreachable(outcome);
  if (outcome.failure) {
    text += fmt::format("horovodrun: {}\n{}", headline(*outcome.failure), last_act(outcome));
    // Where nothing was started, nothing came to an end.
    return outcome.failure->kind == Failure::Kind::unfit ? text : text + the_others(outcome);
  }
  if (outcome.interrupted_by)
    return text + fmt::format("horovodrun: ended by {}\n{}", signal_name(*outcome.interrupted_by),
                              the_others(outcome));
  return text;
}

std::string message_for(const Outcome& outcome) {
  const std::string report = report_on(outcome);
  return outcome.inside_line && !report.empty() ? "\n" + report : report;
}

}  // namespace corro::cli
