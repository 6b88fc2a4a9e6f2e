// AMX's product of tiles in plain C++, and what a process needs to run AMX itself.
#pragma once

#include <cstdint>
#include <span>

namespace titan::codegen::testing {

/// The sum after more elements along k, a multiple of 32. After each 32 it is c + (e + o), e and o
/// the chains of multiply-adds over the even and the odd elements, in order from +0; denormal
/// inputs count as zero, denormal results become zero (MatrixUnit.h). Sets MXCSR meanwhile.
float addProducts(float sum, std::span<const uint16_t> a, std::span<const uint16_t> b);

/// addProducts for 16 x 16 sums: what generated code calls as `emulatedMultiplyAdd`.
extern "C" void titan_emulated_tile_multiply_add(float* sums, const uint16_t* a, const uint16_t* b);
/// How often that was called: shows that code for a unit did not stay on vectors.
int64_t emulatedProducts();

/// Lets this process run AMX: empty, or the reason why it cannot.
const char* whyNoTiles();

} // namespace titan::codegen::testing
