#include "compiler/Codegen/cpu/KernelUnits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSet.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace titan::codegen {
namespace {

/// The key of the one function of `text`, in a context of its own.
std::string keyOf(const std::string& text) {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect,
                      scf::SCFDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module) << text;
  std::vector<KernelUnit> units = splitIntoUnits(*module);
  EXPECT_EQ(units.size(), 1u);
  return UnitKeys().of(units[0]);
}

std::string sumOf(const std::string& body) {
  return "func.func @titan_kernel_7(%a: f32, %b: f32, %c: i1) -> f32 {" + body + "}";
}

TEST(KernelUnits, EqualFunctionsHaveOneKey) {
  const std::string body = "%0 = arith.addf %a, %b : f32  return %0 : f32";
  const std::string key = keyOf(sumOf(body));
  EXPECT_EQ(keyOf(sumOf(body)), key);
  EXPECT_EQ(keyOf(sumOf("\n\n" + body)), key) << "a location";
  EXPECT_EQ(keyOf("func.func @titan_kernel_12(%x: f32, %y: f32, %z: i1) -> f32 {"
                  "%s = arith.addf %x, %y : f32  return %s : f32}"),
            key)
      << "names";
}

TEST(KernelUnits, WhatComputesSomethingElseHasAnotherKey) {
  const std::string branches = "^one: return %a : f32 ^two: return %b : f32";
  const std::vector<std::string> bodies = {
      "%0 = arith.addf %a, %b : f32  return %0 : f32",
      "%0 = arith.subf %a, %b : f32  return %0 : f32",
      "%0 = arith.addf %b, %a : f32  return %0 : f32",
      "%0 = arith.addf %a, %a : f32  return %0 : f32",
      "%0 = arith.addf %a, %b : f32  return %a : f32",
      "%0 = arith.addf %a, %b fastmath<nnan> : f32  return %0 : f32",
      "%0 = arith.constant 1.0 : f32  return %0 : f32",
      "%0 = arith.constant 2.0 : f32  return %0 : f32",
      "cf.cond_br %c, ^one, ^two " + branches,
      "cf.cond_br %c, ^two, ^one " + branches,
      "%0 = scf.if %c -> f32 {scf.yield %a : f32} else {scf.yield %b : f32} return %0 : f32",
      "%0 = scf.if %c -> f32 {scf.yield %b : f32} else {scf.yield %a : f32} return %0 : f32",
      "scf.if %c {%0 = arith.addf %a, %b : f32} return %a : f32",
      "scf.if %c {} %0 = arith.addf %a, %b : f32  return %a : f32"};
  llvm::StringSet<> keys;
  for (const std::string& body : bodies)
    EXPECT_TRUE(keys.insert(keyOf(sumOf(body))).second) << body;
  EXPECT_TRUE(keys.insert(keyOf("func.func @titan_kernel_7(%a: f64, %b: f64, %c: i1) -> f64 {"
                                "%0 = arith.addf %a, %b : f64  return %0 : f64}"))
                  .second);
}

TEST(KernelUnits, UnitsShareWhatIsPrinted) {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      "func.func @one(%a: f32) -> f32 {%0 = arith.addf %a, %a : f32  return %0 : f32}"
      "func.func @two(%a: f32) -> f32 {%0 = arith.addf %a, %a : f32  return %0 : f32}",
      &context);
  ASSERT_TRUE(module);
  std::vector<KernelUnit> units = splitIntoUnits(*module);
  UnitKeys keys;
  const std::string first = keys.of(units[0]);
  EXPECT_EQ(keys.of(units[1]), first);
  EXPECT_EQ(UnitKeys().of(units[1]), first);
}

} // namespace
} // namespace titan::codegen
