#include "runtime/device/cuda/LtProduct.h"

#include <algorithm>

namespace titan::cuda {
namespace {

constexpr int64_t mostAlignment = 256;

cudaDataType_t typeOf(DType dtype) { return dtype == DType::BF16 ? CUDA_R_16BF : CUDA_R_32F; }

bool mayUseTf32(const Gemm& gemm, F32Products f32) {
  return f32 == F32Products::MayUseTf32 && gemm.a == DType::F32;
}

const void* pointer(CUdeviceptr address) { return reinterpret_cast<const void*>(address); }

} // namespace

std::string hexOf(const cublasLtMatmulAlgo_t& algorithm) {
  std::string hex;
  for (uint64_t word : algorithm.data)
    hex += fmt::format("{:016x}", word);
  return hex;
}

std::optional<cublasLtMatmulAlgo_t> algorithmOf(std::string_view hex) {
  constexpr std::string_view digits = "0123456789abcdef";
  constexpr size_t wordDigits = 16;
  cublasLtMatmulAlgo_t algorithm = {};
  if (hex.size() != std::size(algorithm.data) * wordDigits)
    return std::nullopt;
  for (size_t i = 0; i < hex.size(); ++i) {
    const size_t digit = digits.find(hex[i]);
    if (digit == digits.npos)
      return std::nullopt;
    uint64_t& word = algorithm.data[i / wordDigits];
    word = word << 4 | digit;
  }
  return algorithm;
}

ProductAddresses ProductAddresses::of(const LibraryCall& call, std::span<const int64_t> operands) {
  const auto at = [&](size_t i) { return static_cast<CUdeviceptr>(operands[i]); };
  ProductAddresses place;
  place.a = at(0), place.b = at(1), place.c = at(2);
  if (call.gemm.bias)
    place.bias = at(3);
  if (call.workspace > 0)
    place.workspace = at(operands.size() - 1);
  return place;
}

ProductAlignments ProductAlignments::of(const Program& program, uint32_t call) {
  int64_t bits[4] = {mostAlignment, mostAlignment, mostAlignment, mostAlignment};
  const size_t count = program.libraryCalls[call].gemm.bias ? 4 : 3;
  for (const Function& function : program.functions)
    for (const Command& command : function.commands) {
      if (command.kind != CommandKind::Library || command.target != call)
        continue;
      for (size_t i = 0; i < count; ++i) {
        const Affine& address = command.operands[i].address;
        bits[i] |= address.base;
        for (const Affine::Term& term : address.terms)
          bits[i] |= term.stride;
      }
    }
  const auto lowest = [](int64_t value) { return static_cast<uint32_t>(value & -value); };
  return {lowest(bits[0]), lowest(bits[1]), lowest(bits[2]), lowest(bits[3])};
}

std::string keyOf(const LibraryCall& call, const ProductAlignments& alignments, F32Products f32) {
  const Gemm& g = call.gemm;
  return fmt::format(
      "{} x [{}, {}, {}] {}{} {} {} {}{}{}{}, leading {} {} {}, strides {} {} {}, aligned to {} {} "
      "{} {}, {} bytes of workspace",
      g.batch, g.m, g.n, g.k, g.transposeA ? 'T' : 'N', g.transposeB ? 'T' : 'N', name(g.a),
      name(g.b), name(g.c), mayUseTf32(g, f32) ? " tf32" : "", g.accumulate ? " accumulate" : "",
      g.bias ? " bias" : "", g.lda, g.ldb, g.ldc, g.batchStrideA, g.batchStrideB, g.batchStrideC,
      alignments.a, alignments.b, alignments.c, alignments.bias, call.workspace);
}

Result<LtProduct> LtProduct::create(const LtLibrary& library, cublasLtHandle_t handle,
                                    const LibraryCall& call, const ProductAlignments& alignments,
                                    F32Products f32) {
  LtProduct product;
  product.library_ = &library;
  product.handle_ = handle;
  TITAN_TRY(product.setUp(call, alignments, f32));
  return product;
}

Status LtProduct::setUp(const LibraryCall& call, const ProductAlignments& alignments,
                        F32Products f32) {
  const LtLibrary& lt = *library_;
  const Gemm& g = call.gemm;
  workspace_ = call.workspace;
  accumulate_ = g.accumulate;
  bias_ = g.bias;
  biasAlignment_ = alignments.bias;
  cublasLtMatmulDesc_t desc = nullptr;
  const cublasComputeType_t compute =
      mayUseTf32(g, f32) ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  TITAN_TRY(
      lt.need(lt.cublasLtMatmulDescCreate(&desc, compute, CUDA_R_32F), "cublasLtMatmulDescCreate"));
  desc_ = OwnedLtDesc(lt, desc);
  const auto describe = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
    return lt.need(lt.cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value),
                   "cublasLtMatmulDescSetAttribute");
  };
  const auto operation = [](bool transposed) {
    return static_cast<int32_t>(transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  };
  TITAN_TRY(describe(CUBLASLT_MATMUL_DESC_TRANSA, operation(g.transposeB)));
  TITAN_TRY(describe(CUBLASLT_MATMUL_DESC_TRANSB, operation(g.transposeA)));
  TITAN_TRY(describe(CUBLASLT_MATMUL_DESC_EPILOGUE,
                     uint32_t{g.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT}));

  a_ = TITAN_TRY(layout(g.a, g.transposeA ? g.m : g.k, g.transposeA ? g.k : g.m, g.lda, g.batch,
                        g.batchStrideA));
  b_ = TITAN_TRY(layout(g.b, g.transposeB ? g.k : g.n, g.transposeB ? g.n : g.k, g.ldb, g.batch,
                        g.batchStrideB));
  c_ = TITAN_TRY(layout(g.c, g.n, g.m, g.ldc, g.batch, g.batchStrideC));

  cublasLtMatmulPreference_t preference = nullptr;
  TITAN_TRY(
      lt.need(lt.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate"));
  preference_ = OwnedLtPreference(lt, preference);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    return lt.need(
        lt.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
  };
  TITAN_TRY(
      prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(call.workspace)));
  TITAN_TRY(
      prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
             uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}));
  TITAN_TRY(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignments.b));
  TITAN_TRY(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignments.a));
  TITAN_TRY(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignments.c));
  return prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignments.c);
}

