// What tests of lowering and fusion share: they run a module and its kernels in the interpreter.
#pragma once

#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "compiler/Support/MachineModel.h"

#include <functional>
#include <random>

namespace titan::lower::testing {

/// The kernels of single ops, what fusion makes of them, and that with longer rows.
struct Lowered {
  mlir::OwningOpRef<mlir::ModuleOp> single, fused, padded;

  static Lowered of(mlir::ModuleOp module);
};

/// Constants become f32 in the bodies of f32 kernels, while the titan ops hold them in f64.
inline constexpr double constantsInF32 = 1e-6;

/// The kernels compute what the titan ops say, and fusion and longer rows change no bit of it.
/// Integers are drawn from [0, integerBound).
void expectEquivalent(mlir::ModuleOp module, int64_t integerBound = 2);

/// The default machine but for `member`.
void setMachine(mlir::ModuleOp module, int64_t MachineModel::* member, int64_t value);

class Lower : public interpreter::testing::ModuleFixture {
protected:
  Lower();

  /// Calls `check` with `count` seeds, a generator of each, until it fails.
  static void forEachSeed(unsigned count,
                          const std::function<void(unsigned, std::mt19937&)>& check);

  template <typename Op> static int count(mlir::ModuleOp module) {
    int found = 0;
    module.walk([&](Op) { ++found; });
    return found;
  }
};

} // namespace titan::lower::testing
