#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/assert.h"
#include "base/loop.h"
#include "rendezvous/store_server.h"
#include "runtime/backend/native/job.h"

namespace corro::runtime {

// A job inside one process: the real store on a loop with a thread of its own, and a thread for
// each rank.  Rank r is on host "h<r>".
class LocalJob {
 public:
  explicit LocalJob(int size, std::chrono::seconds start_timeout = std::chrono::seconds(10))
      : size_(size), start_timeout_(start_timeout) {
    auto server = rendezvous::StoreServer::start(loop_, {"127.0.0.1", 0}, key_);
    CORRO_ASSERT(bool(server));
    server_ = std::move(*server);
    address_ = server_->address();
    thread_ = std::thread([this] { loop_.run(); });
  }

  ~LocalJob() {
    loop_.stop();
    thread_.join();
  }

  JobEnvironment environment(int rank, std::uint64_t generation = 0) const {
    JobEnvironment environment;
    environment.place = {.rank = rank, .size = size_, .host = "h" + std::to_string(rank)};
    environment.meeting = Meeting{address_, key_, generation, "127.0.0.1"};
    environment.start_timeout = start_timeout_;
    environment.machine = machine_(rank);
    return environment;
  }

  // Which ranks may share memory; at first none.
  void machines(std::function<std::string(int rank)> machine) { machine_ = std::move(machine); }

  const Key& key() const { return key_; }
  const Address& store() const { return address_; }

  void announce(int rank, const std::string& cause, rendezvous::Departure::Manner manner) {
    on_loop([=, this] { server_->announce({0, rank, "h" + std::to_string(rank), cause, manner}); });
  }

  void end_store() {
    on_loop([this] { server_.reset(); });
  }

  // Calls body(rank) on a thread for each rank and gives what each returned.
  template <class Body>
  auto each_rank(Body body) {
    using Value = decltype(body(0));
    std::vector<std::future<Value>> running;
    for (int rank = 0; rank < size_; ++rank)
      running.push_back(std::async(std::launch::async, body, rank));
    std::vector<Value> values;
    for (auto& one : running) values.push_back(one.get());
    return values;
  }

 private:
  void on_loop(std::function<void()> fn) {
    std::promise<void> done;
    loop_.post([&] {
      fn();
      done.set_value();
    });
    done.get_future().wait();
  }

  int size_;
  std::chrono::seconds start_timeout_;
  std::function<std::string(int)> machine_ = [](int rank) { return "m" + std::to_string(rank); };
  Key key_ = Key::random();
  Loop loop_;
  std::unique_ptr<rendezvous::StoreServer> server_;
  Address address_;
  std::thread thread_;
};

}  // namespace corro::runtime
