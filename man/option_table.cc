// What the documentation is made from:
//
//   option_table man PAGE     the man page, with the option table filled in
//   option_table json         the table itself
#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>

#include "cli/manual.h"

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "json") {
    std::cout << corro::cli::table_json();
    return 0;
  }
  std::ifstream page(argc > 2 ? argv[2] : "");
  if (what != "man" || !page) {
    std::cerr << "usage: option_table man PAGE | json\n";
    return 2;
  }
  std::ostringstream text;
  text << page.rdbuf();
  std::cout << corro::cli::manual_page(text.str());
  return 0;
}