Result<OwnedLtLayout> LtProduct::layout(DType dtype, int64_t rows, int64_t columns, int64_t leading,
                                        int64_t batch, int64_t stride) const {
  const LtLibrary& lt = *library_;
  cublasLtMatrixLayout_t made = nullptr;
  TITAN_TRY(lt.need(lt.cublasLtMatrixLayoutCreate(&made, typeOf(dtype), static_cast<uint64_t>(rows),
                                                  static_cast<uint64_t>(columns), leading),
                    "cublasLtMatrixLayoutCreate"));
  OwnedLtLayout owned(lt, made);
  if (batch == 1)
    return owned;
  const auto count = static_cast<int32_t>(batch);
  TITAN_TRY(lt.need(lt.cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                        &count, sizeof count),
                    "cublasLtMatrixLayoutSetAttribute"));
  TITAN_TRY(lt.need(lt.cublasLtMatrixLayoutSetAttribute(
                        made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
                    "cublasLtMatrixLayoutSetAttribute"));
  return owned;
}

cublasStatus_t LtProduct::setBias(CUdeviceptr address) const {
  if (!bias_)
    return CUBLAS_STATUS_SUCCESS;
  const void* bias = pointer(address);
  return library_->cublasLtMatmulDescSetAttribute(desc_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                  &bias, sizeof bias);
}

std::vector<LtAlgorithm> LtProduct::algorithms(int most) const {
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(most));
  int count = 0;
  // No algorithm is an answer, as NOT_SUPPORTED.
  if (setAnyBias() != CUBLAS_STATUS_SUCCESS ||
      library_->cublasLtMatmulAlgoGetHeuristic(handle_, desc_.get(), b_.get(), a_.get(), c_.get(),
                                               c_.get(), preference_.get(), most, results.data(),
                                               &count) != CUBLAS_STATUS_SUCCESS)
    return {};
  std::vector<LtAlgorithm> algorithms;
  for (const cublasLtMatmulHeuristicResult_t& result :
       std::span(results).first(static_cast<size_t>(std::clamp(count, 0, most))))
    if (result.state == CUBLAS_STATUS_SUCCESS)
      algorithms.push_back({result.algo, static_cast<int64_t>(result.workspaceSize)});
  return algorithms;
}

std::optional<LtAlgorithm> LtProduct::check(const cublasLtMatmulAlgo_t& bytes) const {
  cublasLtMatmulHeuristicResult_t result = {};
  if (setAnyBias() != CUBLAS_STATUS_SUCCESS ||
      library_->cublasLtMatmulAlgoCheck(handle_, desc_.get(), b_.get(), a_.get(), c_.get(),
                                        c_.get(), &bytes, &result) != CUBLAS_STATUS_SUCCESS ||
      static_cast<int64_t>(result.workspaceSize) > workspace_)
    return std::nullopt;
  return LtAlgorithm{bytes, static_cast<int64_t>(result.workspaceSize)};
}

cublasStatus_t LtProduct::queue(const LtAlgorithm& algorithm, const ProductAddresses& place,
                                CUstream stream) const {
  if (const cublasStatus_t status = setBias(place.bias); status != CUBLAS_STATUS_SUCCESS)
    return status;
  const float alpha = 1, beta = accumulate_ ? 1.0f : 0.0f;
  void* c = reinterpret_cast<void*>(place.c);
  return library_->cublasLtMatmul(handle_, desc_.get(), &alpha, pointer(place.b), b_.get(),
                                  pointer(place.a), a_.get(), &beta, c, c_.get(), c, c_.get(),
                                  &algorithm.bytes, reinterpret_cast<void*>(place.workspace),
                                  static_cast<size_t>(workspace_), stream);
}

} // namespace titan::cuda
