#include "runtime/collective/open.h"

#include "runtime/pattern/ring.h"
#include "runtime/transport/wiring.h"

namespace corro::runtime {

namespace {

Outcome<std::unique_ptr<Communicator>> connect(const JobEnvironment& environment) {
  const Place& place = environment.place;
  const Peer self{place.rank, place.host};
  if (place.size == 1) return std::make_unique<Communicator>(self);

  const Meeting& meeting = *environment.meeting;
  const auto deadline = Deadline::in(environment.start_timeout);
  auto store =
      rendezvous::StoreClient::connect(meeting.store, meeting.key, meeting.generation, deadline);
  if (!store) return Failure(store.error());

  const Seat seat{self, place.size, meeting.generation, meeting.key, meeting.ip, meeting.ports};
  auto links = wire(seat, ring_neighbours(place.rank, place.size), *store, deadline);
  if (!links) return links.error();
  return std::make_unique<Communicator>(self, place.size, meeting.generation, std::move(*links),
                                        std::move(*store));
}

}  // namespace

Outcome<std::unique_ptr<Communicator>> open_communicator(const JobEnvironment& environment) {
  auto status = StatusWriter::open(environment.status.c_str());
  status.say("meeting the other workers");
  auto communicator = connect(environment);
  status.say(communicator ? "has met the other workers, no collective yet"
                          : "could not meet the other workers");
  if (!communicator) return communicator.error();
  (*communicator)->tell(std::move(status));
  return communicator;
}

}  // namespace corro::runtime
