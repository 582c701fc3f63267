#include "launcher/machine/gpus.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "launcher/machine/errand.h"
#include "launcher/machine/nvml_reader.h"

namespace corro::launcher {

namespace {

// What the child tells.
struct Answer {
  std::optional<std::string> error;
  std::vector<Gpu> gpus;
  CORRO_FIELDS(error, gpus)
};

Bytes answer(const GpuSource& source) {
  Answer answer;
  if (auto gpus = read_gpus_through_nvml(source.library, source.root))
    answer.gpus = std::move(*gpus);
  else
    answer.error = gpus.error().text();
  return encode(answer);
}

Result<std::vector<Gpu>> ask(const GpuSource& source) {
  const auto deadline = Deadline::in(source.patience);
  auto errand = Errand::send([&] { return answer(source); });
  if (!errand) return errand.error();
  const auto bytes = errand->wait(deadline);
  if (!bytes) return bytes.error();

  auto answer = decode<Answer>(*bytes);
  if (!answer)
    return Error(Errc::io, fmt::format("the process that called {} {}", source.library,
                                       errand->end() ? errand->end()->text() : "said nothing"));
  if (answer->error) return Error(Errc::io, *answer->error);
  return std::move(answer->gpus);
}

// Only to see whether it is there, which it is not on most machines: a child costs more.
bool has_library(const std::string& name) {
  void* library = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library) ::dlclose(library);
  return library;
}

}  // namespace

Result<std::vector<Gpu>> find_gpus(const GpuSource& source) {
  if (!has_library(source.library)) return std::vector<Gpu>();
  auto gpus = ask(source);
  if (!gpus) return std::move(gpus.error()).during("asking the NVIDIA driver");
  return gpus;
}

}  // namespace corro::launcher
