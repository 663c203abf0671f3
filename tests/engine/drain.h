#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "engine/engine.h"

namespace hearth::engine {

/// All tokens that a stream still has.
inline std::vector<TokenId> drain(TokenStream& stream) {
  std::vector<TokenId> tokens;
  while (true) {
    const auto token = stream.next();
    EXPECT_TRUE(token.has_value()) << token.error().message;
    if (!token || !*token) {
      return tokens;
    }
    tokens.push_back(**token);
  }
}

/// All tokens of a request.
inline std::vector<TokenId> answer(Engine& engine, const Request& request) {
  auto stream = engine.submit(request);
  EXPECT_TRUE(stream.has_value()) << stream.error().message;
  return drain(*stream);
}

}  // namespace hearth::engine
