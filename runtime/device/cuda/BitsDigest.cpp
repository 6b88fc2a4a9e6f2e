#include "runtime/device/cuda/BitsDigest.h"

#include "runtime/program/Text.h"

#include <algorithm>
#include <vector>

namespace titan::cuda {
namespace {

constexpr unsigned threads = 256, mostBlocks = 1024;

/// Thread t of n takes pairs of bytes t, t + n, t + 2 n, ... and writes FNV-1a of them to parts[t].
constexpr const char* ptx = R"(.version 8.0
.target sm_80
.address_size 64

.visible .entry titan_digest(
  .param .u64 titan_digest_param_0,
  .param .u64 titan_digest_param_1,
  .param .u64 titan_digest_param_2
)
.maxntid 256, 1, 1
{
  .reg .pred %q<3>;
  .reg .b16 %h<2>;
  .reg .b32 %r<7>;
  .reg .b64 %d<12>;
  ld.param.u64 %d1, [titan_digest_param_0];
  ld.param.u64 %d2, [titan_digest_param_1];
  ld.param.u64 %d3, [titan_digest_param_2];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %nctaid.x;
  mul.lo.s32 %r5, %r2, %r3;
  add.s32 %r5, %r5, %r1;
  mul.lo.s32 %r6, %r3, %r4;
  cvt.u64.u32 %d4, %r5;
  cvt.u64.u32 %d5, %r6;
  shl.b64 %d6, %d4, 3;
  add.s64 %d6, %d3, %d6;
  mov.b64 %d7, -3750763034362895579;
LOOP:
  setp.ge.u64 %q1, %d4, %d2;
  @%q1 bra DONE;
  shl.b64 %d8, %d4, 1;
  add.s64 %d8, %d1, %d8;
  ld.global.u16 %h1, [%d8];
  cvt.u64.u16 %d9, %h1;
  xor.b64 %d7, %d7, %d9;
  mul.lo.s64 %d7, %d7, 1099511628211;
  add.s64 %d4, %d4, %d5;
  bra LOOP;
DONE:
  st.global.u64 [%d6], %d7;
  ret;
}
)";

} // namespace

Result<BitsDigest> BitsDigest::create(const Driver& driver) {
  constexpr const char* what = "preparing the test of products";
  BitsDigest digest;
  digest.driver_ = &driver;
  CUmodule module = nullptr;
  TITAN_TRY(driver.need(driver.cuModuleLoadDataEx(&module, ptx, 0, nullptr, nullptr), what));
  digest.module_ = OwnedModule(driver, module);
  TITAN_TRY(
      driver.need(driver.cuModuleGetFunction(&digest.function_, module, "titan_digest"), what));
  CUdeviceptr parts = 0;
  TITAN_TRY(
      driver.need(driver.cuMemAlloc_v2(&parts, mostBlocks * threads * sizeof(uint64_t)), what));
  digest.parts_ = OwnedMemory(driver, parts);
  return digest;
}

Result<std::string> BitsDigest::of(CUdeviceptr address, int64_t bytes, CUstream stream) const {
  constexpr const char* what = "testing a product";
  constexpr uint64_t pairsOfThread = 4;
  uint64_t pairs = static_cast<uint64_t>(bytes) / 2;
  CUdeviceptr parts = parts_.get();
  const auto blocks =
      static_cast<unsigned>(std::clamp<uint64_t>(pairs / (threads * pairsOfThread), 1, mostBlocks));
  void* parameters[] = {&address, &pairs, &parts};
  TITAN_TRY(driver_->need(driver_->cuLaunchKernel(function_, blocks, 1, 1, threads, 1, 1, 0, stream,
                                                  parameters, nullptr),
                          what));
  std::string found(blocks * threads * sizeof(uint64_t), '\0');
  TITAN_TRY(driver_->need(driver_->cuMemcpyDtoHAsync_v2(found.data(), parts, found.size(), stream),
                          what));
  TITAN_TRY(driver_->need(driver_->cuStreamSynchronize(stream), what));
  return digest128(found);
}

} // namespace titan::cuda
