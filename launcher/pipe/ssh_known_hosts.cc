#include "launcher/pipe/ssh_known_hosts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <libssh/libssh.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "base/crypto.h"
#include "base/fd.h"
#include "launcher/pipe/base64.h"

namespace corro::launcher {

namespace {

// What libssh calls the kinds of keys, and the ways of signing with them, in the order in which
// they are asked for.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kKinds = {
    std::pair{"ssh-ed25519", "ssh-ed25519"},
    std::pair{"ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256"},
    std::pair{"ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384"},
    std::pair{"ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521"},
    std::pair{"ssh-rsa", "rsa-sha2-512,rsa-sha2-256"},
};

std::string kind_of(const ssh_key_struct* key) {
  auto* k = const_cast<ssh_key_struct*>(key);
  const char* ecdsa = ssh_pki_key_ecdsa_name(k);
  const auto type = ssh_key_type(k);
  const bool is_ecdsa = type == SSH_KEYTYPE_ECDSA_P256 || type == SSH_KEYTYPE_ECDSA_P384 ||
                        type == SSH_KEYTYPE_ECDSA_P521;
  const char* name = is_ecdsa ? ecdsa : ssh_key_type_to_char(type);
  return name ? name : "";
}

bool same_key(const ssh_key_struct* a, const ssh_key_struct* b) {
  return ssh_key_cmp(const_cast<ssh_key_struct*>(a), const_cast<ssh_key_struct*>(b),
                     SSH_KEY_CMP_PUBLIC) == 0;
}

// The key of this line if it is about this name, which may be hidden by a hash; else none.
ssh_key_struct* key_in(const std::string& line, const std::string& name) {
  ssh_knownhosts_entry* entry = nullptr;
  const bool about_it =
      ssh_known_hosts_parse_line(name.c_str(), line.c_str(), &entry) == SSH_OK && entry;
  ssh_key_struct* key = about_it ? std::exchange(entry->publickey, nullptr) : nullptr;
  if (entry) ssh_knownhosts_entry_free(entry);
  return key;
}

bool takes_mark(std::string& line, std::string_view mark) {
  if (!line.starts_with(mark)) return false;
  line.erase(0, line.find_first_not_of(" \t", mark.size()));
  return true;
}

bool has_open_line(int fd) {
  const auto size = ::lseek(fd, 0, SEEK_END);
  char last = '\n';
  return size > 0 && ::pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

}  // namespace

KnownHosts::KnownHosts(std::vector<std::string> names, const std::vector<std::string>& files)
    : names_(std::move(names)) {
  for (const std::string& file : files) read(file);
}

KnownHosts::~KnownHosts() {
  for (const Entry& entry : entries_) ssh_key_free(entry.key);
}

void KnownHosts::read(const std::string& file) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) take(std::move(line));
}

void KnownHosts::take(std::string line) {
  const Mark mark = takes_mark(line, "@revoked ")          ? Mark::revoked
                    : takes_mark(line, "@cert-authority ") ? Mark::authority
                                                           : Mark::none;
  for (const std::string& name : names_)
    if (auto* key = key_in(line, name)) {
      entries_.push_back({key, mark, &name == &names_.front()});
      return;
    }
}

std::string KnownHosts::algorithms() const {
  const auto is_known = [&](std::string_view kind) {
    return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.mark == Mark::none && kind_of(entry.key) == kind;
    });
  };
  std::string first, rest;
  for (const auto& [kind, ways] : kKinds)
    (is_known(kind) ? first : rest) += fmt::format(",{}", ways);
  return (first + rest).substr(1);
}

Acquaintance KnownHosts::judge(const HostKey& host) const {
  bool known = false, by_another = false, vouched_for = false;
  for (const Entry& entry : entries_) {
    const bool same = same_key(entry.key, host.key);
    if (entry.mark == Mark::revoked && same) return Acquaintance::revoked;
    if (entry.mark == Mark::authority) vouched_for = true;
    if (entry.mark != Mark::none) continue;
    known = known || same;
    by_another = by_another || (entry.by_first_name && !same);
  }
  return known         ? Acquaintance::known
         : by_another  ? Acquaintance::changed
         : vouched_for ? Acquaintance::certified
                       : Acquaintance::unknown;
}

Result<Unit> remember(const HostKey& key, const std::string& name, const std::string& file) {
  constexpr mode_t kPrivateFolder = 0700, kPrivateFile = 0600;
  std::error_code ignored;
  const auto folder = std::filesystem::path(file).parent_path();
  if (!std::filesystem::exists(folder, ignored)) ::mkdir(folder.c_str(), kPrivateFolder);
  const Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, kPrivateFile));
  if (!fd) return Error::from_errno("opening " + file);
  // In one write, because many pipes may learn to know their hosts at once.
  const std::string line =
      fmt::format("{}{} {} {}\n", has_open_line(fd.get()) ? "\n" : "", name, key.kind, key.base64);
  const auto written = write_some(fd.get(), view_of(line));
  if (!written) return written.error();
  return Unit{};
}

std::string hidden_name(const std::string& name) {
  constexpr std::size_t kSaltBytes = 20;
  const Nonce random = random_nonce();
  const ByteView salt = ByteView(random).first(kSaltBytes);
  return fmt::format("|1|{}|{}", base64(salt), base64(hmac_sha1(salt, view_of(name))));
}

}  // namespace corro::launcher
