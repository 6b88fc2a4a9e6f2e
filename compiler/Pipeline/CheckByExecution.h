// Checks passes by running the module before and after each of them in the reference interpreter.
#pragma once

#include "mlir/Pass/PassManager.h"

#include <string>
#include <vector>

namespace titan {

/// What the checks of one compilation found, pass by pass.
class ExecutionReport {
public:
  /// The first pass whose results differ; empty: none.
  std::string mismatch;
  std::string difference; ///< what differs: function, result, element

  /// One run of `pass`: whether it changed the module (else there is nothing to compare), and what
  /// could not be compared, if anything.
  void add(llvm::StringRef pass, bool changed, llvm::StringRef notCompared = {});
  /// For the user: which passes were compared, which changed nothing, and what was left out and
  /// why; a sentence each.
  std::vector<std::string> notes() const;

private:
  struct Entry {
    std::string pass;
    bool changed = false;
    std::string notCompared;
  };
  std::vector<Entry> passes_; ///< in the order of their first runs
};

/// Adds an instrumentation: each pass that changes the module is checked by running it before and
/// after on the same random arguments. On tensors, results with equal tags are compared: their
/// bits, or in f64 behind a pass that may round elsewhere. On buffers, the bits of a simulated
/// arena are compared with those of the function on tensors that it was before. The program of one
/// rank runs on all ranks of its mesh, up to 8; with the job that it is made of it is compared in
/// f64. A difference ends the checks and is in `report`. Passes that change what the module says (a
/// loss, an update, the place of random decisions) are compared as far as it says the same.
/// `report` must outlive the runs.
void addExecutionCheck(mlir::PassManager& passes, ExecutionReport& report);

} // namespace titan
