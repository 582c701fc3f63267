#include "cli/failure_report.h"

#include <chrono>
#include <nlohmann/json.hpp>

namespace corro::cli {

using launcher::Failure;

namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(Failure::Kind kind) {
  switch (kind) {
    case Failure::Kind::worker:
      return "worker";
    case Failure::Kind::not_started:
      return "not_started";
    case Failure::Kind::host:
      return "host";
    case Failure::Kind::unfit:
      return "unfit";
  }
  return {};
}

double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

Json json_of(const Failure& failure) {
  Json json = {{"kind", name_of(failure.kind)},
               {"host", failure.host},
               {"rank", nullptr},
               {"cause", failure.cause},
               {"exit_code", failure.exit_code},
               {"after_seconds", seconds(failure.after)}};
  if (failure.rank) json["rank"] = *failure.rank;
  return json;
}

Json json_of(const launcher::WorkerEnd& end, std::size_t rank) {
  Json json = {{"rank", rank}, {"host", end.host}, {"exit_code", nullptr}, {"signal", nullptr}};
  if (end.status && end.status->signo) json["signal"] = end.status->signo;
  if (end.status && !end.status->signo) json["exit_code"] = end.status->code;
  json["told_to_stop_by"] = nullptr;
  if (end.told_to_stop) json["told_to_stop_by"] = *end.told_to_stop;
  json["peak_rss_bytes"] = nullptr;
  json["cpu_seconds"] = nullptr;
  if (end.status) {
    json["peak_rss_bytes"] = end.used.peak_rss_bytes;
    json["cpu_seconds"] = static_cast<double>(end.used.cpu_ms) / 1e3;
  }
  if (!end.doing) return json;
  json["operation"] = end.doing->operation;
  json["operation_under_way"] = end.doing->under_way;
  json["state"] = end.doing->state;
  json["stack"] = end.doing->frames;
  json["rss_bytes"] = end.doing->rss_bytes;
  json["python_stacks_in"] = nullptr;
  if (!end.doing->python_stacks_in.empty()) json["python_stacks_in"] = end.doing->python_stacks_in;
  return json;
}

}  // namespace

std::string failure_json(const launcher::Outcome& outcome) {
  Json json;
  json["failure"] = nullptr;
  if (outcome.failure) json["failure"] = json_of(*outcome.failure);
  json["unreachable"] = Json::array();
  for (const launcher::Unreachable& host : outcome.unreachable)
    json["unreachable"].push_back({{"host", host.host}, {"why", host.why}, {"fix", host.fix}});
  json["interrupted_by"] = nullptr;
  if (outcome.interrupted_by) json["interrupted_by"] = *outcome.interrupted_by;
  json["took_seconds"] = seconds(outcome.took);
  json["workers"] = Json::array();
  for (std::size_t rank = 0; rank < outcome.workers.size(); ++rank)
    json["workers"].push_back(json_of(outcome.workers[rank], rank));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace corro::cli
