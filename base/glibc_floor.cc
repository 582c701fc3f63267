// Two functions of newer glibc releases that the static libstdc++ and libgcc of Debian 12 call.
// Defined here, a program or library that links both statically runs with glibc 2.34, which is
// the floor of what else we call.  Linked as an object and not through a library: the linker
// searches libstdc++ last, and would have passed over an archive by then.
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

#if __GLIBC_PREREQ(2, 35)

namespace {

struct Search {
  std::uintptr_t address;
  dl_find_object* found;
};

int look_into(dl_phdr_info* object, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const ElfW(Phdr)* unwind_table = nullptr;
  bool here = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    // An address below the segment wraps around and is larger than any size.
    if (header.p_type == PT_LOAD &&
        search.address - (object->dlpi_addr + header.p_vaddr) < header.p_memsz)
      here = true;
    if (header.p_type == PT_GNU_EH_FRAME) unwind_table = &header;
  }
  if (!here || unwind_table == nullptr) return 0;
  *search.found = {};
  // ELF gives addresses as numbers.
  search.found->dlfo_eh_frame = reinterpret_cast<void*>(
      object->dlpi_addr + unwind_table->p_vaddr);  // NOLINT(performance-no-int-to-ptr)
  return 1;
}

}  // namespace

// glibc 2.35.  libgcc's unwinder asks for dlfo_eh_frame and for nothing else.
extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(
    void* address, dl_find_object* found) noexcept {
  Search search{reinterpret_cast<std::uintptr_t>(address), found};
  return dl_iterate_phdr(look_into, &search) == 1 ? 0 : -1;
}
#endif

#if __GLIBC_PREREQ(2, 36)
// glibc 2.36.  std::random_device asks for it.
extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() noexcept {
  std::uint32_t number;
  while (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
  }
  return number;
}
#endif
