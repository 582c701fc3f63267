#pragma once

#include <catch2/catch.hpp>

#include "base/result.h"

// So that a failing test shows the errors that it compared.
template <>
struct Catch::StringMaker<kolo::Error> {
  static std::string convert(const kolo::Error& error) {
    return std::string(kolo::name_of(error.code())) + ": " + error.text();
  }
};
