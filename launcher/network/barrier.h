#pragma once

namespace corro::launcher {

// What stands between the launcher and a host.
enum class BarrierKind {
  name,         // it cannot be resolved
  unreachable,  // no connection, or it broke before the login: worth another try
  host_key_unknown,
  host_key_changed,
  refused,      // the host does not let us in
  unsupported,  // the host accepts only logins that we do not have
  shell,        // no usable answer from what runs at login
  staging,      // this program cannot be brought to the host
  machine,      // it cannot run there
  lost,         // the connection broke after the login
  version,      // another version of this program answered
  silent,       // it was reached, and has not answered in time
};

constexpr BarrierKind last_of(BarrierKind) {
  return BarrierKind::silent;
}

}  // namespace corro::launcher
