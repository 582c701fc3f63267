#include "launcher/doctor/diagnose.h"

#include "ward.h"

namespace corro::launcher::doctor {

using namespace std::chrono_literals;

TEST_CASE("who is well hears nothing") {
  CHECK(Ward(3).findings().empty());
  CHECK(exit_code(Ward(3).findings()) == 0);
}

TEST_CASE("each barrier on the way has its class, its exit code and its remedy") {
  using Kind = Barrier::Kind;
  struct Case {
    Barrier barrier;
    int code;
    std::string fix;
  };
  const auto [barrier, code, fix] = GENERATE(values<Case>({
      {{Kind::name, "h2: unknown", "getent hosts h2"},
       110,
       "echo 'ADDRESS h2' | sudo tee -a /etc/hosts"},
      {{Kind::unreachable, "h2: timed out", "ssh -v h2 true"}, 111, "ssh -v h2 true"},
      {{Kind::unreachable, "h2: Connection refused", "ssh -v h2 true"},
       111,
       "sudo systemctl start ssh   # at the console of h2"},
      {{Kind::host_key_unknown, "h2", "ssh-keyscan -p 2222 -H h2 >> /k"},
       112,
       "ssh-keyscan -p 2222 -H h2 >> /k"},
      {{Kind::host_key_unknown, "h2", ""}, 112, "ssh-keyscan -H h2 >> ~/.ssh/known_hosts"},
      {{Kind::host_key_changed, "h2", ""}, 112, "ssh-keygen -R h2"},
      {{Kind::refused, "h2", "ssh-copy-id ada@h2"}, 113, "ssh-copy-id ada@h2"},
      {{Kind::unsupported, "h2", "--rsh-agent ssh"}, 113, "--rsh-agent ssh"},
      {{Kind::shell, "h2", ""}, 114, "ssh h2 true"},
      {{Kind::staging, "h2", ""},
       114,
       "ssh h2 'df -h ~ /tmp; ls -ld ~ ~/.cache; mkdir -p ~/.cache/corro'"},
      {{Kind::machine, "h2", ""}, 114, "ssh h2 'uname -m; ldd --version'"},
      {{Kind::version, "h2", ""}, 114, "ssh h2 'rm -r ~/.cache/corro'"},
      {{Kind::lost, "h2", ""}, 111, "ssh h2 'uptime; dmesg | tail'"},
      {{Kind::silent, "h2", ""}, 111, "ssh h2 'uptime; dmesg | tail'"},
  }));
  Ward ward(3);
  ward.fails(2, barrier);
  const auto found = ward.only();
  CHECK(found.severity == Severity::bad);
  CHECK(exit_code(found.about) == code);
  CHECK(exit_code(ward.findings()) == code);
  CHECK(found.example == barrier.why);
  CHECK(found.fix == fix);
}

TEST_CASE("who goes there by another command than ssh is advised to") {
  Ward ward(3);
  ward.consultation.rsh = "kubectl exec -i {host} --";
  ward.fails(2, {Barrier::Kind::unreachable, "h2", ""});
  CHECK(ward.only().fix == "echo true | kubectl exec -i h2 -- sh");
  ward.consultation.rsh = "rsh {host}";
  CHECK(ward.only().fix == "echo true | rsh h2 sh");
}

TEST_CASE("what many have is said once") {
  Ward ward(4);
  for (const int i : {1, 2, 4})
    ward.fails(i, {Barrier::Kind::refused, "h" + std::to_string(i), "ssh-copy-id someone"});
  check(ward.only(),
        {Severity::bad, Class::login, "it does not let us in",
         "for h in h1 h2 h4; do ssh-copy-id $h; done"},
        {"h1", "h2", "h4"});
}

TEST_CASE("a remedy for hosts goes by ssh, with user and port, and needs none here") {
  Ward ward(3);
  ward.consultation.ssh = "ssh -p 2222";
  ward[1].is_here = true;
  ward[2].user = "ada";
  for (const int i : {1, 2, 3}) {
    ward.seen(i).cwd->exists = ward.seen(i).cwd->can_enter = false;
    ward.seen(i).cwd->path = "/my data";
  }
  CHECK(ward.only().fix ==
        "mkdir -p '/my data'; for h in ada@h2 h3; do ssh -p 2222 $h 'mkdir -p '\\''/my "
        "data'\\'''; done");
}

TEST_CASE("a clock that differs by more than the way there explains") {
  Ward ward(3);
  ward[2].clock = ClockOffset{-2s, 1ms};
  const std::string fix =
      "ssh h2 'sudo chronyc makestep || sudo systemctl restart systemd-timesyncd'";
  check(ward.only(), {Severity::warning, Class::clock, "its clock is 2.0 s behind ours", fix});
  ward[2].clock = ClockOffset{1h, 1ms};
  check(ward.only(), {Severity::bad, Class::clock, "its clock is 3600.0 s ahead of ours", fix});
  CHECK(exit_code(ward.findings()) == 120);
  ward[2].clock = ClockOffset{2s, 2s};
  CHECK(ward.findings().empty());
}

TEST_CASE("a slow way is a warning") {
  Ward ward(2);
  ward[2].round_trip = 300ms;
  check(ward.only(), {Severity::warning, Class::reach, "a message there and back takes 300 ms",
                      "ping -c 10 h2"});
}

TEST_CASE("two names of one machine, and another name of this one") {
  Ward ward(3);
  ward.seen(2).identity = ward.seen(1).identity;
  check(ward.only(),
        {Severity::warning, Class::machine,
         "they are one machine, so its cores, memory and GPUs count more than once",
         "horovodrun -H h1:4 …"},
        {"h1", "h2"});
  CHECK(ward.only().without == Names{"h2"});

  Ward other(2);
  other.seen(2).identity = "boot net:0";
  check(other.only(), {Severity::note, Class::machine, "it is this machine, by another name",
                       "horovodrun -H localhost:2 …   # no ssh needed"});
  other[2].is_here = true;
  CHECK(other.findings().empty());
}

TEST_CASE("another kind of processor") {
  Ward ward(3);
  ward.seen(2).architecture = "aarch64";
  check(ward.only(), {Severity::bad, Class::machine, "it is aarch64, elsewhere it is x86_64",
                      "horovodrun --exclude h2 …   # it needs programs of its own"});
}

TEST_CASE("a firewall between two hosts, of which one has to go") {
  Ward ward(3);
  for (const int from : {1, 2, 3})
    for (const int to : {1, 2, 3})
      if (from != to) ward.route(from, to, !(from == 1 && to == 2));
  check(
      ward.only(),
      {Severity::bad, Class::network, "it does not reach h2 at 10.0.0.2",
       "ssh h2 'sudo nft insert rule inet filter input ip saddr { 10.0.0.1 } tcp dport 20000-20999 "
       "accept'"},
      {"h1"});
  CHECK(exit_code(ward.findings()) == 115);
  CHECK(ward.only().without == Names{"h2"});
  ward.consultation.first_port = 5000;
  ward.consultation.last_port = 5100;
  CHECK(ward.only().fix.find("dport 5000-5100 ") != std::string::npos);
}

TEST_CASE("one whom nobody reaches is the one that has to go") {
  Ward ward(4);
  for (const int from : {1, 2, 3, 4})
    for (const int to : {1, 2, 3, 4})
      if (from != to) ward.route(from, to, to != 2);
  const auto found = ward.only();
  CHECK(found.hosts == Names{"h1", "h3", "h4"});
  CHECK(found.what == "they do not reach h2 at 10.0.0.2");
  CHECK(found.without == Names{"h2"});
}

TEST_CASE("a second address that nobody reaches does no harm, unless there is no common one") {
  Ward ward(3);
  for (const int from : {1, 3}) {
    ward.route(from, 2, true);
    ward.route(from, 2, false, "172.17.0.1");
  }
  CHECK(ward.findings().empty());
  ward.consultation.routes.clear();
  ward.route(1, 2, true);
  ward.route(1, 2, false, "172.17.0.1");
  ward.route(3, 2, false);
  ward.route(3, 2, true, "172.17.0.1");
  check(ward.only(), {Severity::bad, Class::network, "no address of it is good for all others",
                      "ssh h2 'ip -brief address; ip route'"});
}

TEST_CASE("what is bad comes first, and its class gives the exit code") {
  Ward ward(3);
  ward[1].round_trip = 1s;
  ward.seen(2).program = FoundProgram{"", false, "", ""};
  ward.fails(3, {Barrier::Kind::refused, "", ""});
  const auto all = ward.findings();
  REQUIRE(all.size() == 3);
  CHECK(all[0].about == Class::login);
  CHECK(all[1].about == Class::files);
  CHECK(all[2].severity == Severity::warning);
  CHECK(exit_code(all) == 113);
}

TEST_CASE("a job goes on without bad hosts, if enough slots remain") {
  const std::vector<HostSpec> hosts = {{"h1", 2}, {"h2", 2}, {"h3", 2}};
  Ward ward(3);
  ward[1].round_trip = 1s;  // which is not bad enough
  ward.fails(2, {Barrier::Kind::refused, "", ""});
  const auto left = exclude_bad(hosts, ward.findings(), 4);
  REQUIRE(left);
  CHECK(print_hosts(*left, HostFormat::horovod) == "h1:2,h3:2");
  const auto too_few = exclude_bad(hosts, ward.findings(), 5);
  REQUIRE_FALSE(too_few);
  CHECK(too_few.error().text() ==
        "without the hosts that are bad 4 of 6 slots remain, and 5 workers are wanted");
}

}  // namespace corro::launcher::doctor
