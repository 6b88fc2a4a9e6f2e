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

/// Three rows of a state in parts of two, with sources in staging: in each iteration it is
/// gathered, and a sum scattered, which becomes its next value.
constexpr StringLiteral stateOnTensors = R"(
  func.func @step(%w: tensor<2x2xf32> {titan.state = @w}, %x: tensor<1x4x2xf32> {titan.input = "x"})
      -> (tensor<2x2xf32> {titan.state = @w}, tensor<3x2xf32> {titan.output = "y"}) {
    %z = titan.constant dense<0.0> : tensor<2x2xf32>
    %zf = titan.constant dense<0.0> : tensor<4x2xf32>
    %s:2 = accum.loop %i in 1 running slices(%xi = %x : tensor<1x4x2xf32>)
        accumulators(%a = %z : tensor<2x2xf32>, %b = %zf : tensor<4x2xf32>) -> (tensor<2x2xf32>, tensor<4x2xf32>) {
      %p = dist.reduce_scatter sum %xi axes ["shard"] dims [0] order rank : tensor<4x2xf32> to tensor<2x2xf32>
      %full = dist.all_gather %w axes ["shard"] dims [0] : tensor<2x2xf32> to tensor<4x2xf32>
      accum.yield %p, %full : tensor<2x2xf32>, tensor<4x2xf32>
    }
    %y = titan.slice %s#1 offsets [0, 0] strides [1, 1] : tensor<4x2xf32> to tensor<3x2xf32>
    return %s#0, %y : tensor<2x2xf32>, tensor<3x2xf32>
  })";

constexpr StringLiteral stateOnBuffers = R"(
  func.func @step(%w: memref<2x2xf32> {titan.state = @w, kernel.offset = 0 : i64}, %x: memref<1x4x2xf32> {titan.input = "x", kernel.offset = 64 : i64},
      %y: memref<3x2xf32> {titan.output = "y", kernel.offset = 128 : i64}) {
    %sources = kernel.buffer 192 : memref<2x2xf32>
    %terms = kernel.buffer 256 : memref<4x2xf32>
    %part = kernel.buffer 320 : memref<2x2xf32>
    %full = kernel.buffer 384 : memref<4x2xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    kernel.copy %w to %sources : memref<2x2xf32> to memref<2x2xf32>
    accum.loop %i in 1 running {
      %xi = kernel.slice %x[%i] : memref<1x4x2xf32> to memref<4x2xf32>
      kernel.copy %xi to %terms : memref<4x2xf32> to memref<4x2xf32>
      %t = dist.start reduce_scatter ins(%terms : memref<4x2xf32>) outs(%part : memref<2x2xf32>) axes ["shard"] dims [0] order rank
      dist.wait %t ins(%terms : memref<4x2xf32>) outs(%part : memref<2x2xf32>)
      %u = dist.start all_gather ins(%sources : memref<2x2xf32>) outs(%full : memref<4x2xf32>) axes ["shard"] dims [0]
      dist.wait %u ins(%sources : memref<2x2xf32>) outs(%full : memref<4x2xf32>)
    }
    %from0 = kernel.slice %full[%c0] : memref<4x2xf32> to memref<2xf32>
    %to0 = kernel.slice %y[%c0] : memref<3x2xf32> to memref<2xf32>
    kernel.copy %from0 to %to0 : memref<2xf32> to memref<2xf32>
    %from1 = kernel.slice %full[%c1] : memref<4x2xf32> to memref<2xf32>
    %to1 = kernel.slice %y[%c1] : memref<3x2xf32> to memref<2xf32>
    kernel.copy %from1 to %to1 : memref<2xf32> to memref<2xf32>
    %from2 = kernel.slice %full[LAST] : memref<4x2xf32> to memref<2xf32>
    %to2 = kernel.slice %y[%c2] : memref<3x2xf32> to memref<2xf32>
    kernel.copy %from2 to %to2 : memref<2xf32> to memref<2xf32>
    kernel.copy %part to %w : memref<2x2xf32> to memref<2x2xf32>
    return
  })";

class BufferRunTest : public titan::interpreter::testing::ModuleFixture {
protected:
  BufferRunTest() : ModuleFixture(titan::registerAllDialects) {}

