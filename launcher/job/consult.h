#pragma once

#include <functional>
#include <string>

#include "launcher/doctor/consultation.h"
#include "launcher/job/job.h"

namespace corro::launcher {

// How far a consultation is.
struct ConsultProgress {
  int hosts = 0, reached = 0, done = 0;
};
using WatchConsult = std::function<void(const ConsultProgress&)>;

// At all that a job needs, or only at the GPUs.
enum class Look { all, gpus };

// Goes to all hosts of a job at once and looks around there, as its workers would; lets them try to
// reach each other; starts nothing else, and leaves nothing behind.  Waits for no host longer than
// the start timeout and some seconds: one that hangs is told of as such.
doctor::Consultation consult(const JobSpec&, const WatchConsult&, Look = Look::all);

// Pure.  What a user types to have the hosts of a job looked at, by the same ways.
std::string doctor_command(const JobSpec&);

}  // namespace corro::launcher
