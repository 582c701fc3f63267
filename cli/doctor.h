#pragma once

#include <string>
#include <vector>

#include "launcher/doctor/consultation.h"
#include "launcher/doctor/finding.h"
#include "launcher/hosts/hosts.h"
#include "launcher/job/consult.h"

namespace corro::cli {

// What `horovodrun doctor` says, for people and for scripts: a row for each host, and what was
// found with what mends it.
struct Checkup {
  launcher::doctor::Consultation consultation;
  std::vector<launcher::doctor::Finding> findings;
  std::vector<launcher::HostSpec> remaining;  // what --exclude-bad would leave; empty: too little
};

std::string doctor_text(const Checkup&, bool with_color);
std::string doctor_json(const Checkup&);

// "h[1-4]: it cannot be reached", without the remedy.
std::string headline(const launcher::doctor::Finding&);

// For a terminal, while it goes on.
std::string progress_text(const launcher::ConsultProgress&);

}  // namespace corro::cli
