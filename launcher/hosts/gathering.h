#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/hosts/hosts.h"
#include "launcher/hosts/item.h"

namespace corro::launcher {

// Finds hosts by their names.  Much of the time that a long host file takes is spent here, so it is
// one flat table instead of a node for each.
class NameIndex {
 public:
  // The place of the host with this name in `hosts`; if there is none, it is now hosts.size().
  std::size_t find_or_add(std::string_view name, const std::vector<HostSpec>& hosts);
  void expect(std::size_t names);

 private:
  static constexpr std::uint32_t kFree = ~0u;
  struct Entry {
    std::uint32_t hash = 0, place = kFree;
  };
  void grow(std::size_t size);

  std::vector<Entry> table_;  // its size is a power of two, and it is half empty at least
  std::size_t taken_ = 0;
};

// Hosts as they are mentioned, each in the place of its first mention.
class Gathering {
 public:
  // How many mentions will come, roughly.
  void expect(std::size_t mentions);

  Parsed<Unit> add(const Item&);
  Parsed<Unit> add(HostSpec, Spot);

  bool has_twice() const { return has_twice_; }  // whether some host was mentioned again
  std::vector<HostSpec>& hosts() { return hosts_; }

  // What to tell about hosts that have no slots, and are left out.
  std::vector<std::string> notes() const;

 private:
  Parsed<Unit> merge(HostSpec& into, const HostSpec&, Spot);

  std::vector<HostSpec> hosts_;
  NameIndex index_;
  std::int64_t slots_ = 0;   // a mention without a number counts as one
  std::int64_t ranged_ = 0;  // names that came from ranges
  bool has_twice_ = false;
  std::vector<std::string> left_out_;
};

}  // namespace corro::launcher
