// One product of the table as cuBLASLt has it. Row-major C is the library's column-major Cᵀ, so its
// A is our B and the other way round.
#pragma once

#include "runtime/device/cuda/LtLibrary.h"
#include "runtime/program/Program.h"

#include <optional>
#include <span>
#include <vector>

namespace titan::cuda {

struct LtAlgorithm {
  cublasLtMatmulAlgo_t bytes = {};
  int64_t workspace = 0; ///< that it needs, bytes
};

/// 128 hexadecimal digits, and back; nothing for another text.
std::string hexOf(const cublasLtMatmulAlgo_t& algorithm);
std::optional<cublasLtMatmulAlgo_t> algorithmOf(std::string_view hex);

/// Of one command.
struct ProductAddresses {
  CUdeviceptr a = 0, b = 0, c = 0;
  CUdeviceptr bias = 0, workspace = 0; ///< 0: there is none

  /// Of the operands of a library command: A, B, C, then the bias, then the workspace.
  static ProductAddresses of(const LibraryCall& call, std::span<const int64_t> operands);
};

/// What divides the addresses of a product's operands, in bytes: at most 256.
struct ProductAlignments {
  uint32_t a = 256, b = 256, c = 256, bias = 256;

  /// Over all commands that run Program::libraryCalls[call].
  static ProductAlignments of(const Program& program, uint32_t call);
};

/// How operands of f32 are read: whole, or as tf32, with 11 of their 24 bits.
enum class F32Products : uint8_t { Whole, MayUseTf32 };

/// What decides which algorithms there are, as text.
std::string keyOf(const LibraryCall& call, const ProductAlignments& alignments, F32Products f32);

class LtProduct {
public:
  /// suitsCardLibrary(call.gemm) holds. `library` outlives the object. Environment: the library
  /// refuses it.
  static Result<LtProduct> create(const LtLibrary& library, cublasLtHandle_t handle,
                                  const LibraryCall& call, const ProductAlignments& alignments,
                                  F32Products f32 = F32Products::Whole);

  /// At most `most` algorithms of at most the call's workspace, in the order in which the library
  /// thinks that they are fast.
  std::vector<LtAlgorithm> algorithms(int most) const;
  /// Nothing where the library cannot use the bytes for this product.
  std::optional<LtAlgorithm> check(const cublasLtMatmulAlgo_t& bytes) const;
  /// Puts the product into the stream.
  cublasStatus_t queue(const LtAlgorithm& algorithm, const ProductAddresses& place,
                       CUstream stream) const;

private:
  Status setUp(const LibraryCall& call, const ProductAlignments& alignments, F32Products f32);
  Result<OwnedLtLayout> layout(DType dtype, int64_t rows, int64_t columns, int64_t leading,
                               int64_t batch, int64_t stride) const;
  /// The bias is an attribute of the descriptor.
  cublasStatus_t setBias(CUdeviceptr address) const;
  /// An address that has the alignment of all and no more: the library asks what divides it.
  cublasStatus_t setAnyBias() const { return setBias(biasAlignment_); }

  const LtLibrary* library_ = nullptr;
  cublasLtHandle_t handle_ = nullptr;
  int64_t workspace_ = 0;
  bool accumulate_ = false, bias_ = false;
  uint32_t biasAlignment_ = 0;
  OwnedLtDesc desc_;
  OwnedLtLayout a_, b_, c_; ///< by our names
  OwnedLtPreference preference_;
};

} // namespace titan::cuda
