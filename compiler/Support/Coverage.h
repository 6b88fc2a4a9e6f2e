// Which op of the titan dialect is covered by what: the table of the documentation, made from the
// registries.
#pragma once

#include "dialects/Titan/Titan.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>

namespace titan {

struct CoverageColumn {
  std::string title;
  std::function<bool(mlir::RegisteredOperationName)> covers;
};

/// A column for each op interface: interpreter, gradient, factor rule, lowering, and what passes
/// ask (accumulating, random, narrow, cost). What a context knows depends on the models that were
/// registered with it.
llvm::SmallVector<CoverageColumn> interfaceColumns();

/// Prints a Markdown table with a row for each tensor op of the titan dialect, by name, and "yes"
/// or "-" in each column. The dialect must be loaded.
void printCoverage(mlir::MLIRContext& context, llvm::ArrayRef<CoverageColumn> columns,
                   llvm::raw_ostream& out);

} // namespace titan
