#include "runtime/program/testing/ExampleProgram.h"

namespace titan::testing {

Program exampleProgram() {
  Program program;
  program.model = "mlp.onnx";
  program.recipe = "{}";
  program.target = {"cpu", "znver5", {"avx2", "avx512f"}};
  program.mesh = {{"replicate", 2}, {"shard", 3}};
  program.optimizer = "adamw";
  program.arenaBytes = 1 << 20;
  State weight;
  weight.name = "fc.weight";
  weight.shape = weight.local = {128, 784};
  weight.trainable = true;
  weight.aliases = {"tied.weight"};
  weight.sources = {
      {"onnx::MatMul_7", {.at = {}, .from = {}, .extent = {28, 784}, .dims = {1, 0}}},
      {"W", {.at = {28, 0}, .from = {1, 0, 0}, .extent = {100, 784}, .dims = {1, 2}}}};
  weight.init = {Init::Kind::External,
                 0,
                 0,
                 {{"w.bin", 64, 784 * 28 * 4, 0x123456789abcdef0, {784, 28}},
                  {"w.bin", 87872, 2 * 100 * 784 * 4, 17, {2, 100, 784}}}};
  weight.bytes = 128 * 784 * 4;
  program.states.push_back(weight);
  program.constants.push_back({500000, 64, 4096});
  program.kernels = {{"kernel_0", "relu of fc"}, {"kernel_1", "gemm of fc"}};
  program.comparisons = {
      {{{DType::F32, {64, 128}}, {DType::BF16, {64, 128}, Tolerance::Bounded}}, 64},
      {{{DType::F32, {128}, Tolerance::Magnitude, 0x1p-13}}, 0}};
  program.images.push_back(
      {Image::Kind::Object, "znver5", 0, 9000, "00112233445566778899aabbccddeeff"});
  Gemm gemm;
  gemm.m = 64, gemm.n = 128, gemm.k = 784;
  gemm.lda = 784, gemm.ldb = 784, gemm.ldc = 128;
  gemm.transposeB = gemm.bias = true;
  gemm.tileM = 64, gemm.tileN = 64;
  program.libraryCalls.push_back({LibraryRoutine::Gemm, gemm, {}, "fc", 1});
  program.stagingOffset = 950272, program.stagingBytes = 4096;
  program.collectives.push_back({CollectiveKind::AllReduce,
                                 SumOrder::Rank,
                                 {0, 1},
                                 {{DType::F32, 1, 100}, {DType::I64, 1, 1}},
                                 "fc, count"});
  Function step;
  step.name = "step";
  step.bindings.push_back(
      {Binding::Role::Input, "x", DType::F32, {4, 16, 784}, {4, 16, 784}, 600000, 200704, 0});
  step.bindings.push_back(
      {Binding::Role::Input, "targets", DType::I64, {4, 16}, {4, 16}, 801000, 512, 10, {{1, 9}}});
  step.bindings.push_back(
      {Binding::Role::Control, "optimizer.lr", DType::F32, {}, {}, 801512, 4, 0});
  Command repeat;
  repeat.kind = CommandKind::Repeat;
  repeat.launch.units = 4;
  Command call;
  call.kind = CommandKind::Library;
  call.phase = Phase::Backward;
  call.operands = {{{600000, {{0, 50176}}}, 200704},
                   {{0}, 401408},
                   {{900000}, 32768, Access::Write},
                   {{401408}, 512}};
  call.launch.units = 2;
  Command end;
  end.kind = CommandKind::EndRepeat;
  Command zero;
  zero.kind = CommandKind::Zero;
  zero.operands = {{{900000}, 512, Access::Write}};
  zero.scalars = {{512}};
  Command start;
  start.kind = CommandKind::CollectiveStart;
  start.phase = Phase::Update;
  start.operands = {
      {{950272}, 400}, {{950720}, 8}, {{960000}, 400, Access::Write}, {{960448}, 8, Access::Write}};
  Command wait = start;
  wait.kind = CommandKind::CollectiveWait;
  step.commands = {zero, repeat, call, end, start, wait};
  step.temporaries.push_back({900000, 32768, 0, 3});
  step.maxLiveBytes = 32768;
  step.modelFlops = 401408;
  program.functions.push_back(step);
  return program;
}

std::string errorAfter(const std::function<void(Program&)>& change) {
  Program program = exampleProgram();
  change(program);
  const Status status = verify(program);
  return status.ok() ? "" : status.error().message();
}

std::string errorAfterCommands(const std::function<void(std::vector<Command>&)>& change) {
  return errorAfter([&](Program& program) { change(program.functions[0].commands); });
}

} // namespace titan::testing
