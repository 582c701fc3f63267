// allreduce_corro [memory=corro] …: Corro's C interface, to be started by horovodrun.  With
// memory=corro the tensors come from corro_alloc.
#include <dlfcn.h>

#include "allreduce.h"
#include "corro/corro.h"

namespace {

using Allocate = void* (*)(corro_context*, std::size_t);
using Free = void (*)(corro_context*, void*);

constexpr int kNotOffered = 77;  // exit code: this libcorro has no such function

// By name, so that this program also measures a libcorro that does not have it.
template <class Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

class CorroGroup final : public corro::bench::Group {
 public:
  explicit CorroGroup(bool own_memory) {
    if (own_memory) {
      allocate_ = find<Allocate>("corro_alloc");
      free_ = find<Free>("corro_free");
      if (!allocate_ || !free_) {
        std::fprintf(stderr, "libcorro %s has no corro_alloc\n", corro_version());
        std::exit(kNotOffered);
      }
    }
    check(corro_open(nullptr, &context_, &error_));
  }
  ~CorroGroup() override { corro_close(context_); }

  int rank() const override { return corro_rank(context_); }
  int size() const override { return corro_size(context_); }

  void allreduce(float* data, std::size_t count) override {
    check(corro_allreduce(context_, data, count, CORRO_FLOAT32, CORRO_SUM, &error_));
  }

  void barrier() override { check(corro_barrier(context_, &error_)); }

  double max(double value) override {
    check(corro_allreduce(context_, &value, 1, CORRO_FLOAT64, CORRO_MAX, &error_));
    return value;
  }

  void* allocate(std::size_t bytes) override {
    if (!allocate_) return Group::allocate(bytes);
    void* data = allocate_(context_, bytes);
    if (data) return data;
    std::fprintf(stderr, "corro_alloc(%zu) failed\n", bytes);
    std::exit(1);
  }

  void release(void* data) override {
    if (free_)
      free_(context_, data);
    else
      Group::release(data);
  }

 private:
  void check(corro_status status) {
    if (status == CORRO_OK) return;
    std::fprintf(stderr, "%s\n", corro_error_text(error_));
    std::exit(1);
  }

  corro_context* context_ = nullptr;
  corro_error* error_ = nullptr;
  Allocate allocate_ = nullptr;
  Free free_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  const corro::bench::Words words(argc, argv);
  corro::bench::Measurement measurement(words);
  CorroGroup group(words.text("memory", "private") == "corro");
  measurement.run(group);
}
