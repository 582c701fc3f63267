// allreduce_gloo rank=R size=N store=FOLDER [interface=lo] [algorithm=ring|halving-doubling] …
// Gloo over TCP; the ranks meet through files in FOLDER, which is empty at the start.
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <unistd.h>

#include <filesystem>

#include "allreduce.h"

namespace {

using Context = std::shared_ptr<gloo::rendezvous::Context>;
using Reduction = void (*)(void*, const void*, const void*, std::size_t);

Context connect(int rank, int size, const std::string& folder, const std::string& interface) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = interface;
  attributes.ai_family = AF_INET;
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  std::filesystem::create_directories(folder);
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->setTimeout(std::chrono::seconds(120));
  context->connectFullMesh(store, device);
  return context;
}

// The ring of gloo::allreduce, which is what Horovod calls.
class GlooRing : public corro::bench::Group {
 public:
  explicit GlooRing(const corro::bench::Words& words)
      : rank_(words.number("rank", 0)),
        size_(words.number("size", 1)),
        context_(connect(rank_, size_, words.text("store", "") + "/operations",
                         words.text("interface", "lo"))) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void allreduce(float* data, std::size_t count) override {
    reduce(data, count, &gloo::sum<float>);
  }

  void barrier() override {
    gloo::BarrierOptions options(context_);
    options.setTag(next_tag_++);
    gloo::barrier(options);
  }

  double max(double value) override {
    reduce(&value, 1, &gloo::max<double>);
    return value;
  }

 private:
  template <class T>
  void reduce(T* data, std::size_t count, Reduction reduction) {
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    options.setOutput(data, count);
    options.setReduceFunction(reduction);
    options.setTag(next_tag_++);
    gloo::allreduce(options);
  }

  int rank_;
  int size_;
  Context context_;
  std::uint32_t next_tag_ = 0;  // operations that may overlap must differ in it
};

// An older interface of Gloo: an object bound to a buffer, which needs connections of its own.
class GlooHalvingDoubling final : public GlooRing {
 public:
  explicit GlooHalvingDoubling(const corro::bench::Words& words)
      : GlooRing(words),
        bound_(connect(rank(), size(), words.text("store", "") + "/bound",
                       words.text("interface", "lo"))) {}

  void prepare(float* data, std::size_t count) override {
    using Algorithm = gloo::AllreduceHalvingDoubling<float>;
    algorithm_.reset();
    algorithm_ =
        std::make_unique<Algorithm>(bound_, std::vector<float*>{data}, static_cast<int>(count));
    barrier();
  }

  void allreduce(float*, std::size_t) override { algorithm_->run(); }

  void release(void* data) override {
    algorithm_.reset();
    barrier();
    Group::release(data);
  }

 private:
  Context bound_;
  std::unique_ptr<gloo::Algorithm> algorithm_;
};

template <class Group>
void run(const corro::bench::Words& words) {
  corro::bench::Measurement measurement(words);
  Group group(words);
  measurement.run(group);
  group.barrier();
  std::fflush(stdout);
  _exit(0);  // destructors of Gloo may wait for peers that have ended
}

}  // namespace

int main(int argc, char** argv) {
  const corro::bench::Words words(argc, argv);
  if (words.text("algorithm", "ring") == "ring") run<GlooRing>(words);
  run<GlooHalvingDoubling>(words);
}
