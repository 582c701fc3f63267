#pragma once

namespace kolo {

// Makes this process the parent of whatever its descendants leave behind, so that none escapes
// by setsid or a double fork.
void adopt_orphans();

// Kills and reaps every child until there is none, those included that come to us meanwhile
// because their parent died.  Each is our child until we reap it, so that no other process can
// have its number.
void sweep();

}  // namespace kolo
