#include "base/proof.h"
#include "tests/fuzz/fuzz.h"

using namespace corro;

// Somebody who does not know the key says whatever it likes, to a server or to a client, in
// pieces of whatever size.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const auto role = input.byte() % 2 ? Proof::Role::server : Proof::Role::client;
  const std::size_t piece = 1 + input.byte();
  const Key key{{0x4B}};
  const Nonce nonce{0x4E};
  Proof proof(role, key, "fuzz", nonce);

  bool refused = false;
  Bytes replies;
  while (!input.rest().empty()) {
    const ByteView bytes = input.take(piece);
    const auto used = proof.feed(bytes, replies);
    fuzz::require(!proof.done(), "nobody proves a key that it does not know");
    fuzz::require(proof.awaited() <= 64, "a message of a proof is small");
    fuzz::require(!used || *used == bytes.size(), "what is not done takes all");
    fuzz::require(!(refused && used), "who was refused stays refused");
    refused = !used;
  }
  fuzz::require(replies.size() <= (role == Proof::Role::server ? 64 : 0),
                "a server answers once, and a client not at all");
  return 0;
}
