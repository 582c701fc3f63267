#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launcher/hosts/fault.h"
#include "launcher/hosts/node_list.h"

namespace corro::launcher {

// One mention of hosts: "user@rack[1-2]:8", "public/10.0.0.1:4".  Borrows from the text.
struct Item {
  Spot spot;
  std::string_view user, name;         // an IPv6 address without its brackets
  std::string_view address;            // numeric, behind the '/'
  int slots = 0;                       // 0: not said
  std::optional<NamePattern> pattern;  // when the name has ranges
};

// How an IPv6 address is written.  Where it may be bare, nothing but the address is.
enum class AddressStyle { in_brackets, bare };

// `text` without blanks around it; `at` is where it stands.  What is wrong comes with a guess at
// what was meant.
Parsed<Item> parse_item(std::string_view text, std::size_t at,
                        AddressStyle = AddressStyle::in_brackets);

// The same without the guess.
Parsed<Item> read_item(std::string_view text, std::size_t at,
                       AddressStyle = AddressStyle::in_brackets);

Parsed<Unit> check_user(std::string_view user, std::size_t at);
inline constexpr int kSwitchedOff = -1;  // "a:0": a host that is not to be used just now

Parsed<int> parse_slots(std::string_view text, std::size_t at);

// Where the item that begins at `from` ends: at one of `stops` that is not in brackets.
std::size_t end_of_item(std::string_view text, std::size_t from, std::string_view stops);

bool is_blank(char);
Spot trimmed(std::string_view text, std::size_t from, std::size_t to);

bool is_ipv4(std::string_view text);
bool is_ipv6(std::string_view text);

// What was probably meant by something that is no item: it, after the usual slips are undone, if
// it is an item then, or several with commas.  Else empty.
std::string repaired(std::string_view item);

// "four" is "4"; others stay what they are.
std::string_view in_digits(std::string_view number);

}  // namespace corro::launcher
