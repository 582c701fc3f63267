# shellcheck shell=bash
# What ./quickstart and ./runtests have in common: steps that show how far they are, the packages
# and the build.  To be sourced, with $top set to the project's folder.

total_steps=1
current_step=0
with_tests=ON  # OFF: the packages of the group `build` are enough

step() { # TEXT…
  current_step=$((current_step + 1))
  printf '[%d/%d] %s\n' "$current_step" "$total_steps" "$*"
}

give_up() { # TEXT…
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

packages_for() { # GROUP…
  local group
  for group in "$@"; do
    sed -n "s/^$group //p" "$top/packaging/packages"
  done
}

missing_of() { # PACKAGE…
  local package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done
}

# Installs what is missing, and nothing if nothing is.
install_packages() { # GROUP…
  command -v dpkg-query >/dev/null || give_up "this is not Debian; needed: $(packages_for "$@" | xargs)"
  local wanted missing sudo=()
  mapfile -t wanted < <(packages_for "$@")
  mapfile -t missing < <(missing_of "${wanted[@]}")
  if [ "${#missing[@]}" -eq 0 ]; then
    echo "      all ${#wanted[@]} packages are here"
    return
  fi
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || give_up "missing packages: ${missing[*]}; run as root, or install sudo"
    sudo=(sudo)
  fi
  echo "      installing ${#missing[@]} of ${#wanted[@]}: ${missing[*]}"
  local log
  log=$(mktemp)
  if ! { "${sudo[@]}" apt-get update -qq &&
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    give_up "could not install: ${missing[*]} (all of it: $log)"
  fi
  rm -f "$log"
}

build() { # PRESET TARGET…
  local preset=$1
  shift
  local log=$top/build/$preset.log
  mkdir -p "$top/build"
  (cd "$top" && cmake --preset "$preset" -DCORRO_TESTS="$with_tests") >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; give_up "cmake --preset $preset failed (all of it: $log)"; }
  NINJA_STATUS='      %f of %t, %e s: ' ninja -C "$top/build/$preset" "$@" ||
    give_up "the build of preset $preset failed"
}
