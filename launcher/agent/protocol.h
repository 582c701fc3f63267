#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/codec.h"
#include "base/exit_status.h"
#include "base/status_page.h"
#include "launcher/agent/evidence.h"
#include "launcher/agent/oom.h"
#include "launcher/machine/gpus.h"
#include "launcher/machine/inspection.h"
#include "launcher/machine/topology.h"
#include "launcher/network/barrier.h"
#include "launcher/network/door.h"
#include "launcher/output/stream.h"

// What the launcher and a host's agent say to each other; PROTOCOL.md has the bytes.  A worker is
// known by its rank.
namespace corro::launcher::agent {

// Down: from the launcher.

// First of all.  The agent ends its workers when it has heard nothing for as long as the lease.
struct Hello {
  static constexpr std::uint16_t kKind = 1;
  std::string version;
  std::uint32_t lease_ms = 0, grace_ms = 0;
  CORRO_FIELDS(version, lease_ms, grace_ms)
  bool operator==(const Hello&) const = default;
};

struct Start {
  static constexpr std::uint16_t kKind = 2;
  std::uint32_t worker = 0;
  std::vector<std::string> argv, env;
  std::string cwd;
  std::uint32_t umask = 022;
  bool has_input = false;  // else it reads /dev/null
  Cpus cpus;               // to run on; empty: any
  CORRO_FIELDS(worker, argv, env, cwd, umask, has_input, cpus)
  bool operator==(const Start&) const = default;
};

// To the worker's whole process group.  Dropped if it is gone.
struct Signal {
  static constexpr std::uint16_t kKind = 3;
  std::uint32_t worker = 0;
  std::int32_t signo = 0;
  CORRO_FIELDS(worker, signo)
  bool operator==(const Signal&) const = default;
};

struct Lease {
  static constexpr std::uint16_t kKind = 4;
  CORRO_FIELDS()
  bool operator==(const Lease&) const = default;
};

// All frames up to this one have done what they were sent for; output has been written.
struct Ack {
  static constexpr std::uint16_t kKind = 5;
  std::uint64_t seq = 0;
  CORRO_FIELDS(seq)
  bool operator==(const Ack&) const = default;
};

// No more will come: kill what is left and go.
struct Close {
  static constexpr std::uint16_t kKind = 6;
  CORRO_FIELDS()
  bool operator==(const Close&) const = default;
};

// For the worker to read.  After `ends` there is no more.
struct Input {
  static constexpr std::uint16_t kKind = 7;
  std::uint32_t worker = 0;
  Bytes bytes;
  bool ends = false;
  CORRO_FIELDS(worker, bytes, ends)
  bool operator==(const Input&) const = default;
};

// The launcher is about to be stopped (Ctrl-Z): stop the workers too, and let the lease rest.
struct Hold {
  static constexpr std::uint16_t kKind = 8;
  CORRO_FIELDS()
  bool operator==(const Hold&) const = default;
};

// It goes on.
struct Resume {
  static constexpr std::uint16_t kKind = 9;
  CORRO_FIELDS()
  bool operator==(const Resume&) const = default;
};

// How a host is to open doors, by which others may find out that they reach it.
struct Opener {
  std::string host;                     // as the job calls it
  Bytes key;                            // of the job
  std::vector<std::string> interfaces;  // to use only; none: all
  std::string address;                  // to use only; empty: any
  CORRO_FIELDS(host, key, interfaces, address)
  bool operator==(const Opener&) const = default;
};

// Look around, for what the job needs to know.
struct Survey {
  static constexpr std::uint16_t kKind = 10;
  bool gpus = false, topology = false;
  std::uint16_t first_port = 0, last_port = 0;  // for all that will listen; 0: any
  std::optional<Opener> doors;                  // none: nobody will come from elsewhere
  CORRO_FIELDS(gpus, topology, first_port, last_port, doors)
  bool operator==(const Survey&) const = default;
};

// See what the workers are doing, before they are ended.
struct Examine {
  static constexpr std::uint16_t kKind = 11;
  CORRO_FIELDS()
  bool operator==(const Examine&) const = default;
};

// See what a worker of this command would find here; for a doctor, not for a job.
struct Inspect {
  static constexpr std::uint16_t kKind = 12;
  std::string cwd;                     // empty: nobody cares
  std::vector<std::string> argv, env;  // no argv: the same
  std::uint32_t patience_ms = 0;
  CORRO_FIELDS(cwd, argv, env, patience_ms)
  bool operator==(const Inspect&) const = default;
};

// Find out which of these can be reached from here.  The own doors are closed with the first Start.
struct Knock {
  static constexpr std::uint16_t kKind = 13;
  std::vector<Doorway> doorways;
  CORRO_FIELDS(doorways)
  bool operator==(const Knock&) const = default;
};

using Down = std::variant<Hello, Start, Signal, Lease, Ack, Close, Input, Hold, Resume, Survey,
                          Examine, Inspect, Knock>;

// Up: from the agent.

struct Ready {
  static constexpr std::uint16_t kKind = 65;
  std::string version;
  std::int32_t pid = 0;
  CORRO_FIELDS(version, pid)
  bool operator==(const Ready&) const = default;
};

// What the host has: the answer to Survey.
struct Facts {
  static constexpr std::uint16_t kKind = 71;
  std::uint32_t cores = 1;      // that workers may run on
  std::uint16_t free_port = 0;  // nobody listened there a moment ago
  std::vector<Gpu> gpus;
  std::optional<Topology> topology;
  std::vector<Door> doors;
  std::vector<std::string> troubles;  // what could not be found out, and why
  CORRO_FIELDS(cores, free_port, gpus, topology, doors, troubles)
  bool operator==(const Facts&) const = default;
};

// So much of its input the worker has taken, or will never take.
struct Taken {
  static constexpr std::uint16_t kKind = 72;
  std::uint32_t worker = 0, bytes = 0;
  CORRO_FIELDS(worker, bytes)
  bool operator==(const Taken&) const = default;
};

struct Started {
  static constexpr std::uint16_t kKind = 66;
  std::uint32_t worker = 0;
  std::int32_t pid = 0;
  CORRO_FIELDS(worker, pid)
  bool operator==(const Started&) const = default;
};

struct Failed {
  static constexpr std::uint16_t kKind = 67;
  std::uint32_t worker = 0;
  Errc code = Errc::io;
  std::string why;
  CORRO_FIELDS(worker, code, why)
  bool operator==(const Failed&) const = default;
};

struct Output {
  static constexpr std::uint16_t kKind = 68;
  std::uint32_t worker = 0;
  Stream stream = Stream::out;
  std::int64_t time = 0;  // when it was read from the worker, in microseconds since 1970
  Bytes bytes;
  CORRO_FIELDS(worker, stream, time, bytes)
  bool operator==(const Output&) const = default;
};

// Comes after all that the worker had written.
struct Exited {
  static constexpr std::uint16_t kKind = 69;
  std::uint32_t worker = 0;
  ExitStatus status;
  Status said;     // what it had said last about what it does
  OomVerdict oom;  // whether want of memory was why
  Usage used;
  CORRO_FIELDS(worker, status, said, oom, used)
  bool operator==(const Exited&) const = default;
};

// The agent ends its workers by itself, and says why before it does.
struct Ending {
  static constexpr std::uint16_t kKind = 70;
  std::string why;
  CORRO_FIELDS(why)
  bool operator==(const Ending&) const = default;
};

// What a worker that runs does: one for each of them, after Examine.
struct Finding {
  static constexpr std::uint16_t kKind = 73;
  std::uint32_t worker = 0;
  Status said;
  Evidence seen;
  CORRO_FIELDS(worker, said, seen)
  bool operator==(const Finding&) const = default;
};

// That was all of them.
struct Examined {
  static constexpr std::uint16_t kKind = 74;
  CORRO_FIELDS()
  bool operator==(const Examined&) const = default;
};

// What was seen, and when Inspect came and this went, by the host's clock.
struct Inspected {
  static constexpr std::uint16_t kKind = 77;
  Inspection seen;
  std::int64_t asked_us = 0, answered_us = 0;  // microseconds since 1970
  CORRO_FIELDS(seen, asked_us, answered_us)
  bool operator==(const Inspected&) const = default;
};

struct Knocked {
  static constexpr std::uint16_t kKind = 78;
  std::vector<Opening> openings;
  CORRO_FIELDS(openings)
  bool operator==(const Knocked&) const = default;
};

// The answer to each Lease.
struct Alive {
  static constexpr std::uint16_t kKind = 79;
  CORRO_FIELDS()
  bool operator==(const Alive&) const = default;
};

// Up, from the pipe that carries the conversation (launcher/pipe), numbered 0.

// First of all: the agent's host was reached, and the agent runs.
struct Reached {
  static constexpr std::uint16_t kKind = 75;
  std::string address;  // empty: another command knows the way
  std::uint32_t resolve_us = 0, connect_us = 0, login_us = 0, start_us = 0;
  bool staged = false;  // this program was brought along
  std::uint32_t attempts = 1;
  std::string host_key;  // "SHA256:…"; empty: another command has checked it
  CORRO_FIELDS(address, resolve_us, connect_us, login_us, start_us, staged, attempts, host_key)
  bool operator==(const Reached&) const = default;
};

using Barrier = BarrierKind;

// Last of all: the host is out of reach.
struct Unreached {
  static constexpr std::uint16_t kKind = 76;
  Barrier kind = Barrier::unreachable;
  std::string why;  // with host, address, port and cause
  std::string fix;  // a command that mends it, or finds out more
  CORRO_FIELDS(kind, why, fix)
  bool operator==(const Unreached&) const = default;
};

using Up = std::variant<Ready, Facts, Started, Failed, Output, Exited, Ending, Taken, Finding,
                        Examined, Inspected, Knocked, Alive, Reached, Unreached>;

// A command line and an environment may have two megabytes together (ARG_MAX).
inline constexpr std::size_t kDownLimit = 8 << 20;
inline constexpr std::size_t kOutputBytes = 64 << 10;  // of one Output at the most
inline constexpr std::size_t kWhyBytes = 2048;         // of one Failed; a path may be longer
inline constexpr std::size_t kUpLimit = 1 << 20;  // Facts about a host with many cores and GPUs

// How much input of one worker may be under way that it has not taken, and of one Input.
inline constexpr std::size_t kInputWindow = 256 << 10;
inline constexpr std::size_t kInputBytes = 64 << 10;

// How much output an agent may have under way that is not acknowledged: a terminal that stands
// still then holds up the workers that write, and nothing else.
inline constexpr std::size_t kOutputWindow = 1 << 20;
inline constexpr std::size_t kAckBytes = kOutputWindow / 8;  // that are worth an Ack

}  // namespace corro::launcher::agent
