#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/crypto.h"
#include "base/result.h"
#include "base/time.h"
#include "runtime/domain/domain.h"

// How ranks of one machine hand each other memory and doorbells.
//
// The first member listens on an abstract unix socket with a random name, which the others learn
// through the store.  Each connects; both sides prove that they know the job's key; it sends
//
//   member → first    Hello, with its descriptors
//   first → member    Cards: 64 members at a time, with theirs (SCM_RIGHTS takes 253)
//   member → first    Ready
//   first → member    Verdict
//
// in one packet each.  Only the first decides: when all are ready, or at its deadline, or when a
// member says that it cannot, all get the same verdict.  That the connection works is also the
// proof that two ranks share a machine; environment variables and host names are not.
namespace corro::runtime {

// Which ranks try to share memory, and which of them this process is.  The caller decides: those
// that claim the same host name and boot id.
struct DomainSeat {
  std::vector<Peer> members;  // in the order of the domain
  int index = 0;
  std::uint64_t generation = 0;
  std::uint64_t group = 0;  // each exchange of a generation has another number
  Key key;
};

// What this process brings.  A process that cannot bring any (memfd is denied) takes part all the
// same and says why, so that the others need not wait for it.
struct DomainOffer {
  Fd memory;
  Fd doorbell;         // none for an arena
  std::string unable;  // not empty: why there is no memory
};

// How the ranks learn where the first one listens.
struct AddressBook {
  std::function<Result<Unit>(const std::string& address)> publish;  // by the first
  std::function<Result<std::string>(Deadline)> find;                // by the others
};

// The members' descriptors in the order of the domain; the own entry has the own ones.  An error
// means that these ranks cannot share memory; they talk TCP then.  A process with n members holds
// 3 n descriptors meanwhile, so arenas are exchanged and opened before segments.  All members get
// the same answer, but for one that dies or whose machine stalls for seconds at the very end.
Result<std::vector<Membership>> exchange(const DomainSeat&, DomainOffer, const AddressBook&,
                                         Deadline);

// An eventfd.
Result<Fd> make_doorbell();

}  // namespace corro::runtime
