#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "launcher/output/stream.h"

namespace kolo {

// "rank.07": as many digits as the greatest rank has, so that they sort.
std::string folder_of(int rank, int size);

// The files that keep what workers write, as Horovod lays them out:
//
//   directory/rank.0/stdout
//   directory/rank.0/stderr
//   directory/rank.1/…
class OutputFiles {
 public:
  // Makes what is missing, and empties what is there.
  static Result<OutputFiles> open(const std::string& directory, int size);

  int fd(int rank, Stream stream) const {
    return (stream == Stream::out ? files_[rank].out : files_[rank].err).get();
  }

 private:
  struct Pair {
    Fd out, err;
  };
  std::vector<Pair> files_;  // by rank
};

}  // namespace kolo
