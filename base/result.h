#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace corro {

// What a program may decide by.  Whatever a person should know stands in the text.
enum class Errc {
  invalid_input,  // the user said something that cannot be done
  not_found,
  exists,
  timed_out,
  refused,    // the other side does not know the key, or did not want us
  malformed,  // bytes that are not what the protocol says
  too_large,
  peer_lost,  // a worker or a host is gone
  closed,     // the other side ended in good order
  unsupported,
  io,  // the system said no
};

constexpr Errc last_of(Errc) {
  return Errc::io;
}

std::string_view name_of(Errc);

// A failure: a code for the program and a sentence for the person.  Each layer that it passes
// adds one clause in front, so that it reads from the outside in.
class [[nodiscard]] Error {
 public:
  Error(Errc code, std::string text) : code_(code), text_(std::move(text)) {}

  // "connecting to 10.0.0.7:22: Connection refused", from errno.
  static Error from_errno(std::string_view doing);
  static Error from_errno(std::string_view doing, int number);

  Errc code() const { return code_; }
  const std::string& text() const { return text_; }

  Error during(std::string_view what) && {
    text_.insert(0, std::string(what) + ": ");
    return std::move(*this);
  }

  bool operator==(const Error&) const = default;

 private:
  Errc code_;
  std::string text_;
};

struct Unit {
  bool operator==(const Unit&) const = default;
};

// A value or the reason why there is none.  A layer whose failures say more than an Error does
// (who is to blame, for one) has its own E.
template <class T, class E = Error>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }

  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

  E& error() & { return *std::get_if<1>(&state_); }
  const E& error() const& { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, E> state_;
};

}  // namespace corro
