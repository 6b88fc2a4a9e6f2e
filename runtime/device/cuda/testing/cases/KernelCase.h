// Kernels with their operands before and after a run, in a file: what a compiler's tests record,
// and a program without a compiler repeats on a card.
#pragma once

#include "runtime/program/DType.h"
#include "runtime/program/Error.h"

#include <string>
#include <string_view>
#include <vector>

namespace titan::cases {

/// Code of one or more kernels: PTX, and where there was an assembler a cubin for `arch`.
struct CaseModule {
  std::string ptx;
  std::string arch, cubin; ///< "sm_90"; both empty where there is none

  bool operator==(const CaseModule&) const = default;
};

struct CaseLaunch {
  std::string entry;
  int64_t blocks = 1, threads = 1, sharedBytes = 0;

  bool operator==(const CaseLaunch&) const = default;
};

/// An allocation, aligned to 256: its bytes before the launches, and what they must be behind them.
struct CaseRegion {
  std::string before, after;

  bool operator==(const CaseRegion&) const = default;
};

/// A parameter: `bytes` from `offset` on of a region; operands may overlap.
struct CaseOperand {
  uint64_t region = 0;
  int64_t offset = 0, bytes = 0;
  DType dtype = DType::U8;

  bool operator==(const CaseOperand&) const = default;
};

struct KernelCase {
  std::string name;    ///< "CudaGemmKernel.Bf16 2"
  uint64_t module = 0; ///< in CaseFile::modules
  /// 0: equal bits. Else a float may be so far from what it must be, as a part of the largest value
  /// of its operand, and one of bf16 a unit in its last place more: where a card's sums have an
  /// order that its vendor does not tell.
  double bound = 0;
  std::vector<CaseLaunch> launches; ///< one after the other, all with the same parameters
  std::vector<CaseOperand> operands;
  std::vector<int64_t> scalars;
  std::vector<CaseRegion> regions;

  bool operator==(const KernelCase&) const = default;
};

struct CaseFile {
  std::vector<CaseModule> modules;
  std::vector<KernelCase> cases;

  /// The number of the module, which is added unless it is there.
  uint64_t add(CaseModule module);
  bool operator==(const CaseFile&) const = default;
};

std::string serialize(const CaseFile& file);
/// BadInput, with the number of bytes or the digest, when the text ends early or is damaged; with
/// the name of the case when it contradicts itself.
Result<CaseFile> parseCases(std::string_view bytes);

/// What differs in a region: at most one line an operand, which names it, the first element that
/// differs, both values, and how many do. `found` has the size of the region.
std::vector<std::string> compareRegion(const KernelCase& kernel, uint64_t region,
                                       std::string_view found);

/// Makes an expected bit wrong, the lowest of the last element of the last operand that has any,
/// and says which: "operand 1 (I32), element 31". BadInput: the case allows differences, or is of
/// no values.
Result<std::string> spoil(KernelCase& kernel);

} // namespace titan::cases
