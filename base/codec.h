#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/frame.h"
#include "base/result.h"

// One encoding for every message of ours.  A message lists its fields once:
//
//   struct Signal { static constexpr std::uint16_t kKind = 3;
//                   std::uint32_t worker; std::int32_t signo;  CORRO_FIELDS(worker, signo) };
//
//   integer, enum, bool   little-endian, in the width of its type
//   string, bytes         length:u32, then the bytes
//   vector                count:u32, then the elements
//   optional              present:u8 (0 or 1), then the value if present
//   message               its fields in order
//
// A decoder takes exactly the bytes that belong to the message: one too few or one too many is
// malformed, and so is a bool that is neither 0 nor 1 or an enum past its last value.
#define CORRO_FIELDS(...)              \
  template <class Visitor>             \
  void fields(Visitor&& visit) {       \
    visit(__VA_ARGS__);                \
  }                                    \
  template <class Visitor>             \
  void fields(Visitor&& visit) const { \
    visit(__VA_ARGS__);                \
  }

namespace corro {

static_assert(std::endian::native == std::endian::little, "the wire is copied as it lies");

template <class T>
T load_little(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void store_little(Bytes& to, T value) {
  const auto raw = std::bit_cast<std::array<std::uint8_t, sizeof(T)>>(value);
  to.insert(to.end(), raw.begin(), raw.end());
}

namespace codec {

template <class T>
concept Message = requires(T& t) {
  t.fields([](auto&...) {});
};
template <class T>
concept Integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T>
concept Enum = std::is_enum_v<T>;

class Writer {
 public:
  explicit Writer(Bytes& to) : to_(to) {}

  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }

 private:
  void put(bool value) { to_.push_back(value ? 1 : 0); }
  template <Integer T>
  void put(T value) {
    store_little(to_, value);
  }
  template <Enum T>
  void put(T value) {
    put(static_cast<std::uint8_t>(value));
  }
  void put_size(std::size_t size) {
    CORRO_ASSERT(size <= std::numeric_limits<std::uint32_t>::max());
    put(static_cast<std::uint32_t>(size));
  }
  void put(const std::string& value) {
    put_size(value.size());
    append(to_, view_of(value));
  }
  void put(const Bytes& value) {
    put_size(value.size());
    append(to_, value);
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put_size(values.size());
    for (const T& value : values) put(value);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <Message T>
  void put(const T& message) {
    message.fields(*this);
  }

  Bytes& to_;
};

class Reader {
 public:
  explicit Reader(ByteView from) : left_(from) {}

  template <class... T>
  void operator()(T&... values) {
    (take(values), ...);
  }

  bool ok() const { return ok_; }
  bool at_end() const { return left_.empty(); }

 private:
  const std::uint8_t* raw(std::size_t n) {
    if (!ok_ || n > left_.size()) {
      ok_ = false;
      return nullptr;
    }
    const auto* at = left_.data();
    left_ = left_.subspan(n);
    return at;
  }

  void take(bool& value) {
    std::uint8_t byte = 0;
    take(byte);
    if (byte > 1) ok_ = false;
    value = byte == 1;
  }
  template <Integer T>
  void take(T& value) {
    if (const auto* at = raw(sizeof(T))) value = load_little<T>(at);
  }
  template <Enum T>
  void take(T& value) {
    std::uint8_t byte = 0;
    take(byte);
    if (byte > static_cast<std::uint8_t>(last_of(T{}))) ok_ = false;
    if (ok_) value = static_cast<T>(byte);
  }
  void take(std::string& value) {
    std::uint32_t size = 0;
    take(size);
    if (const auto* at = raw(size)) value.assign(reinterpret_cast<const char*>(at), size);
  }
  void take(Bytes& value) {
    std::uint32_t size = 0;
    take(size);
    if (const auto* at = raw(size)) value.assign(at, at + size);
  }
  // The count is not believed: room is made as elements arrive, and each takes a byte at least.
  template <class T>
  void take(std::vector<T>& values) {
    std::uint32_t count = 0;
    take(count);
    if (count > left_.size()) ok_ = false;
    values.clear();
    for (std::uint32_t i = 0; ok_ && i < count; ++i) take(values.emplace_back());
  }
  template <class T>
  void take(std::optional<T>& value) {
    bool present = false;
    take(present);
    if (ok_ && present) take(value.emplace());
  }
  template <Message T>
  void take(T& message) {
    message.fields(*this);
  }

  ByteView left_;
  bool ok_ = true;
};

}  // namespace codec

template <class M>
Bytes encode(const M& message) {
  Bytes out;
  message.fields(codec::Writer(out));
  return out;
}

template <class M>
Result<M> decode(ByteView bytes) {
  M message;
  codec::Reader reader(bytes);
  message.fields(reader);
  if (!reader.ok() || !reader.at_end())
    return Error(Errc::malformed, "a message does not have the fields that its kind says");
  return message;
}

// A protocol is a variant of messages, each with its kKind.
template <class... M>
Bytes encode_frame(const std::variant<M...>& message, std::uint64_t seq) {
  Bytes out;
  std::visit([&]<class T>(const T& m) { append_frame(out, {T::kKind, seq, encode(m)}); }, message);
  return out;
}

template <class Variant>
struct FrameDecoder;

template <class... M>
struct FrameDecoder<std::variant<M...>> {
  static Result<std::variant<M...>> decode_frame(const Frame& frame) {
    std::optional<Result<std::variant<M...>>> out;
    if ((try_one<M>(frame, out) || ...)) return std::move(*out);
    return Error(Errc::malformed, "a message of unknown kind " + std::to_string(frame.kind));
  }

 private:
  template <class T>
  static bool try_one(const Frame& frame, std::optional<Result<std::variant<M...>>>& out) {
    if (frame.kind != T::kKind) return false;
    auto message = decode<T>(frame.body);
    if (message)
      out.emplace(std::variant<M...>(std::move(*message)));
    else
      out.emplace(message.error());
    return true;
  }
};

template <class Variant>
Result<Variant> decode_frame(const Frame& frame) {
  return FrameDecoder<Variant>::decode_frame(frame);
}

}  // namespace corro
