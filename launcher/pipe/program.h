#pragma once

#include <string>

#include "launcher/pipe/bootstrap.h"

namespace corro::launcher {

// `path` empty: the program that runs.
Result<Program> find_program_file(const std::string& path);

Result<Bytes> read_program(const Program&);

// What a linker wrote into a program to tell its build from all others; empty if it did not.
// `head`: how the file begins.
std::string build_id(ByteView head);

}  // namespace corro::launcher
