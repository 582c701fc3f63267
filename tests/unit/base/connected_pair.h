#pragma once

#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "base/fd.h"

namespace corro {

// Two ends of one stream, non-blocking.
struct Pair {
  Fd a, b;
};

inline Pair connected_pair() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

}  // namespace corro
