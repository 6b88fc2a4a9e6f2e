// Matrix products by oneDNN, loaded at run time: a job starts without it and uses its generated
// kernels instead.
//
// Only the C functions dnnl_sgemm and dnnl_gemm_bf16bf16f32 are used, one call per tile of a Gemm's
// fixed grid, with one OpenMP thread, from our own threads. So the bits of a product depend on its
// grid alone, never on the number of threads, leading dimensions or alignment (the library's matmul
// primitive promises none of this).
#pragma once

#include "runtime/host/ThreadPool.h"
#include "runtime/program/Program.h"

#include <string>

namespace titan {

class OneDnn {
public:
  /// Loads libdnnl.so.2. Environment, with what to install, when it is missing or lacks a function.
  static Result<OneDnn> load();

  /// "2.6.3"
  const std::string& version() const { return version_; }
  /// Must be called once per pool before the first product: the library's own threads are switched
  /// off per thread.
  void attach(ThreadPool& pool) const;
  /// Can the library compute this product here? F32 x F32 -> F32, and where it has kernels for this
  /// CPU BF16 x BF16 -> F32.
  bool supports(const Gemm& gemm) const;
  /// Tiles [begin, end) of `gemm`. Operands: A, B, C, then bias when the gemm has one. Returns the
  /// library's status, 0 on success: another one ends it at that tile. Arguments are checked when
  /// the program is loaded; what is left is memory that the library cannot get.
  int run(const Gemm& gemm, char* const* operands, int64_t begin, int64_t end) const;

  /// What the library allocates outside of the arena: a packing buffer in each thread during a
  /// call.
  static constexpr int64_t outsideBytesPerThread = int64_t{1} << 20;

private:
  // As in oneDNN's reference; its `dnnl_dim_t` is int64_t, its `dnnl_status_t` an int that is 0 on
  // success.
  using Sgemm = int (*)(char transposeA, char transposeB, int64_t m, int64_t n, int64_t k,
                        float alpha, const float* a, int64_t lda, const float* b, int64_t ldb,
                        float beta, float* c, int64_t ldc);
  // Exported by the library, declared in no header of it.
  using GemmBf16 = int (*)(char transposeA, char transposeB, int64_t m, int64_t n, int64_t k,
                           float alpha, const uint16_t* a, int64_t lda, const uint16_t* b,
                           int64_t ldb, float beta, float* c, int64_t ldc);
  using SetNumThreads = void (*)(int);

  OneDnn() = default;
  bool triesBf16() const;

  Sgemm sgemm_ = nullptr;
  GemmBf16 gemmBf16_ = nullptr;
  SetNumThreads setNumThreads_ = nullptr; ///< null: the library was built without OpenMP
  bool multipliesBf16_ = false;           ///< on this CPU: it has no kernel below AVX-512
  std::string version_;
};

} // namespace titan
