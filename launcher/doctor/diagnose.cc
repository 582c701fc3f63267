#include "launcher/doctor/diagnose.h"

#include "launcher/doctor/ledger.h"

namespace corro::launcher::doctor {

std::vector<Finding> diagnose(const Consultation& consultation) {
  Ledger ledger(consultation);
  for (const auto check : {check_reach, check_machines, check_limits, check_files, check_versions,
                           check_gpus, check_network})
    check(consultation, ledger);
  return ledger.findings();
}

}  // namespace corro::launcher::doctor
