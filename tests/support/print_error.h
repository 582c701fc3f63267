#pragma once

#include <catch2/catch.hpp>

#include "base/result.h"

// So that a failing test shows the errors that it compared.
template <>
struct Catch::StringMaker<corro::Error> {
  static std::string convert(const corro::Error& error) {
    return std::string(corro::name_of(error.code())) + ": " + error.text();
  }
};
