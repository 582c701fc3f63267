#pragma once

#include <string>
#include <string_view>

#include "launcher/output/stream.h"

namespace kolo {

// Puts a tag in front of each line of one stream of one worker.  A line ends at '\n' or '\r', so
// that progress bars come through as they are drawn.  What it returns is whole lines: two workers'
// lines can then not be torn apart.
//
// Sans-IO.  A line longer than the limit is passed on in pieces, of which only the first has a tag.
class LineTagger {
 public:
  static constexpr std::size_t kLineLimit = 1 << 20;

  explicit LineTagger(std::string tag) : tag_(std::move(tag)) {}

  std::string feed(std::string_view bytes);

  // The last words of a worker often lack a newline.
  std::string finish();

 private:
  void emit(std::string_view piece, std::string& to);

  std::string tag_;
  std::string pending_;
  bool inside_line_ = false;  // its beginning has been passed on already
};

// "[3]<stdout>:", as Horovod has it.
std::string tag_of(int rank, Stream);

}  // namespace kolo
