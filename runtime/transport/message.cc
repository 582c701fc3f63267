#include "runtime/transport/message.h"

#include <fmt/format.h>

namespace corro::runtime {

std::optional<Failure> mismatch(const Peer& self, const Expected& expected, const Peer& peer,
                                const Header& came, std::string_view description) {
  const Header& wanted = expected.header;
  if (came.tag == wanted.tag && came.digest == wanted.digest && came.bytes == wanted.bytes)
    return std::nullopt;
  const auto malformed = [&](std::string text) {
    return Failure(Errc::malformed, peer.rank, std::move(text));
  };
  if (came.tag.generation != wanted.tag.generation)
    return malformed(fmt::format("{} is in generation {} of the job, {} in generation {}",
                                 peer.text(), came.tag.generation, self.text(),
                                 wanted.tag.generation));
  if (came.tag.group != wanted.tag.group)
    return malformed(fmt::format("{} sent a message of another group", peer.text()));
  if (came.digest != wanted.digest || came.tag.sequence != wanted.tag.sequence)
    return mismatch(self, fmt::format("{}", expected.description), peer,
                    description.empty() ? "in another operation" : description);
  return Failure(Errc::invalid_input, -1,
                 fmt::format("{} sent {} bytes for step {} of {} where {} expects {} bytes for "
                             "step {}",
                             peer.text(), came.bytes, came.tag.step, expected.description,
                             self.text(), wanted.bytes, wanted.tag.step));
}

}  // namespace corro::runtime
