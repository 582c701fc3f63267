#pragma once

#include <string>
#include <vector>

#include "base/result.h"

struct ssh_key_struct;

namespace corro::launcher {

// How a host is known by its key.
enum class Acquaintance {
  known,
  unknown,
  changed,  // it is known by another key, of this kind or another
  revoked,
  certified,  // unknown, but somebody vouches for it, which we cannot check
};

// A server's key.
struct HostKey {
  const ssh_key_struct* key = nullptr;  // borrowed
  std::string kind, base64, fingerprint;
};

// The files in which ssh keeps the keys of hosts.
class KnownHosts {
 public:
  // `names`: under which the host may be found there.  Another key under the first of them means
  // that its key has changed; the others can only confirm the one that it shows.  A file that is
  // not there knows nobody.
  KnownHosts(std::vector<std::string> names, const std::vector<std::string>& files);
  ~KnownHosts();
  KnownHosts(const KnownHosts&) = delete;
  KnownHosts& operator=(const KnownHosts&) = delete;

  // For the key exchange: kinds of keys by which the host is known come first, so that a host with
  // several shows the one that can be compared.
  std::string algorithms() const;

  Acquaintance judge(const HostKey&) const;

 private:
  enum class Mark { none, revoked, authority };
  struct Entry {
    ssh_key_struct* key;
    Mark mark;
    bool by_first_name;
  };
  void read(const std::string& file);
  void take(std::string line);

  std::vector<std::string> names_;
  std::vector<Entry> entries_;
};

// As one more line, for the next time.
Result<Unit> remember(const HostKey&, const std::string& name, const std::string& file);

// A name as HashKnownHosts wants it, which is found by who knows it already.
std::string hidden_name(const std::string& name);

}  // namespace corro::launcher
