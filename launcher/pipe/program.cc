#include "launcher/pipe/program.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "base/codec.h"
#include "base/crypto.h"
#include "base/fd.h"

namespace corro::launcher {

namespace {

constexpr std::size_t kHeadBytes = 64 << 10;  // linkers put notes first

template <class T>
std::optional<T> load_at(ByteView from, std::size_t at) {
  if (at > from.size() || from.size() - at < sizeof(T)) return std::nullopt;
  return load_little<T>(from.data() + at);
}

std::size_t aligned(std::size_t size) {
  return (size + 3) / 4 * 4;
}

std::string build_id_in(ByteView notes) {
  for (std::size_t at = 0;;) {
    const auto note = load_at<Elf64_Nhdr>(notes, at);
    if (!note) return "";
    const auto from = at + sizeof(Elf64_Nhdr) + aligned(note->n_namesz);
    if (from > notes.size() || note->n_descsz > notes.size() - from) return "";
    if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof ELF_NOTE_GNU)
      return hex(notes.subspan(from, note->n_descsz));
    at = from + aligned(note->n_descsz);
  }
}

Result<Bytes> read_front(int fd, std::size_t most) {
  Bytes out(most);
  std::size_t got = 0;
  while (got < most) {
    const auto moved = read_some(fd, MutByteView(out).subspan(got));
    if (!moved) return moved.error();
    if (moved->bytes == 0) break;
    got += moved->bytes;
  }
  out.resize(got);
  return out;
}

Result<Fd> open_program(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return Error::from_errno("opening " + path);
  return fd;
}

std::string own_machine() {
  utsname names{};
  ::uname(&names);
  return names.machine;
}

}  // namespace

std::string build_id(ByteView head) {
  const auto elf = load_at<Elf64_Ehdr>(head, 0);
  if (!elf || text_of(head.first(SELFMAG)) != ELFMAG || elf->e_ident[EI_CLASS] != ELFCLASS64)
    return "";
  for (std::size_t i = 0; i < elf->e_phnum; ++i) {
    const auto part = load_at<Elf64_Phdr>(head, elf->e_phoff + i * sizeof(Elf64_Phdr));
    if (!part) return "";
    if (part->p_type != PT_NOTE || part->p_offset > head.size() ||
        part->p_filesz > head.size() - part->p_offset)
      continue;
    const auto id = build_id_in(head.subspan(part->p_offset, part->p_filesz));
    if (!id.empty()) return id;
  }
  return "";
}

Result<Program> find_program_file(const std::string& path) {
  std::error_code ignored;
  Program program;
  program.path =
      path.empty() ? std::filesystem::read_symlink("/proc/self/exe", ignored).string() : path;
  program.file = path.empty() ? "/proc/self/exe" : path;
  auto fd = open_program(program.file);
  struct stat info;
  if (!fd) return fd.error();
  if (::fstat(fd->get(), &info) != 0) return Error::from_errno("looking at " + program.path);
  program.size = static_cast<std::uint64_t>(info.st_size);
  program.modified = info.st_mtim.tv_sec;
  program.machine = own_machine();
  const auto head = read_front(fd->get(), kHeadBytes);
  if (!head) return head.error();
  program.id = build_id(*head);
  if (!program.id.empty()) return program;
  const auto all = read_program(program);
  if (!all) return all.error();
  program.id = hex(sha256(*all));
  return program;
}

Result<Bytes> read_program(const Program& program) {
  const auto fd = open_program(program.file);
  if (!fd) return fd.error();
  auto bytes = read_front(fd->get(), program.size);
  if (bytes && bytes->size() != program.size)
    return Error(Errc::io, program.path + " is being changed");
  return bytes;
}

}  // namespace corro::launcher
