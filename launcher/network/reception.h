#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/channel.h"
#include "base/crypto.h"
#include "base/socket.h"
#include "launcher/network/door.h"

namespace corro::launcher {

// Opens a door at each of some addresses.  Whoever knocks has to prove the job's key before the
// door opens, and finds nothing behind it: what counts is that it could be reached.
//
// `host` is in the proof, so that two machines with the same address are not taken for each other.
// Owned by agent or driver; belongs to the loop.
class Reception {
 public:
  // Of an address where nobody may listen there is no door.
  Reception(Loop&, const Key&, const std::string& host, std::vector<Door> addresses, PortRange);

  const std::vector<Door>& doors() const { return doors_; }

 private:
  struct Listener {
    Fd fd;
    Loop::Watch watch;
  };

  void let_in(int listener);

  Loop& loop_;
  const Key key_;
  const std::string purpose_;
  std::vector<Door> doors_;
  std::list<Listener> listeners_;
  std::uint64_t last_visitor_ = 0;
  // By number.  Those who go are forgotten from the loop, which may come to it when we are gone.
  std::shared_ptr<std::map<std::uint64_t, std::unique_ptr<Channel>>> visitors_;
};

// What the proof at a door is for.
std::string door_purpose(const std::string& host);

}  // namespace corro::launcher
