#include "cli/doctor.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "launcher/doctor/diagnose.h"

namespace corro::cli {

namespace {

using namespace std::chrono_literals;
using launcher::doctor::HostReport;

// h1 is well; h2 and h3 do not let us in.
Checkup some_checkup() {
  Checkup out;
  HostReport well{.host = "h1", .user = {}, .workers = 2};
  well.arrival =
      launcher::doctor::Arrival{.address = "10.0.0.1", .connect = 1ms, .login = 20ms, .start = 3ms};
  well.round_trip = 1500us;
  well.clock = launcher::doctor::ClockOffset{40ms, 1ms};
  well.seen.emplace();
  well.seen->hostname = "h1";
  well.seen->cores = 8;
  well.seen->memory_bytes = std::uint64_t{64} << 30;
  well.seen->available_bytes = std::uint64_t{60} << 30;
  well.seen->python = launcher::Python{"/usr/bin/python3", "3.11.2", {{"torch", "2.13.0", "/lib"}}};
  out.consultation.hosts.push_back(well);
  for (const auto* name : {"h2", "h3"}) {
    HostReport shut{.host = name, .user = {}, .workers = 2};
    shut.barrier = launcher::doctor::Barrier{launcher::doctor::Barrier::Kind::refused,
                                             "it takes publickey", ""};
    out.consultation.hosts.push_back(shut);
  }
  out.consultation.routes = {{"h1", "the launcher", "10.0.0.9", true, ""}};
  out.findings = launcher::doctor::diagnose(out.consultation);
  out.remaining = {{"h1", 2}};
  return out;
}

}  // namespace

TEST_CASE("the doctor shows a row for each host, and what mends what it found") {
  CHECK(doctor_text(some_checkup(), false) ==
        "  host  reached  answers  clock   cores  memory    GPUs  Python  torch   verdict\n"
        "  h1    24 ms    1.5 ms   +40 ms  8      64.0 GiB  -     3.11.2  2.13.0  ok\n"
        "  h2    no       -        -       -      -         -     -       -       bad\n"
        "  h3    no       -        -       -      -         -     -       -       bad\n"
        "\n"
        "bad: h[2-3]: it does not let us in [login]\n"
        "  for example: it takes publickey\n"
        "  fix: for h in h2 h3; do ssh-copy-id $h; done\n"
        "\n"
        "1 bad, 0 warnings.\n"
        "Without the bad ones: -H h1:2\n");
}

TEST_CASE("who is well is told so") {
  Checkup checkup = some_checkup();
  checkup.findings.clear();
  CHECK(doctor_text(checkup, false).ends_with("\n\nNothing stands in the way of a job.\n"));
}

TEST_CASE("colours are for terminals") {
  CHECK(doctor_text(some_checkup(), false).find('\x1b') == std::string::npos);
  CHECK(doctor_text(some_checkup(), true).find("\x1b[31mbad\x1b[0m: h[2-3]") != std::string::npos);
}

TEST_CASE("programs are told all of it") {
  const auto json = nlohmann::json::parse(doctor_json(some_checkup()));
  CHECK(json["exit_code"] == 113);
  CHECK(json["remaining"] == "h1:2");
  CHECK(json["hosts"].size() == 3);
  CHECK(json["hosts"][0]["verdict"] == "ok");
  CHECK(json["hosts"][0]["seen"]["python"]["packages"][0]["version"] == "2.13.0");
  CHECK(json["hosts"][0]["seen"]["limits"]["nofile"]["soft"] == "unlimited");
  CHECK(json["hosts"][0]["clock_ahead_ms"] == 40.0);
  CHECK(json["hosts"][1]["seen"].is_null());
  CHECK(json["routes"][0]["open"] == true);
  CHECK(json["findings"][0]["class"] == "login");
  CHECK(json["findings"][0]["hosts"] == nlohmann::json({"h2", "h3"}));
  CHECK(json["findings"][0]["fix"] == "for h in h2 h3; do ssh-copy-id $h; done");
}

TEST_CASE("how far the doctor is") {
  CHECK(progress_text({4, 3, 2}) == "2 of 4 hosts looked at, 3 reached");
}

}  // namespace corro::cli
