#include "runtime/device/cpu/OneDnn.h"

#include <algorithm>
#include <cstdlib>

#include <dlfcn.h>

namespace titan {
namespace {

constexpr const char* libraryName = "libdnnl.so.2";

/// Head of the library's dnnl_version_t.
struct Version {
  int major, minor, patch;
};

template <typename F> bool lookUp(void* library, const char* symbol, F& function) {
  function = reinterpret_cast<F>(dlsym(library, symbol));
  return function != nullptr;
}

/// bias, then relu, over one tile of C while it is in cache.
void finishTile(float* c, int64_t ldc, int64_t rows, int64_t columns, const float* bias,
                bool relu) {
  for (int64_t i = 0; i < rows; ++i, c += ldc) {
    if (bias)
      for (int64_t j = 0; j < columns; ++j)
        c[j] += bias[j];
    // IEEE maximum(x, +0), as the separate op computes it: NaN stays NaN, -0 becomes +0.
    if (relu)
      for (int64_t j = 0; j < columns; ++j)
        c[j] = c[j] <= 0.0f ? 0.0f : c[j];
  }
}

} // namespace

Result<OneDnn> OneDnn::load() {
  // Never unloaded: its OpenMP runtime keeps threads and thread-local data to the end of the
  // process.
  void* library = dlopen(libraryName, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Error::environment("cannot load oneDNN: {}: install libdnnl2, or use --gemm=generated",
                              dlerror());
  OneDnn oneDnn;
  const Version* (*version)() = nullptr;
  for (auto [symbol, found] :
       {std::pair{"dnnl_sgemm", lookUp(library, "dnnl_sgemm", oneDnn.sgemm_)},
        std::pair{"dnnl_gemm_bf16bf16f32",
                  lookUp(library, "dnnl_gemm_bf16bf16f32", oneDnn.gemmBf16_)},
        std::pair{"dnnl_version", lookUp(library, "dnnl_version", version)}})
    if (!found)
      return Error::environment(
          "{} has no function {}: install libdnnl2 of version 2, or use --gemm=generated",
          libraryName, symbol);
  // A library built with another threading model has no such function, and needs none.
  lookUp(library, "omp_set_num_threads", oneDnn.setNumThreads_);
  const Version* v = version();
  oneDnn.version_ = fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
  oneDnn.multipliesBf16_ = oneDnn.triesBf16();
  return oneDnn;
}

void OneDnn::attach(ThreadPool& pool) const {
  if (setNumThreads_)
    pool.onEveryThread([this] { setNumThreads_(1); });
}

/// The library says "unimplemented" (status 3) where it has no kernel for the CPU.
bool OneDnn::triesBf16() const {
  if (setNumThreads_)
    setNumThreads_(1);
  const uint16_t one = toBFloat16(1);
  float product = 0;
  return gemmBf16_('N', 'N', 1, 1, 1, 1.0f, &one, 1, &one, 1, 0.0f, &product, 1) == 0;
}

bool OneDnn::supports(const Gemm& gemm) const {
  if (gemm.c != DType::F32 || gemm.a != gemm.b)
    return false;
  return gemm.a == DType::F32 || (gemm.a == DType::BF16 && multipliesBf16_);
}

int OneDnn::run(const Gemm& g, char* const* operands, int64_t begin, int64_t end) const {
  const int64_t tilesN = g.tilesN(), tilesPerMatrix = g.tilesM() * tilesN;
  const int64_t elementBytes = byteSize(g.a);
  const char transposeA = g.transposeA ? 'T' : 'N', transposeB = g.transposeB ? 'T' : 'N';
  const float beta = g.accumulate ? 1.0f : 0.0f;
  const auto* bias = g.bias ? reinterpret_cast<const float*>(operands[3]) : nullptr;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t matrix = unit / tilesPerMatrix;
    const int64_t row = unit % tilesPerMatrix / tilesN * g.tileM;
    const int64_t column = unit % tilesN * g.tileN;
    const int64_t rows = std::min(g.tileM, g.m - row), columns = std::min(g.tileN, g.n - column);
    const char* a =
        operands[0] + elementBytes * (matrix * g.batchStrideA + (g.transposeA ? row : row * g.lda));
    const char* b = operands[1] + elementBytes * (matrix * g.batchStrideB +
                                                  (g.transposeB ? column * g.ldb : column));
    float* c =
        reinterpret_cast<float*>(operands[2]) + matrix * g.batchStrideC + row * g.ldc + column;
    int status = g.a == DType::F32
                     ? sgemm_(transposeA, transposeB, rows, columns, g.k, 1.0f,
                              reinterpret_cast<const float*>(a), g.lda,
                              reinterpret_cast<const float*>(b), g.ldb, beta, c, g.ldc)
                     : gemmBf16_(transposeA, transposeB, rows, columns, g.k, 1.0f,
                                 reinterpret_cast<const uint16_t*>(a), g.lda,
                                 reinterpret_cast<const uint16_t*>(b), g.ldb, beta, c, g.ldc);
    if (status != 0)
      return status;
    if (bias || g.relu)
      finishTile(c, g.ldc, rows, columns, bias ? bias + column : nullptr, g.relu);
  }
  return 0;
}

} // namespace titan
