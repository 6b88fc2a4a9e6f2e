#include "compiler/Support/BlockOrder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir;

namespace {

struct BlockOrderTest : testing::Test {
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  titan::BlockOrder order;
  IRRewriter rewriter{&context, &order};
  std::vector<Operation*> ops;

  void SetUp() override {
    context.loadDialect<arith::ArithDialect>();
    module = ModuleOp::create(UnknownLoc::get(&context));
  }
  Operation* create() {
    return arith::ConstantIndexOp::create(rewriter, module->getLoc(), 0).getOperation();
  }
  void expectAll() {
    for (Operation* a : ops)
      for (Operation* b : ops)
        ASSERT_EQ(order.isBefore(a, b), a->isBeforeInBlock(b));
  }
};

TEST_F(BlockOrderTest, ManyOpsAtOnePlace) {
  rewriter.setInsertionPointToStart(module->getBody());
  ops = {create(), create()};
  for (int i = 0; i < 100; ++i) { // more than fit between two numbers
    rewriter.setInsertionPoint(ops.back());
    ops.insert(ops.end() - 1, create());
    ASSERT_TRUE(order.isBefore(ops[ops.size() - 3], ops[ops.size() - 2]));
    ASSERT_TRUE(order.isBefore(ops[ops.size() - 2], ops.back()));
  }
  expectAll();
}

TEST_F(BlockOrderTest, FollowsWhatARewriterDoes) {
  std::mt19937 generator(1);
  auto any = [&]() -> Operation*& { return ops[generator() % ops.size()]; };
  rewriter.setInsertionPointToStart(module->getBody());
  for (int i = 0; i < 40; ++i)
    ops.push_back(create());
  for (int i = 0; i < 1000; ++i) {
    Operation*& op = any();
    Operation* place = any();
    switch (generator() % 4) {
    case 0:
      rewriter.moveOpBefore(op, place);
      break;
    case 1:
      if (op != place)
        rewriter.moveOpAfter(op, place);
      break;
    case 2: // one in its stead, perhaps at its address
      rewriter.setInsertionPoint(place);
      rewriter.eraseOp(op);
      if (op == place)
        rewriter.setInsertionPointToEnd(module->getBody());
      op = create();
      break;
    default:
      for (int run = 0; run < 20; ++run) {
        rewriter.setInsertionPointAfter(place);
        ops.push_back(create());
      }
      while (ops.size() > 60) {
        rewriter.eraseOp(ops.back());
        ops.pop_back();
      }
    }
    Operation *a = any(), *b = any();
    ASSERT_EQ(order.isBefore(a, b), a->isBeforeInBlock(b)) << "change " << i;
  }
  expectAll();
}

} // namespace
