#include "cli/exit_codes.h"

#include <array>

namespace corro::cli {

namespace {

constexpr auto kCodes = std::to_array<ExitCode>({
    {"0", "all workers ended with 0"},
    {"2",
     "what was asked for cannot be done, such as an unknown option, too few slots or no command; "
     "nothing was started"},
    {"110", "nobody knows a host's name"},
    {"111", "a host cannot be reached, or does not answer"},
    {"112", "a host's key is not known, or has changed"},
    {"113", "a host does not let us in"},
    {"114",
     "this program cannot be brought to a host, does not run there, or the host is of another kind "
     "than the others"},
    {"115", "hosts do not reach each other"},
    {"116", "a limit is too low for a job: open files, threads"},
    {"117", "Python, a framework or NCCL has another version than elsewhere"},
    {"118",
     "the working directory, the program or its script, or room in /tmp or /dev/shm is missing"},
    {"119", "GPUs are missing, or their driver is in disorder"},
    {"120", "a host's clock is far from ours"},
    {"121",
     "a host was lost: its agent or its guard was killed, or did not hear of horovodrun for 5 "
     "seconds"},
    {"122", "the launcher could not open a place for the workers to meet; nothing was started"},
    {"123",
     "a host lacks what the job needs, such as a GPU that CUDA_VISIBLE_DEVICES names; nothing was "
     "started"},
    {"124", "a host did not answer within the --start-timeout"},
    {"125",
     "the system refused what was needed: no more processes, memory or descriptors, or the working "
     "directory is gone"},
    {"126", "the command was found, but cannot be executed"},
    {"127", "the command was not found"},
    {"129, 130, 143", "the job was ended by SIGHUP, SIGINT or SIGTERM to horovodrun"},
});

}  // namespace

std::span<const ExitCode> exit_codes() {
  return kCodes;
}

}  // namespace corro::cli
