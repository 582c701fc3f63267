#pragma once

#include "launcher/pipe/ssh_session.h"
#include "launcher/pipe/wire.h"

struct ssh_channel_struct;
struct ssh_event_struct;

namespace corro::launcher {

// A channel of a session, which outlives it.
class SshWire final : public Wire {
 public:
  SshWire(SshSession&, ssh_channel_struct* owned);
  ~SshWire() override;

  Result<Moved> read_some(MutByteView) override;
  Result<Moved> write_some(ByteView) override;
  void end_writing() override;
  std::vector<Interest> interests(bool reading, bool writing) const override;
  std::string take_asides() override;
  std::optional<int> exit_code(Deadline) override;

 private:
  void turn();
  bool writes_pending() const;

  SshSession& session_;
  ssh_channel_struct* channel_;
  ssh_event_struct* event_;
  std::string asides_;
};

}  // namespace corro::launcher