  struct Change {
    std::string offset = "256", source = "%row", shape = "memref<4xf32>", last = "";
  };
  std::string difference(const Change& change) {
    std::string text = replaceAll(onBuffers.str(), "OFFSET", change.offset);
    text = replaceAll(replaceAll(text, "SOURCE", change.source), "SHAPE", change.shape);
    return difference(onTensors, replaceAll(text, "LAST", change.last));
  }
  /// What differs on buffers; empty: nothing.
  std::string difference(StringRef tensors, StringRef buffers) {
    auto moduleOf = [&](StringRef function) {
      return parse(
          ("module attributes {kernel.arena = {}, titan.recipe = {batch = {micro = 1 : "
           "i64, global = 2 : i64}, "
           "mesh = {axes = [{name = \"shard\", ranks = 2 : i64}]}}, dist.mesh = "
           "#dist.mesh<[\"shard\" = 2]>} {\n"
           "titan.state @w : tensor<3x2xf32> {kind = #titan<kind param>, trainable, init = "
           "#titan.init_rule<\"constant\", 0.0 : f64, 0.0 : f64>, placement = "
           "#titan.placement<[\"shard\" = shard(0)]>}\n" +
           function + "}")
              .str());
    };
    auto before = moduleOf(tensors), after = moduleOf(buffers);
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

/// The same for a sum that takes its source's place.
constexpr StringLiteral inPlaceOnTensors = R"(
  func.func @step(%x: tensor<1x4xf32> {titan.input = "x"}) -> (tensor<4xf32> {titan.output = "y"}) {
    %s = titan.reshape %x : tensor<1x4xf32> to tensor<4xf32>
    %y = dist.all_reduce sum %s axes ["shard"] order rank : tensor<4xf32> to tensor<4xf32>
    return %y : tensor<4xf32>
  })";

constexpr StringLiteral inPlaceOnBuffers = R"(
  func.func @step(%x: memref<1x4xf32> {titan.input = "x", kernel.offset = 0 : i64}, %y: memref<4xf32> {titan.output = "y", kernel.offset = 64 : i64}) {
    %row = kernel.cast_shape %x : memref<1x4xf32> to memref<4xf32>
    %s = kernel.buffer 128 : memref<4xf32>
    %other = kernel.buffer OFFSET : memref<4xf32>
    %free = kernel.buffer 192 : memref<4xf32>
    kernel.copy %row to %s : memref<4xf32> to memref<4xf32>
    %t = dist.start all_reduce ins(%s : memref<4xf32>) outs(%s : memref<4xf32>) axes ["shard"] order rank
    kernel.copy FROM to TO : memref<4xf32> to memref<4xf32>
    dist.wait %t ins(%s : memref<4xf32>) outs(%s : memref<4xf32>)
    kernel.copy RESULT to %y : memref<4xf32> to memref<4xf32>
    return
  })";

TEST_F(BufferRunTest, ASumInPlaceIsTouchedByNothing) {
  const auto found = [&](StringRef offset, StringRef from, StringRef to, StringRef result) {
    std::string text = replaceAll(inPlaceOnBuffers.str(), "OFFSET", offset.str());
    text = replaceAll(replaceAll(text, "FROM", from.str()), "TO", to.str());
    return difference(inPlaceOnTensors, replaceAll(text, "RESULT", result.str()));
  };
  EXPECT_EQ(found("256", "%row", "%other", "%s"), "");
  EXPECT_EQ(found("128", "%free", "%other", "%s"),
            "'kernel.copy' op writes to a buffer of a collective between its start and its wait");
  const std::string read = found("128", "%other", "%free", "%free");
  EXPECT_NE(read.find("@step result 0 (argument 1): element 0 of 4 is nan"), std::string::npos)
      << read;
}

TEST_F(BufferRunTest, WhatRanksHaveTwiceIsCompared) {
  const std::string found =
      difference({.last = "kernel.copy %s to %z : memref<4xf32> to memref<4xf32>"});
  EXPECT_NE(found.find("@step result 1: rank 1 differs from rank 0: element 0 of 4"),
            std::string::npos)
      << found;
}

TEST_F(BufferRunTest, EachArenaHasThePartsOfItsRank) {
  EXPECT_EQ(difference(stateOnTensors, replaceAll(stateOnBuffers.str(), "LAST", "%c2")), "");
  // The last row of the last part is padding.
  const std::string found =
      difference(stateOnTensors, replaceAll(stateOnBuffers.str(), "LAST", "%c3"));
  EXPECT_NE(found.find("@step result 1 (argument 2): element 4 of 6 is nan"), std::string::npos)
      << found;
}

} // namespace
