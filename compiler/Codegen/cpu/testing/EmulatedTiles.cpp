#include "compiler/Codegen/cpu/testing/EmulatedTiles.h"

#include "runtime/program/DType.h"

#include "llvm/TargetParser/Host.h"

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace titan::codegen::testing {
namespace {

std::atomic<int64_t> products = 0;

/// Denormal numbers are zero, as operands and as results.
class FlushDenormals {
public:
  FlushDenormals() : before(_mm_getcsr()) { _mm_setcsr(before | flushResults | zeroOperands); }
  ~FlushDenormals() { _mm_setcsr(before); }

private:
  static constexpr unsigned flushResults = 0x8000, zeroOperands = 0x0040;
  unsigned before;
};

/// c + (e + o); `right` has pairs `stride` apart. Multiply-adds are instructions where there are
/// some, and calls elsewhere.
__attribute__((target_clones("fma", "default"))) float dot(float sum, const float* left,
                                                           const float* right, int64_t stride) {
  float even = 0, odd = 0;
  for (int64_t k = 0; k < 32; k += 2) {
    even = std::fma(left[k], right[k / 2 * stride], even);
    odd = std::fma(left[k + 1], right[k / 2 * stride + 1], odd);
  }
  // Before MXCSR is set back.
  volatile float result = sum + (even + odd);
  return result;
}

void widen(std::span<const uint16_t> bits, float* values) {
  for (uint16_t element : bits)
    *values++ = fromBFloat16(element);
}

} // namespace

float addProducts(float sum, std::span<const uint16_t> a, std::span<const uint16_t> b) {
  constexpr size_t step = 32;
  float left[step], right[step];
  FlushDenormals flush;
  for (size_t first = 0; first < a.size(); first += step) {
    widen(a.subspan(first, step), left);
    widen(b.subspan(first, step), right);
    sum = dot(sum, left, right, 2);
  }
  return sum;
}

int64_t emulatedProducts() { return products; }

void titan_emulated_tile_multiply_add(float* sums, const uint16_t* a, const uint16_t* b) {
  ++products;
  constexpr size_t elements = 16 * 32;
  float left[elements], right[elements];
  widen({a, elements}, left);
  widen({b, elements}, right);
  FlushDenormals flush;
  for (int64_t i = 0; i < 16; ++i)
    for (int64_t j = 0; j < 16; ++j)
      sums[16 * i + j] = dot(sums[16 * i + j], left + 32 * i, right + 2 * j, 32);
}

const char* whyNoTiles() {
  auto features = llvm::sys::getHostCPUFeatures();
  if (!features.lookup("amx-bf16"))
    return "this CPU has no AMX";
  constexpr int requestPermission = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0 ? nullptr : std::strerror(errno);
}

} // namespace titan::codegen::testing
