#include "compiler/Codegen/cuda/CudaArch.h"

#include "llvm/ADT/STLExtras.h"
#include <fmt/ranges.h>

namespace titan::codegen::cuda {
namespace {

/// In rising order.
constexpr std::string_view known[] = {"sm_80",  "sm_86",  "sm_87",  "sm_89", "sm_90",
                                      "sm_100", "sm_103", "sm_120", "sm_121"};

} // namespace

std::span<const std::string_view> knownArchs() { return known; }

Result<std::vector<std::string>> parseArchs(std::string_view text) {
  llvm::SmallVector<llvm::StringRef> names;
  llvm::StringRef(text.data(), text.size()).split(names, ',');
  for (llvm::StringRef name : names)
    if (!llvm::is_contained(known, std::string_view(name)))
      return Error::usage("--arch={}: unknown: --target=cuda knows {}", name.str(),
                          fmt::join(known, ", "));
  std::vector<std::string> archs;
  for (std::string_view arch : known)
    if (llvm::is_contained(names, llvm::StringRef(arch.data(), arch.size())))
      archs.emplace_back(arch);
  return archs;
}

MachineModel cardModel() {
  MachineModel machine;
  // NVIDIA's data sheet of the H100 SXM: 67 TFLOP/s of f32 without tensor cores, 989 of bf16 with
  // them; a copy reaches 3.0 TB/s of its 3.35.
  machine.memoryBytesPerNs = 3000;
  machine.productFlopsPerNsF32 = 67000;
  machine.productFlopsPerNsBf16 = 989000;
  // An operation a lane and cycle: 132 multiprocessors x 128 lanes x 1.98 GHz.
  machine.laneOpsPerNs = 33000;
  // Products of bf16 against bytes: 790 TFLOP/s, which the library reaches, over 3.0 TB/s.
  machine.flopsPerByte = 260;
  // A launch of a graph's node.
  machine.threadNs = 1500;
  // Its library and its tensor cores want operands of one type.
  machine.roundedOperandTileRows = 0;
  machine.patchesInPlace = 0;
  // Columns alone would give a card a few blocks, each with all rows after one another.
  machine.embeddingGradSortedRows = 1;
  // 32 registers of each of 512 threads.
  machine.columnSums = 16384;
  machine.smallSiblings = 1; // the addresses of many operands leave no registers
  // The widest access, and a line of the second-level cache.
  machine.rowAlignment = 16;
  machine.longRowAlignment = 128;
  // What AttentionKernel.cpp has for a block of threads; sums over queries stay in its registers.
  machine.attentionRows = machine.attentionRowsOfWide = machine.attentionKeys = 64;
  machine.attentionPadding = 0;
  // A warp reads neighbours; each weight is read once for a block's samples.
  machine.recurrentColumns = 32;
  machine.recurrentSamples = 4;
  // Of allocations by the driver, and enough for the widest access.
  machine.arenaAlignment = 256;
  return machine;
}

} // namespace titan::codegen::cuda
