#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "launcher/output/printer.h"
#include "launcher/output/stream.h"

namespace corro::launcher {

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

  Outlet& outlet(int rank, Stream stream) {
    return stream == Stream::out ? files_[rank].to_out : files_[rank].to_err;
  }

 private:
  struct Pair {
    Fd out, err;
    Outlet to_out, to_err;
  };
  std::vector<Pair> files_;  // by rank
};

}  // namespace corro::launcher
