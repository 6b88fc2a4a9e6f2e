#include "compiler/Codegen/cpu/CpuClass.h"

#include "compiler/Codegen/cpu/CpuFeatures.h"

#include "llvm/TargetParser/Host.h"

#include <algorithm>
#include <cpuid.h>
#include <limits>

namespace titan::codegen {
namespace {

/// The numbers of every class start from these: any x86-64 with AVX2 (MachineModel.h).
MachineModel avx2() { return {}; }

/// What follows was measured on a Zen 3 core (bench/results, gemm): 3.0 GHz, two multiply-adds of
/// eight f32, 512 KiB of the second-level cache. bf16 is multiplied as f32. The library is nowhere
/// ahead by more than a tenth, and behind in most gradients.
MachineModel amdAvx2() {
  MachineModel machine = avx2();
  machine.libraryWork = std::numeric_limits<int64_t>::max();
  machine.gemmRows = 512;
  machine.gridFlopsPerNsF32 = machine.gridFlopsPerNsBf16 = 90;
  machine.productFlopsPerNsF32 = machine.productFlopsPerNsBf16 = 90;
  return machine;
}

MachineModel avx512() { return avx2(); }
MachineModel zen4() { return avx512(); }

/// Intel's vdpbf16ps takes two cycles, in which there are four f32 multiply-adds of a register:
/// half of the products.
MachineModel intelBf16() {
  MachineModel machine = avx512();
  machine.bf16DotRate = 0.5;
  machine.gridFlopsPerNsBf16 = machine.gridFlopsPerNsF32;
  machine.productFlopsPerNsBf16 = machine.productFlopsPerNsF32;
  return machine;
}

/// What follows was measured on a core of the Granite Rapids class (bench/results, gemm): the
/// library's gradients are slower whatever their width, but for tall ones; a register tile of 4 x 4
/// vectors has 0.88 of the speed of 8 x 3; what another core has just written comes from far, so
/// that a thread has to have more to do.
///
/// Products of bf16 on tiles run at 1000 to 1500 flop/ns where they are large
/// (bench/results, titan_gemm_bench); a tile costs its packing before all.
MachineModel intelAmx() {
  MachineModel machine = intelBf16();
  machine.libraryGradientColumns = 1;
  machine.libraryGradientRows = 16384;
  machine.tile4x4 = 0.88;
  machine.threadNs = 8000;
  machine.gridFlopsPerNsBf16 = 1500;
  machine.productFlopsPerNsBf16 = 1000;
  return machine;
}

MachineModel numbersOf(CpuClass cpu) {
  switch (cpu) {
  case CpuClass::Avx2:
    return avx2();
  case CpuClass::AmdAvx2:
    return amdAvx2();
  case CpuClass::Avx512:
    return avx512();
  case CpuClass::Zen4:
    return zen4();
  case CpuClass::IntelBf16:
    return intelBf16();
  case CpuClass::IntelAmx:
    return intelAmx();
  }
  return avx2();
}

} // namespace

CpuClass classOf(const TargetInfo& target, CpuMaker maker) {
  const CpuFeatures features(target);
  if (features.has("amx-bf16"))
    return CpuClass::IntelAmx;
  if (features.has("avx512bf16"))
    return maker == CpuMaker::Amd ? CpuClass::Zen4 : CpuClass::IntelBf16;
  if (features.has("avx512f"))
    return CpuClass::Avx512;
  return features.has("avx2") && maker == CpuMaker::Amd ? CpuClass::AmdAvx2 : CpuClass::Avx2;
}

MachineModel machineOf(CpuClass cpu, const CpuCaches& caches) {
  MachineModel machine = numbersOf(cpu);
  // Half of the second-level cache, in bf16. A virtual machine may show any number.
  if (caches.second > 0)
    machine.matrixBlockElements =
        std::clamp<int64_t>(caches.second / 4, int64_t{128} << 10, int64_t{512} << 10);
  return machine;
}

CpuMaker makerOf(std::string_view cpu) {
  for (std::string_view prefix : {"znver", "bdver", "btver", "amdfam", "k8", "opteron", "athlon"})
    if (cpu.starts_with(prefix))
      return CpuMaker::Amd;
  return cpu.starts_with("x86-64") || cpu == "generic" ? CpuMaker::Other : CpuMaker::Intel;
}

CpuMaker hostMaker() {
  using llvm::sys::detail::x86::VendorSignatures;
  switch (llvm::sys::detail::x86::getVendorSignature()) {
  case VendorSignatures::AUTHENTIC_AMD:
    return CpuMaker::Amd;
  case VendorSignatures::GENUINE_INTEL:
    return CpuMaker::Intel;
  default:
    return CpuMaker::Other;
  }
}

CpuCaches hostCaches() {
  CpuCaches caches;
  // Deterministic cache parameters: leaf 4, AMD's is alike.
  const unsigned leaf = hostMaker() == CpuMaker::Amd ? 0x8000001D : 4;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  for (unsigned index = 0; __get_cpuid_count(leaf, index, &eax, &ebx, &ecx, &edx); ++index) {
    const unsigned type = eax & 31, level = eax >> 5 & 7;
    if (type == 0)
      break;
    const int64_t ways = (ebx >> 22) + 1, partitions = (ebx >> 12 & 0x3ff) + 1,
                  line = (ebx & 0xfff) + 1, sets = static_cast<int64_t>(ecx) + 1;
    if (level == 2 && type != 2) // 2: instructions
      caches.second = ways * partitions * line * sets;
  }
  return caches;
}

} // namespace titan::codegen
