#pragma once

#include <optional>

#include "launcher/pipe/wire.h"

namespace corro::launcher {

// What goes up is held back until it is a whole frame, so that what the pipe itself has to say
// never stands inside one.
enum class Shape { frames, bytes };

// Between a wire and our stdin and stdout, until the wire's far side has ended (nothing) or broken
// (why), or nobody takes what comes.  `first` has come from the wire already.  When stdin ends the
// far side is told so, and has a while to end, too.  What the far side says besides goes to stderr.
std::optional<Error> copy_both_ways(Wire&, Bytes first, Shape);

// How many of the bytes are whole frames; `malformed` if they cannot be frames.
Result<std::size_t> whole_frames(ByteView);

}  // namespace corro::launcher
