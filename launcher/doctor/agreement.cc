#include "launcher/doctor/agreement.h"

#include <map>

namespace corro::launcher::doctor {

Agreement::Agreement(const Consultation& consultation, const Value& value) {
  std::vector<std::pair<const HostReport*, std::string>> all;
  std::map<std::string, int> counts;
  for (const HostReport& host : consultation.hosts)
    if (host.seen) ++counts[all.emplace_back(&host, value(*host.seen)).second];
  int most = 0;
  for (const auto& [host, each] : all)
    if (counts[each] > most) {
      most = counts[each];
      usual_ = each;
    }
  for (auto& each : all)
    if (each.second != usual_) odd_.push_back(std::move(each));
}

}  // namespace corro::launcher::doctor
