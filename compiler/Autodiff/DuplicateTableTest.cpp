#include "compiler/Autodiff/DuplicateTable.h"

#include "dialects/Titan/Titan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <limits>

using namespace mlir;
using titan::autodiff::DuplicateTable;

namespace {

TEST(DuplicateTable, AnyHashWillDo) {
  MLIRContext context;
  context.loadDialect<titan::ir::TitanDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %a = titan.exp %x {path = ["a"]} : tensor<4xf32>
      %b = titan.exp %x {path = ["b"]} : tensor<4xf32>
      %c = titan.exp %a : tensor<4xf32>
      %d = titan.tanh %x : tensor<4xf32>
      return %d : tensor<4xf32>
    })",
                                                             &context);
  ASSERT_TRUE(module);
  SmallVector<Operation*> ops;
  module->walk([&](Operation* op) {
    if (isa<titan::ir::TitanDialect>(op->getDialect()))
      ops.push_back(op);
  });
  ASSERT_EQ(ops.size(), 4u);
  EXPECT_EQ(DuplicateTable::hashOf(ops[0]), DuplicateTable::hashOf(ops[1]));
  // All in one bucket. A hash map that has empty and deleted keys has them among these numbers.
  for (uint64_t hash :
       {uint64_t{0}, uint64_t{1}, uint64_t{0xfffffffe}, uint64_t{0xffffffff},
        std::numeric_limits<uint64_t>::max() - 1, std::numeric_limits<uint64_t>::max()}) {
    DuplicateTable table;
    EXPECT_EQ(table.firstLike(ops[0], hash), ops[0]);
    EXPECT_EQ(table.firstLike(ops[1], hash), ops[0]);
    EXPECT_EQ(table.firstLike(ops[2], hash), ops[2]);
    EXPECT_EQ(table.firstLike(ops[3], hash), ops[3]);
  }
}

} // namespace
