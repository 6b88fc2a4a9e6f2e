#include "compiler/Codegen/cpu/CpuClass.h"

#include "compiler/Codegen/cpu/CpuFeatures.h"
#include "compiler/Codegen/cpu/CpuTarget.h"
#include "compiler/Codegen/cpu/GemmKernel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace titan::codegen {
namespace {

TargetInfo named(const char* arch) { return resolveCpu(arch).take(); }

TEST(CpuClass, NamedCpusAreClassedByTheirInstructionSets) {
  auto classed = [](const char* arch) { return classOf(named(arch), makerOf(arch)); };
  for (const char* arch : {"x86-64-v2", "x86-64-v3", "haswell", "bdver1"})
    EXPECT_EQ(classed(arch), CpuClass::Avx2) << arch;
  for (const char* arch : {"znver1", "znver3"})
    EXPECT_EQ(classed(arch), CpuClass::AmdAvx2) << arch;
  for (const char* arch : {"x86-64-v4", "skylake-avx512", "icelake-server"})
    EXPECT_EQ(classed(arch), CpuClass::Avx512) << arch;
  for (const char* arch : {"znver4", "znver5"})
    EXPECT_EQ(classed(arch), CpuClass::Zen4) << arch;
  EXPECT_EQ(classed("cooperlake"), CpuClass::IntelBf16);
  for (const char* arch : {"sapphirerapids", "graniterapids"})
    EXPECT_EQ(classed(arch), CpuClass::IntelAmx) << arch;
}

// LLVM takes some virtual Granite Rapids for a Rocket Lake: features decide.
TEST(CpuClass, ANameThatLiesIsNotBelieved) {
  TargetInfo target;
  target.cpu = "rocketlake";
  target.features = "+amx-bf16,+amx-tile,+avx512bf16";
  EXPECT_EQ(classOf(target, CpuMaker::Intel), CpuClass::IntelAmx);
  target.features = "+avx512bf16";
  EXPECT_EQ(classOf(target, CpuMaker::Intel), CpuClass::IntelBf16);
  EXPECT_EQ(classOf(target, CpuMaker::Amd), CpuClass::Zen4);
}

// What is compiled for a named CPU is the same wherever it is compiled.
TEST(CpuClass, OnlyNativeLooksAtThisMachine) {
  for (const char* arch : {"x86-64-v3", "znver5", "sapphirerapids"})
    EXPECT_TRUE(named(arch).machine == machineOf(classOf(named(arch), makerOf(arch)))) << arch;
  TargetInfo native = named("native");
  EXPECT_TRUE(native.machine == machineOf(classOf(native, hostMaker()), hostCaches()));
}

TEST(CpuClass, CachesOfAVirtualMachineAreNotBelievedWithoutLimit) {
  MachineModel usual = machineOf(CpuClass::IntelAmx);
  EXPECT_TRUE(machineOf(CpuClass::IntelAmx, {int64_t{2} << 20}) == usual);
  EXPECT_TRUE(machineOf(CpuClass::IntelAmx, {int64_t{480} << 20}) == usual);
  MachineModel half = machineOf(CpuClass::IntelAmx, {int64_t{1} << 20});
  EXPECT_EQ(half.matrixBlockElements, usual.matrixBlockElements / 2);
}

TEST(CpuClass, ClassesBelowAvx512Bf16HaveTheSameNumbers) {
  EXPECT_TRUE(machineOf(CpuClass::Avx2) == MachineModel());
  EXPECT_TRUE(machineOf(CpuClass::Avx512) == MachineModel());
  EXPECT_TRUE(machineOf(CpuClass::Zen4) == MachineModel());
}

/// Is the weight gradient C[m][n] of f32 generated on `arch`?
bool generatesGradient(const char* arch, int64_t m, int64_t n, int64_t k) {
  mlir::DialectRegistry registry;
  registry.insert<kernel::KernelDialect, mlir::func::FuncDialect>();
  mlir::MLIRContext context(registry);
  const std::string a = fmt::format("memref<{}xf32>", m * k),
                    b = fmt::format("memref<{}xf32>", k * n),
                    c = fmt::format("memref<{}xf32>", m * n);
  const std::string text = fmt::format(
      "func.func @f(%a: {0}, %b: {1}, %c: {2}) {{\n"
      "kernel.call #kernel.gemm<batch = 1, m = {3}, n = {4}, k = {5}, lda = {3}, ldb = {4}, "
      "ldc = {4}, strideA = 0, strideB = 0, strideC = 0, transposeA = true, transposeB = false, "
      "accumulate = false, bias = false, relu = false, tileM = {3}, tileN = {4}> "
      "ins(%a, %b : {0}, {1}) outs(%c : {2})\nreturn\n}}\n",
      a, b, c, m, n, k);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  auto target = CpuTarget::createCpu(named(arch), &context).take();
  std::optional<bool> generated;
  module->walk([&](kernel::CallOp call) { generated = target->library(call)->generated; });
  return generated.value();
}

// bench/results, gemm of both CPUs.
TEST(CpuClass, WeightGradientsAreGeneratedWhereTheLibraryIsSlower) {
  EXPECT_TRUE(generatesGradient("graniterapids", 1536, 384, 2048));
  EXPECT_FALSE(generatesGradient("znver5", 1536, 384, 2048));
  EXPECT_TRUE(generatesGradient("graniterapids", 3072, 768, 1024));
  EXPECT_TRUE(generatesGradient("znver5", 3072, 768, 1024));
  EXPECT_TRUE(generatesGradient("znver3", 1536, 384, 2048));
  EXPECT_FALSE(generatesGradient("x86-64-v3", 1536, 384, 2048));
  EXPECT_FALSE(generatesGradient("graniterapids", 50304, 768, 256));
  EXPECT_TRUE(generatesGradient("znver5", 50304, 768, 256));
}

} // namespace
} // namespace titan::codegen
