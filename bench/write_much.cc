// write_much BYTES [SEED]: writes so many bytes to stdout, mixed of short and long lines, progress
// that overwrites itself and binary rubbish; the same bytes for the same seed (or RANK).
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

std::string piece_of(const char* seed) {
  std::string piece;
  for (int i = 0; i < 12; ++i) {
    piece += "rank " + std::string(seed) + " " + std::string(80, 'x') + "\n";
    piece += std::to_string(i) + "%\r";
    piece += std::string("\0\1\2\x7f\xfe\xff\n", 7);
    piece += std::string(5000, static_cast<char>('a' + i)) + "\n";
  }
  return piece + std::string(100'000, 'z') + "\n";  // more than a pipe holds
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fputs("usage: write_much BYTES [SEED]\n", stderr), 2;
  const char* rank = std::getenv("RANK");
  const std::string piece = piece_of(argc > 2 ? argv[2] : rank ? rank : "0");
  for (auto left = std::strtoull(argv[1], nullptr, 10); left > 0;) {
    const ssize_t n = write(STDOUT_FILENO, piece.data(), left < piece.size() ? left : piece.size());
    if (n <= 0) return std::perror("write_much"), 1;
    left -= static_cast<std::uint64_t>(n);
  }
  return 0;
}
