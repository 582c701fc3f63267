#pragma once

#include <string>

#include "base/result.h"
#include "launcher/job/job.h"

// The words that users read, apart from the code that finds out what to say.
namespace corro::cli {

std::string message_for(const launcher::News&);

// Why the job was not begun, and what to try.
std::string message_for(const Error&);

// How the job ended, in one line or a few; empty if all went well.
std::string message_for(const launcher::Outcome&);

}  // namespace corro::cli
