#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/crypto.h"
#include "base/loop.h"
#include "launcher/agent/protocol.h"
#include "launcher/job/job.h"
#include "launcher/network/addressing.h"
#include "launcher/network/reception.h"

namespace corro::launcher {

// Finds out by which addresses the hosts of a job and the launcher reach each other: the launcher
// opens doors, each agent says which it has, all knock where they will have to connect to, and the
// ways that were found are remembered for an hour.  Where every host is this machine nobody knocks.
//
// Owned by the driver; belongs to the loop.
class Wayfinding {
 public:
  Wayfinding(Loop&, const JobSpec&, const Key&, std::vector<std::string> hosts);

  // Some host is elsewhere: from now on everybody has to knock.
  void open_doors();
  void close_doors() { reception_.reset(); }

  // What the host's agent is to open; nothing if nobody will come from elsewhere.
  std::optional<agent::Opener> opener_for(const HostSpec&) const;
  void has_doors(const std::string& host, const std::vector<Door>& doors);

  // All doors are known.  Whether everybody has to be sent to knock before a way is asked for.
  bool begin();
  agent::Knock knock_for(const std::string& host) const;

  enum class Step { waiting, knock_again, done };
  Step knocked(const std::string& host, const std::vector<Opening>&);

  // Of a host, or of Addressing::kLauncher.
  Result<Door, Unmet> way_to(const std::string& host) const;

 private:
  std::string question() const;
  void recall_ways();
  void remember_ways() const;

  Loop& loop_;
  const JobSpec& spec_;
  const Key key_;
  const std::vector<std::string> hosts_;
  Addressing addressing_;
  bool is_elsewhere_ = false;  // some host
  std::optional<Reception> reception_;
};

}  // namespace corro::launcher
