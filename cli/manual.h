#pragma once

#include <string>
#include <string_view>

namespace corro::cli {

// The man page: a page of mdoc in which the lines @OPTIONS@ and @KEYS@ stand for what the option
// table says of options and of the configuration file.  Examples come out as they can be copied.
std::string manual_page(std::string_view page);

// The table as JSON, for tests that hold other things against it.
std::string table_json();

}  // namespace corro::cli
