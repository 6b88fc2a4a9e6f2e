// Small models of drawn shapes, as the stage *import* leaves them: few extents divide among ranks.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace titan::shard::testing {

/// Draws that depend on the seed alone, whatever the standard library.
class Draws {
public:
  explicit Draws(uint64_t seed) : engine_(seed) {}
  /// In [low, high].
  int64_t number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int64_t percent) { return number(1, 100) <= percent; }
  template <typename T, size_t n> const T& oneOf(const T (&choices)[n]) {
    return choices[number(0, n - 1)];
  }

private:
  std::mt19937_64 engine_;
};

/// `@model` from `x` [micro, width] to `logits` [micro, classes]: layers of weights of two or three
/// dimensions, with biases, norms, scales and activations or without; a layer may be applied twice,
/// a parameter unused. Names are "layers.<i>.weight" and so on. No recipe.
std::string randomMlp(Draws& draws, int64_t micro);

} // namespace titan::shard::testing
