// The classes of CPUs, and their machine models.
//
// A class is known by instruction sets and by who made the CPU, never by LLVM's name of it: virtual
// machines show families that LLVM takes for others. Nothing is timed; what was measured is in
// bench/results and in bench/gemm.
#pragma once

#include "compiler/Support/TargetInfo.h"

namespace titan::codegen {

enum class CpuMaker { Amd, Intel, Other };

/// Bytes of data caches that a core can count on; 0: as the class has them.
struct CpuCaches {
  int64_t second = 0;
};

enum class CpuClass {
  Avx2,      ///< and below: x86-64-v2, -v3
  AmdAvx2,   ///< AMD without AVX-512: Zen to Zen 3
  Avx512,    ///< x86-64-v4, Skylake to Ice Lake
  Zen4,      ///< AMD with AVX512_BF16: Zen 4 and 5
  IntelBf16, ///< Intel with AVX512_BF16: Cooper Lake
  IntelAmx,  ///< Sapphire Rapids, Granite Rapids
};

/// `target` names CPU and features.
CpuClass classOf(const TargetInfo& target, CpuMaker maker);
MachineModel machineOf(CpuClass cpu, const CpuCaches& caches = {});

/// By the CPU's name: Other for generic ones.
CpuMaker makerOf(std::string_view cpu);
/// Of this machine.
CpuMaker hostMaker();
CpuCaches hostCaches();

} // namespace titan::codegen
