#include "runtime/wiring/environment.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "base/status_page.h"
#include "base/text.h"
#include "rendezvous/messages.h"

namespace corro::runtime {

namespace {

constexpr long long kMost = std::numeric_limits<std::int64_t>::max();

// Reads one variable after the other; the first that is missing or malformed is kept, and what
// is read after it means nothing.
class Reader {
 public:
  explicit Reader(const Lookup& lookup) : lookup_(lookup) {}

  bool has(const char* name) const { return lookup_(name) != nullptr; }

  std::string text(const char* name) {
    const char* value = lookup_(name);
    if (!value || !*value) complain(name, "is not set, though others of this job are");
    return value ? value : "";
  }

  long long number(const char* name, long long least, long long most) {
    const std::string value = text(name);
    const auto parsed = parse_int(value);
    if (!parsed || *parsed < least || *parsed > most)
      complain(name,
               fmt::format("is '{}', which is not a number from {} to {}", value, least, most));
    return parsed.value_or(least);
  }

  int whole(const char* name, int least, int most) {
    return static_cast<int>(number(name, least, most));
  }

  template <class T>
  T parsed(const char* name, Result<T> (*parse)(std::string_view)) {
    const auto value = parse(text(name));
    if (!value) complain(name, "cannot be used: " + value.error().text());
    return value ? *value : T{};
  }

  // Zero and nothing mean the default, as Horovod has it.
  void seconds(const char* name, std::chrono::seconds& value) {
    const char* set = lookup_(name);
    if (!set || !*set) return;
    const auto given = number(name, 0, std::numeric_limits<std::int32_t>::max());
    if (given > 0) value = std::chrono::seconds(given);
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  void complain(const char* name, const std::string& what) {
    if (!error_) error_ = Error(Errc::invalid_input, fmt::format("{} {}", name, what));
  }

  const Lookup& lookup_;
  std::optional<Error> error_;
};

Result<std::string> parse_ip(std::string_view text) {
  const auto address = Address::parse(Address{std::string(text), 0}.text());
  if (!address) return Error(Errc::invalid_input, fmt::format("'{}' is not an IP address", text));
  return address->ip;
}

bool launched(const Lookup& lookup) {
  for (const char* name : {"HOROVOD_RANK", "HOROVOD_SIZE", "CORRO_STORE"})
    if (lookup(name)) return true;
  return false;
}

Place read_place(Reader& read) {
  constexpr int kRanks = rendezvous::store::kRankLimit;
  Place place;
  place.size = read.whole("HOROVOD_SIZE", 1, kRanks);
  place.rank = read.whole("HOROVOD_RANK", 0, place.size - 1);
  place.local_size = read.whole("HOROVOD_LOCAL_SIZE", 1, place.size);
  place.local_rank = read.whole("HOROVOD_LOCAL_RANK", 0, place.local_size - 1);
  place.cross_size = read.whole("HOROVOD_CROSS_SIZE", 1, place.size);
  place.cross_rank = read.whole("HOROVOD_CROSS_RANK", 0, place.cross_size - 1);
  place.host = read.text("HOROVOD_HOSTNAME");
  return place;
}

Meeting read_meeting(Reader& read) {
  Meeting meeting;
  meeting.store = read.parsed<Address>("CORRO_STORE", Address::parse);
  meeting.key = read.parsed<Key>("CORRO_JOB_KEY", Key::from_hex);
  meeting.generation = static_cast<std::uint64_t>(read.number("CORRO_GENERATION", 0, kMost));
  meeting.ip = read.parsed<std::string>("CORRO_ADDRESS", parse_ip);
  if (read.has("CORRO_PORT_RANGE"))
    meeting.ports = read.parsed<PortRange>("CORRO_PORT_RANGE", PortRange::parse);
  return meeting;
}

}  // namespace

Result<JobEnvironment> read_environment(const Lookup& lookup) {
  Reader read(lookup);
  JobEnvironment environment;
  if (launched(lookup)) {
    environment.place = read_place(read);
    environment.meeting = read_meeting(read);
  }
  read.seconds("CORRO_TIMEOUT_SECONDS", environment.operation_timeout);
  read.seconds("HOROVOD_START_TIMEOUT", environment.start_timeout);
  if (const char* handle = lookup(kStatusVariable)) environment.status = handle;
  if (const char* given = lookup("CORRO_SHARED_MEMORY"); given && std::string_view(given) == "0")
    environment.machine = fmt::format("rank {}", environment.place.rank);
  if (read.has("CORRO_ALGORITHMS"))
    environment.algorithms = read.parsed<Overrides>("CORRO_ALGORITHMS", Overrides::parse);
  if (read.error()) return *read.error();
  return environment;
}

}  // namespace corro::runtime
