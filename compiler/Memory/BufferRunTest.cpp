// Ranks with an arena each: halves of collectives on buffers are the whole op on tensors, and what
// touches their bytes in between shows.
#include "compiler/Memory/BufferRun.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "compiler/Pipeline/Register.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace {

constexpr StringLiteral onTensors = R"(
  func.func @step(%x: tensor<1x4xf32> {titan.input = "x"}) -> (tensor<4xf32> {titan.output = "y"}, tensor<4xf32> {titan.output = "z"}) {
    %s = titan.reshape %x : tensor<1x4xf32> to tensor<4xf32>
    %y = dist.all_reduce sum %s axes ["shard"] order rank : tensor<4xf32> to tensor<4xf32>
    %p = dist.take_shard %y axes ["shard"] dim 0 : tensor<4xf32> to tensor<2xf32>
    %z = dist.all_gather %p axes ["shard"] dims [0] : tensor<2xf32> to tensor<4xf32>
    return %y, %z : tensor<4xf32>, tensor<4xf32>
  })";

constexpr StringLiteral onBuffers = R"(
  func.func @step(%x: memref<1x4xf32> {titan.input = "x", kernel.offset = 0 : i64},
      %y: memref<4xf32> {titan.output = "y", kernel.offset = 64 : i64}, %z: memref<4xf32> {titan.output = "z", kernel.offset = 128 : i64}) {
    %row = kernel.cast_shape %x : memref<1x4xf32> to memref<4xf32>
    %s = kernel.buffer 192 : memref<4xf32>
    %free = kernel.buffer OFFSET : memref<4xf32>
    %rows = kernel.cast_shape %y : memref<4xf32> to memref<2x2xf32>
    kernel.copy %row to %s : memref<4xf32> to memref<4xf32>
    accum.loop %i in 2 running {
      %t = dist.start all_reduce ins(%s : memref<4xf32>) outs(%y : memref<4xf32>) axes ["shard"] order rank
      kernel.copy SOURCE to %free : SHAPE to memref<4xf32>
      dist.wait %t ins(%s : memref<4xf32>) outs(%y : memref<4xf32>)
    }
    %c = dist.coordinate "shard"
    %mine = kernel.slice %rows[%c] : memref<2x2xf32> to memref<2xf32>
    %u = dist.start all_gather ins(%mine : memref<2xf32>) outs(%z : memref<4xf32>) axes ["shard"] dims [0]
    dist.wait %u ins(%mine : memref<2xf32>) outs(%z : memref<4xf32>)
    LAST
    return
  })";

class BufferRunTest : public titan::interpreter::testing::ModuleFixture {
protected:
  BufferRunTest() : ModuleFixture(titan::registerAllDialects) {}

  struct Change {
    std::string offset = "256", source = "%row", shape = "memref<4xf32>", last = "";
  };
  /// What differs on buffers; empty: nothing.
  std::string difference(const Change& change) {
    auto moduleOf = [&](StringRef function) {
      return parse(("module attributes {kernel.arena = {}, titan.recipe = {batch = {micro = 1 : "
                    "i64, global = 2 : i64}, "
                    "mesh = {axes = [{name = \"shard\", ranks = 2 : i64}]}}, dist.mesh = "
                    "#dist.mesh<[\"shard\" = 2]>} {" +
                    function + "}")
                       .str());
    };
    std::string text = replaceAll(onBuffers.str(), "OFFSET", change.offset);
    text = replaceAll(replaceAll(text, "SOURCE", change.source), "SHAPE", change.shape);
    auto before = moduleOf(onTensors), after = moduleOf(replaceAll(text, "LAST", change.last));
    message.clear();
    EXPECT_EQ(succeeded(titan::memory::checkEquivalent(before->lookupSymbol<func::FuncOp>("step"),
                                                       after->lookupSymbol<func::FuncOp>("step"))),
              message.empty());
    return message;
  }
};

TEST_F(BufferRunTest, HalvesOnBuffersAreTheWholeOnTensors) { EXPECT_EQ(difference({}), ""); }

/// Two buffers in one place, as a plan with wrong live ranges has them: no verifier of the ops sees
/// it.
TEST_F(BufferRunTest, AWriteToASourceNamesTheCommand) {
  // %z is not set yet: other bytes than the source's.
  EXPECT_EQ(difference({.offset = "192", .source = "%z"}),
            "'kernel.copy' op writes to a buffer of a collective between its start and its wait");
  EXPECT_EQ(difference({.offset = "204", .source = "%z"}),
            "'kernel.copy' op writes to a buffer of a collective between its start and its wait");
}

TEST_F(BufferRunTest, AWriteToAResultNamesTheCommand) {
  EXPECT_EQ(difference({.offset = "64"}),
            "'kernel.copy' op writes to a buffer of a collective between its start and its wait");
}

TEST_F(BufferRunTest, AResultThatIsReadBeforeItsWaitIsNaN) {
  const std::string last = "kernel.copy %free to %z : memref<4xf32> to memref<4xf32>";
  const std::string found =
      difference({.source = "%rows", .shape = "memref<2x2xf32>", .last = last});
  EXPECT_NE(found.find("@step result 1 (argument 2): element 0 of 4 is nan"), std::string::npos)
      << found;
}

TEST_F(BufferRunTest, WhatRanksHaveTwiceIsCompared) {
  const std::string found =
      difference({.last = "kernel.copy %s to %z : memref<4xf32> to memref<4xf32>"});
  EXPECT_NE(found.find("@step result 1: rank 1 differs from rank 0: element 0 of 4"),
            std::string::npos)
      << found;
}

} // namespace
