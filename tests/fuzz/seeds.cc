// Writes the first inputs of every fuzz target into corpus/TARGET/.
//
//   build/fuzz/bin/fuzz_seeds tests/fuzz/corpus
#include <filesystem>
#include <fstream>

#include "base/proof.h"
#include "launcher/agent/protocol.h"
#include "rendezvous/messages.h"

using namespace corro;
using namespace corro::launcher;
using namespace corro::rendezvous;

namespace {

void write(const std::filesystem::path& path, const Bytes& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

Bytes joined(Bytes front, ByteView back) {
  append(front, back);
  return front;
}

template <class M>
Bytes as_codec_input(const M& message) {
  return joined({static_cast<std::uint8_t>(M::kKind)}, encode(message));
}

void write_frames(const std::filesystem::path& folder) {
  Bytes two, huge = {4}, short_one = {2};
  append_frame(two, {1, 1, {}});
  append_frame(two, {66, 2, view_of("a body")});
  store_little(huge, std::uint32_t{0xFFFFFFFF});
  store_little(short_one, std::uint32_t{9});
  Bytes largest, too_large;
  append_frame(largest, {1, 1, Bytes(40, 'x')});  // the limit of the target
  append_frame(too_large, {1, 1, Bytes(41, 'x')});
  write(folder / "largest", joined({7}, largest));
  write(folder / "too-large", joined({7}, too_large));
  write(folder / "two-frames", joined({5}, two));
  write(folder / "cut-off", joined({0}, ByteView(two).first(20)));
  write(folder / "four-gigabytes", huge);
  write(folder / "too-short", short_one);
}

void write_messages(const std::filesystem::path& folder) {
  const Departure departure{1, 2, "b", "was killed by SIGKILL", Departure::Manner::died};
  write(folder / "store-set", as_codec_input(store::Set{1, "key", {1, 2}}));
  write(folder / "store-wait", as_codec_input(store::WaitFor{2, "key", 1000}));
  write(folder / "store-gather", as_codec_input(store::Gather{3, "g", 1, 4, {7}, 1000}));
  write(folder / "store-done", as_codec_input(store::Done{1}));
  write(folder / "store-value", as_codec_input(store::Value{2, {1, 2}}));
  write(folder / "store-values", as_codec_input(store::Values{3, {{1}, {}, {2, 3}}}));
  write(folder / "store-refused", as_codec_input(store::Refused{4, Errc::exists, "why"}));
  write(folder / "store-notice", as_codec_input(store::Notice{departure}));
  agent::Start start;
  start.worker = 3;
  start.argv = {"python", "train.py"};
  start.env = {"A=b", "C=d"};
  start.cwd = "/";
  write(folder / "agent-start", as_codec_input(start));
  agent::Output output;
  output.bytes = {'h', 'i', '\n'};
  write(folder / "agent-output", as_codec_input(output));
  write(folder / "agent-exited", as_codec_input(agent::Exited{3, ExitStatus::killed(9)}));
}

// A whole conversation, with a key that the target does not have.
void write_handshakes(const std::filesystem::path& folder) {
  const Key key{{1}};
  Proof client(Proof::Role::client, key, "fuzz", Nonce{2});
  Proof server(Proof::Role::server, key, "fuzz", Nonce{3});
  const Bytes hello = client.opening();
  Bytes answer, finish;
  (void)server.feed(hello, answer);
  (void)client.feed(answer, finish);
  write(folder / "to-server", joined(joined({1, 255}, hello), finish));
  write(folder / "to-server-bytewise", joined(joined({1, 0}, hello), finish));
  write(folder / "to-client", joined({0, 255}, answer));
  write(folder / "not-ours", joined({1, 30}, view_of("GET / HTTP/1.1\r\nHost: store\r\n\r\n")));
}

// Three bytes a step: what, who, how (see StoreStory).
void write_stories(const std::filesystem::path& folder) {
  write(folder / "set-and-wait", {0, 0, 0, 0, 1, 0, 3, 1, 99, 2, 0, 99, 3, 0, 99});
  write(folder / "gather", {0, 0, 0, 0, 1, 0, 4, 0, 100, 4, 6, 100, 7, 0, 200});
  write(folder / "time-out", {0, 0, 0, 3, 0, 10, 4, 0, 10, 7, 0, 5, 7, 0, 5});
  write(folder / "loss", {0, 0, 0, 3, 0, 9, 1, 0, 0, 6, 2, 0, 0, 0, 0, 0, 1, 0, 6, 3, 0});
}

using Seeds = std::vector<std::pair<const char*, std::string>>;

void write_texts(const std::filesystem::path& folder, const Seeds& seeds) {
  for (const auto& [name, text] : seeds) write(folder / name, bytes_of(text));
}

void write_host_lists(const std::filesystem::path& folder) {
  write_texts(folder, {{"one", "localhost:4"},
                       {"two", "a:2,b-1.example.org:16"},
                       {"address", "127.0.0.1:2,10.0.0.7:8"},
                       {"twice", "a:1,a:1"},
                       {"bad", "a:0,:3,b:x,"},
                       {"bare", "a, b ,a"},
                       {"user", "ann@a:4,j.doe@b,a"},
                       {"two-users", "u1@a:1,u2@a:1"},
                       {"ipv6", "[2001:db8::1]:4,ann@[::1]"},
                       {"ipv6-nul", std::string("[::1\0]:4", 8)},
                       {"ipv6-bare", "2001:db8::1:4"},
                       {"ranges", "rack[1-2]node[01-03,20].x:8"},
                       {"ranges-huge", "node[0-9999999999]:8"},
                       {"ranges-large", "n[0-131071]"},
                       {"files", "@a,@none,@a:8"},
                       {"file-loop", "c,@b"},
                       {"blanks", "a slots=4 , b 2"},
                       {"full-width", "a：４，b：２"},
                       {"words", "a:four;b=2"}});
}

void write_host_files(const std::filesystem::path& folder) {
  write_texts(folder, {{"horovod", "a slots=4\nb slots=2\n"},
                       {"openmpi", "a slots=4 max_slots=8\nann@::1 cpu=2 # c\n// c\n"},
                       {"openmpi-keys", "a slots = 4 max-slots=4 port=22 sockets=2\nb username=x"},
                       {"hydra", "a:4 binding=user:0,1 ifname=ib0\nb:2\n"},
                       {"machine-file", "a\na\nb\n"},
                       {"slurm", "n[01-04,7],login\n"},
                       {"slurm-slots", "n[1-2]x[3-4]:8\nm[1-2] slots=3\n"},
                       {"windows", "\xEF\xBB\xBF# c\r\n\r\na slots=4\r\n[::1]:2\r\n"},
                       {"utf-16", std::string("\xFF\xFE"
                                              "a\0\n\0",
                                              6)},
                       {"nul", std::string("a\0b slots=4\n", 12)},
                       {"twice", "a:4 slots=2\na slots=1 slots=1\n"},
                       {"unknown", "a Slots=4 solts=four\n"},
                       {"too-many", "a slots=5 max_slots=4\n"},
                       {"other-file", "@a\n"},
                       {"address-user",
                        "\x1D"
                        "ann@::1 cpu=2\n"},
                       {"comment", "a # caf\xE9\n"}});
}

void write_node_lists(const std::filesystem::path& folder) {
  write_texts(folder, {{"one", "login"},
                       {"many", "node[01-16,20],login1"},
                       {"product", "r[1-2]n[3-4]x"},
                       {"zeros", "n[098-101],n[9-11],n[09-011]"},
                       {"backwards", "n[3-1],n[3,2,1]"},
                       {"open", "n[1-3"},
                       {"nested", "n[1,[2]]"},
                       {"empty", "n[],n[-],n[1-]"},
                       {"huge", "n[0-999999999999999999]"},
                       {"large", "n[0-131071]"},
                       {"longest-number", "n[999999999999999998-999999999999999999]x"},
                       {"number-alone", "[1-2],10.0.0.[7-8]"},
                       {"address", "[2001:db8::1],[::2]"}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s tests/fuzz/corpus\n", argv[0]);
    return 2;
  }
  const std::filesystem::path corpus(argv[1]);
  write_frames(corpus / "frame");
  write_messages(corpus / "codec");
  write_handshakes(corpus / "handshake");
  write_stories(corpus / "store");
  write_host_lists(corpus / "hosts");
  write_host_files(corpus / "host_file");
  write_node_lists(corpus / "node_list");
}
