#include "compiler/Support/KernelKey.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace {

struct KernelKeyTest : testing::Test {
  MLIRContext context;

  void SetUp() override {
    context.loadDialect<titan::kernel::KernelDialect, arith::ArithDialect>();
  }

  /// Of a kernel with `body`, from %x and %y to %z.
  std::string keyOf(const std::string& body) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
        %a = kernel.empty : tensor<4xf32>
        %b = kernel.fused flat [4] ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%a : tensor<4xf32>)
            maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
          ^bb0(%x: f32, %y: f32):
            )" + body + R"(
            kernel.yield %z : f32
        })",
                                                               &context);
    EXPECT_TRUE(module);
    titan::KeyBuilder key;
    module->walk([&](titan::kernel::FusedOp op) { key.addKernel(op); });
    return key.str().str();
  }
  std::string selected(const std::string& predicate) {
    return keyOf("%c = arith.cmpf " + predicate +
                 ", %x, %y : f32 %z = arith.select %c, %x, %y : f32");
  }
};

TEST_F(KernelKeyTest, OperandsAndAttributesDecide) {
  EXPECT_EQ(keyOf("%z = arith.addf %x, %y : f32"), keyOf("%z = arith.addf %x, %y : f32"));
  EXPECT_NE(keyOf("%z = arith.addf %x, %y : f32"), keyOf("%z = arith.addf %x, %x : f32"));
  EXPECT_NE(keyOf("%z = arith.addf %x, %y : f32"), keyOf("%z = arith.mulf %x, %y : f32"));
  EXPECT_NE(keyOf("%z = arith.addf %x, %y : f32"),
            keyOf("%z = arith.addf %x, %y fastmath<nnan> : f32"));
  EXPECT_NE(keyOf("%z = arith.constant 1.0 : f32"), keyOf("%z = arith.constant 2.0 : f32"));
  // Two attributes, of which one differs.
  EXPECT_EQ(selected("olt"), selected("olt"));
  EXPECT_NE(selected("olt"), selected("ole"));
  EXPECT_NE(keyOf("%z = arith.addf %x, %y : f32"), keyOf("%z = arith.addf %x, %y {note} : f32"));
}

// The sizes of operand groups are a property of another size than an attribute has.
TEST_F(KernelKeyTest, PropertiesThatAreNoAttributes) {
  auto keyOfKernel = [&](const std::string& path) {
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(R"(
        %a = kernel.empty : tensor<4xf32>
        %b = kernel.fused flat [4] ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>)
            maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] attributes {path = [")" +
                                        path + R"("]} -> (tensor<4xf32>) {
          ^bb0(%x: f32):
            kernel.yield %x : f32
        })",
                                    &context);
    EXPECT_TRUE(module);
    titan::KeyBuilder key;
    module->walk([&](titan::kernel::FusedOp op) { key.addAttributes(op); });
    return key.str().str();
  };
  EXPECT_EQ(keyOfKernel("h.0"), keyOfKernel("h.0"));
  EXPECT_NE(keyOfKernel("h.0"), keyOfKernel("h.1"));
}

} // namespace
