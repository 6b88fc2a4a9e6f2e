#include "runtime/program/Random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace titan {

namespace {

// Multipliers and key increments of Philox4x32: the paper's section 4.3.
constexpr uint32_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57;
constexpr uint32_t weyl0 = 0x9E3779B9, weyl1 = 0xBB67AE85;

/// Of a word: its top 24 bits / 2^24.
float uniformOf(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

/// The two normals of a pair of words (Box and Muller), in polar coordinates.
struct NormalPair {
  double radius, angle;

  NormalPair(const PhiloxBlock& block, size_t pair)
      : radius(std::sqrt(-2 * std::log((block[2 * pair] + 1.0) * 0x1p-32))), // of (0, 1]: finite
        angle(2 * std::numbers::pi * (block[2 * pair + 1] * 0x1p-32)) {}

  double first() const { return radius * std::cos(angle); }
  double second() const { return radius * std::sin(angle); }
};

} // namespace

PhiloxBlock philox4x32_7(uint64_t key, uint64_t block, uint64_t step) {
  PhiloxBlock counter = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                         static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)};
  auto key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 7; ++round, key0 += weyl0, key1 += weyl1) {
    const uint64_t product0 = uint64_t{multiplier0} * counter[0];
    const uint64_t product1 = uint64_t{multiplier1} * counter[2];
    counter = {
        static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
        static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
  }
  return counter;
}

uint64_t randomKey(uint64_t seed, uint64_t stream) {
  unsigned char bytes[16];
  for (int i = 0; i < 8; ++i) {
    bytes[i] = static_cast<unsigned char>(seed >> 8 * i);
    bytes[8 + i] = static_cast<unsigned char>(stream >> 8 * i);
  }
  return XXH3_64bits(bytes, sizeof bytes);
}

uint64_t randomStream(std::string_view path, uint64_t ordinal) {
  const std::string id = std::string(path) + "#" + std::to_string(ordinal);
  return XXH3_64bits(id.data(), id.size());
}

uint32_t keepThreshold(double dropProbability) {
  return static_cast<uint32_t>(
      std::llround((1.0 - std::clamp(dropProbability, 0.0, 1.0)) * 65536.0));
}

bool dropoutKeeps(uint64_t key, uint64_t step, uint64_t element, uint32_t threshold) {
  const uint64_t half = element % 8;
  const uint32_t bits = philox4x32_7(key, element / 8, step)[half / 2];
  return (half % 2 ? bits >> 16 : bits & 0xffff) < threshold;
}

float uniformDraw(uint64_t key, uint64_t step, uint64_t element) {
  return uniformOf(philox4x32_7(key, element / 4, step)[element % 4]);
}

double normalNumber(uint64_t key, uint64_t step, uint64_t element) {
  const NormalPair pair(philox4x32_7(key, element / 4, step), element % 4 / 2);
  return element % 2 ? pair.second() : pair.first();
}

float normalDraw(uint64_t key, uint64_t step, uint64_t element) {
  return static_cast<float>(normalNumber(key, step, element));
}

void uniformDraws(uint64_t key, uint64_t step, uint64_t first, std::span<float> values) {
  PhiloxBlock block{};
  for (uint64_t i = 0, element = first; i < values.size(); ++i, ++element) {
    if (i == 0 || element % 4 == 0)
      block = philox4x32_7(key, element / 4, step);
    values[i] = uniformOf(block[element % 4]);
  }
}

void normalDraws(uint64_t key, uint64_t step, uint64_t first, std::span<float> values) {
  const uint64_t end = first + values.size();
  PhiloxBlock block{};
  for (uint64_t element = first; element < end;) {
    if (element == first || element % 4 == 0)
      block = philox4x32_7(key, element / 4, step);
    const NormalPair pair(block, element % 4 / 2);
    if (element % 2 == 0)
      values[element++ - first] = static_cast<float>(pair.first());
    if (element < end)
      values[element++ - first] = static_cast<float>(pair.second());
  }
}

} // namespace titan
