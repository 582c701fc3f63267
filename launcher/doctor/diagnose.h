#pragma once

#include <vector>

#include "launcher/doctor/consultation.h"
#include "launcher/doctor/finding.h"

namespace corro::launcher::doctor {

// Pure.  What is wrong with the hosts, each thing once, what is bad first.
std::vector<Finding> diagnose(const Consultation&);

}  // namespace corro::launcher::doctor
