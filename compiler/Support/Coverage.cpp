#include "compiler/Support/Coverage.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace titan {

namespace {

template <typename Interface> CoverageColumn columnOf(StringRef title) {
  return {title.str(), [](RegisteredOperationName op) { return op.hasInterface<Interface>(); }};
}

} // namespace

SmallVector<CoverageColumn> interfaceColumns() {
  return {columnOf<ir::InterpretableOpInterface>("interpreter"),
          columnOf<ir::DifferentiableOpInterface>("gradient"),
          columnOf<ir::ShardableOpInterface>("factor rule"),
          columnOf<ir::LowerableOpInterface>("lowering"),
          columnOf<ir::AccumulatingOpInterface>("accumulating"),
          columnOf<ir::RandomOpInterface>("random"),
          columnOf<ir::ComputesNarrowOpInterface>("narrow"),
          columnOf<ir::CostedOpInterface>("cost")};
}

void printCoverage(MLIRContext& context, ArrayRef<CoverageColumn> columns, raw_ostream& out) {
  SmallVector<RegisteredOperationName> ops;
  for (RegisteredOperationName op : context.getRegisteredOperations())
    if (op.getDialectNamespace() == "titan" && op.getStringRef() != ir::StateOp::getOperationName())
      ops.push_back(op);
  llvm::sort(ops, [](auto a, auto b) { return a.getStringRef() < b.getStringRef(); });

  out << "| op |";
  for (const CoverageColumn& column : columns)
    out << ' ' << column.title << " |";
  out << "\n|---|";
  for ([[maybe_unused]] const CoverageColumn& column : columns)
    out << "---|";
  out << '\n';
  for (RegisteredOperationName op : ops) {
    out << "| `" << op.getStringRef() << "` |";
    for (const CoverageColumn& column : columns)
      out << (column.covers(op) ? " yes |" : " - |");
    out << '\n';
  }
}

} // namespace titan
