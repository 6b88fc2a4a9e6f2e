#include "runtime/program/Program.h"

#include <gtest/gtest.h>

#include <random>

namespace titan {
namespace {

/// A program that uses every struct and every kind of member.
Program example() {
  Program program;
  program.model = "mlp.onnx";
  program.recipe = "{}";
  program.target = "cpu";
  program.cpu = "znver5";
  program.cpuFeatures = {"avx2", "avx512f"};
  program.optimizer = "adamw";
  program.arenaBytes = 1 << 20;
  State weight;
  weight.name = "fc.weight";
  weight.shape = {128, 784};
  weight.trainable = true;
  weight.aliases = {"tied.weight"};
  weight.sourceName = "onnx::MatMul_7";
  weight.sourceLayout = {1, 0};
  weight.init = {Init::Kind::Normal, 0, 0.02, "", 0, 0x123456789abcdef0, {1, 0}};
  weight.bytes = 128 * 784 * 4;
  program.states.push_back(weight);
  program.constants.push_back({500000, 64, 4096});
  program.kernels = {{"kernel_0", "relu of fc"}, {"kernel_1", "gemm of fc"}};
  Gemm gemm;
  gemm.m = 64, gemm.n = 128, gemm.k = 784;
  gemm.lda = 784, gemm.ldb = 784, gemm.ldc = 128;
  gemm.transposeB = gemm.bias = true;
  gemm.tileM = 64, gemm.tileN = 64;
  program.gemms.push_back({gemm, "fc", 1});
  Function step;
  step.name = "step";
  step.bindings.push_back({Binding::Role::Input, "x", DType::F32, {4, 16, 784}, 600000, 200704, 0});
  step.bindings.push_back({Binding::Role::Input, "targets", DType::I64, {4, 16}, 801000, 512, 10});
  Command repeat;
  repeat.kind = CommandKind::Repeat;
  repeat.units = 4;
  Command call;
  call.kind = CommandKind::Gemm;
  call.phase = Phase::Backward;
  call.operands = {{600000, {50176, 0}}, {0, {}}, {900000, {}}, {401408, {}}};
  call.units = 2;
  Command end;
  end.kind = CommandKind::EndRepeat;
  Command zero;
  zero.kind = CommandKind::Zero;
  zero.operands = {{900000, {}}};
  zero.scalars = {{512, {}}};
  step.commands = {zero, repeat, call, end};
  step.temporaries.push_back({900000, 32768, 0, 3});
  step.maxLiveBytes = 32768;
  program.functions.push_back(step);
  return program;
}

TEST(Serialize, RoundTrip) {
  const Program program = example();
  const auto read = deserialize(serialize(program));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*read, program);
  EXPECT_EQ(serialize(*read), serialize(program));
  EXPECT_EQ(fingerprint(program).size(), 32u);
}

TEST(Serialize, FingerprintSeesEveryField) {
  const Program program = example();
  Program other = program;
  other.functions[0].commands[2].operands[0].stride[0] += 4;
  EXPECT_NE(fingerprint(other), fingerprint(program));
}

TEST(Serialize, EveryTruncationIsRefused) {
  const std::string bytes = serialize(example());
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto read = deserialize(std::string_view(bytes).substr(0, length));
    ASSERT_FALSE(read.ok()) << length;
    EXPECT_EQ(read.error().code(), ErrorCode::BadInput);
  }
}

TEST(Serialize, TrailingBytesAreRefused) {
  const auto read = deserialize(serialize(example()) + '\0');
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message(), "damaged program: 1 bytes follow its end");
}

TEST(Serialize, AnotherVersionIsRefused) {
  std::string bytes = serialize(example());
  bytes[8] = 77;
  const auto read = deserialize(bytes);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message(), "the program has format version 77, this build reads version "
                                    "1: compile the model again");
}

TEST(Serialize, ErrorsNameTheField) {
  const std::string bytes = serialize(example());
  const auto read = deserialize(std::string_view(bytes).substr(0, bytes.size() - 33));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message(),
            "damaged program: functions[0].maxLiveBytes: needs 8 bytes, 7 are left");
}

TEST(Serialize, RandomDamageNeverCrashes) {
  const std::string bytes = serialize(example());
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = bytes;
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    // What is read has one form: either refused, or the very bytes it was read from.
    if (const auto read = deserialize(damaged); read.ok())
      ASSERT_EQ(serialize(*read), damaged);
  }
}

TEST(Serialize, HugeCountsTakeNoMemory) {
  std::string bytes = serialize(example());
  for (size_t i = 12; i < 20; ++i) // the length of the first string
    bytes[i] = '\x7f';
  EXPECT_FALSE(deserialize(bytes).ok());
}

// --- verify ---

std::string errorAfter(void (*change)(Program&)) {
  Program program = example();
  change(program);
  const Status status = verify(program);
  return status.ok() ? "" : status.error().message();
}

TEST(Verify, Example) {
  EXPECT_EQ(errorAfter([](Program&) {}), "");
}

TEST(Verify, OperandOfTheLastIterationLeavesTheArena) {
  EXPECT_NE(errorAfter([](Program& p) {
              p.functions[0].commands[2].operands[0].stride[0] = 200000;
            }).find("function 'step', command 2: an operand at 600000 leaves the arena"),
            std::string::npos);
}

TEST(Verify, NegativeStride) {
  EXPECT_NE(errorAfter([](Program& p) { p.functions[0].commands[2].operands[1].stride[0] = -4; }),
            "");
}

TEST(Verify, StrideOverflow) {
  EXPECT_NE(
      errorAfter([](Program& p) { p.functions[0].commands[2].operands[0].stride[0] = INT64_MAX; }),
      "");
}

TEST(Verify, IndexOutOfItsTable) {
  EXPECT_EQ(errorAfter([](Program& p) { p.functions[0].commands[2].target = 1; }),
            "damaged program: function 'step', command 2: gemm 1 of 1");
  EXPECT_NE(errorAfter([](Program& p) { p.gemms[0].fallback = 2; }), "");
}

TEST(Verify, UnbalancedRepeat) {
  EXPECT_NE(errorAfter([](Program& p) { p.functions[0].commands.pop_back(); }), "");
  EXPECT_NE(
      errorAfter([](Program& p) { p.functions[0].commands[1].kind = CommandKind::EndRepeat; }), "");
}

TEST(Verify, ZeroBeyondTheArena) {
  EXPECT_EQ(errorAfter([](Program& p) { p.functions[0].commands[0].scalars[0].base = 1 << 20; }),
            "damaged program: function 'step', command 0: 1048576 bytes at 900000 leave the arena "
            "of 1048576 bytes");
}

TEST(Verify, StateOutsideOfTheArena) {
  EXPECT_NE(errorAfter([](Program& p) { p.states[0].offset = 1 << 20; }), "");
}

TEST(Dump, ShowsCommandsWithTheirLoops) {
  const std::string text = dump(example());
  EXPECT_NE(text.find("function step\n"), std::string::npos);
  EXPECT_NE(text.find("repeat 4"), std::string::npos);
  EXPECT_NE(text.find("gemm #0 (600000 + 50176*i0, 0, 900000, 401408) units 2"), std::string::npos)
      << text;
}

TEST(Program, Find) {
  const Program program = example();
  EXPECT_EQ(program.findFunction("step"), &program.functions[0]);
  EXPECT_EQ(program.findFunction("eval"), nullptr);
  EXPECT_EQ(program.findState("fc.weight"), &program.states[0]);
  EXPECT_EQ(program.findState("tied.weight"), nullptr);
}

} // namespace
} // namespace titan
