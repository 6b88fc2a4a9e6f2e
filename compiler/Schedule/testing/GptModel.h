// A decoder-only transformer as the stage *import* leaves it, of any size: what tests of order,
// memory and fusion run on.
#pragma once

#include <cstdint>
#include <string>

namespace titan::schedule::testing {

struct GptShape {
  int64_t layers = 2, batch = 2, positions = 8, width = 16, heads = 2, vocabulary = 32;
  bool isTied = true;         ///< the head is the token table
  bool isDecomposed = false;  ///< attention as products and a softmax
  double dropout = 0;         ///< of embeddings, attention and both residual branches
  int64_t microbatches = 1;   ///< a step's
  std::string memory = "";    ///< entries of the recipe's table [memory]: `limit = 1000 : i64`
  std::string mesh = "";      ///< entries of [mesh]
  std::string optimizer = ""; ///< entries of [optimizer] besides the kind, adamw
};

/// GPT-2's structure (pre-norm blocks, learned positions, GELU, biases, final norm) under its
/// names, with random initial values.
std::string gptModel(const GptShape& shape);

} // namespace titan::schedule::testing
