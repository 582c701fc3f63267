#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/channel.h"
#include "base/crypto.h"
#include "launcher/network/door.h"

namespace corro::launcher {

// Knocks at all doors of some hosts at once.  Ends when each has opened or cannot; for those that
// keep silent it does not wait long once every host has opened one.
//
// Owned by the agent, which may destroy it in `done`; belongs to the loop.
class Knocking {
 public:
  using Done = std::function<void(std::vector<Opening>)>;

  Knocking(Loop&, const Key&, std::vector<Doorway>, Duration patience, Done);

 private:
  struct Attempt {
    std::size_t host, door;
    Fd socket;  // until it is connected
    Loop::Watch connecting;
    std::unique_ptr<Channel> channel;
    bool over = false;
  };

  void begin(Attempt&);
  void connected(Attempt&);
  void opened(Attempt&);
  void failed(Attempt&, const std::string& why);
  void end_if_settled();
  void end();

  Loop& loop_;
  const Key key_;
  const std::vector<Doorway> doorways_;
  Done done_;
  std::vector<Opening> openings_;
  std::list<Attempt> attempts_;
  Loop::Timer patience_;
  bool hurried_ = false;
};

}  // namespace corro::launcher
