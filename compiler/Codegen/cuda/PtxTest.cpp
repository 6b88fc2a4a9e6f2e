// From kernels to PTX and cubins: what the text may have, and what assemblers say.
#include "compiler/Codegen/cuda/Assembler.h"
#include "compiler/Codegen/cuda/LowerToPtx.h"
#include "compiler/Codegen/cuda/testing/CudaCase.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace titan::codegen::cuda::testing {
namespace {

TEST(Ptx, ForbiddenInstructionsAreFound) {
  for (const char* line :
       {"\tadd.f32 \t%f1, %f2, %f3;", "\t@%p1 mul.f32 %f1, %f2, %f3;", "\tex2.approx.f32 %f1, %f2;",
        "\tadd.rn.ftz.f32 %f1, %f2, %f3;", "\tcall.uni f, ();", "\tcall f;",
        "\tatom.global.add.f32 %f1, [%rd1], %f2;", "\tred.global.add.u32 [%rd1], 1;",
        "\tst.local.f32 [%rd1], %f1;", "\t.local .align 4 .b8 \t__local_depot0[32];",
        "\tmma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "\twmma.mma.sync.aligned.row.col",
        "\tcp.async.bulk.commit_group;", "\tcp.async.mbarrier.arrive.b64 [%r1];"}) {
    Status found = checkPtx(std::string("\tret;\n") + line + "\n");
    ASSERT_FALSE(found.ok()) << line;
    EXPECT_EQ(found.error().message(), fmt::format("generated PTX has '{}'", line));
  }
  EXPECT_TRUE(checkPtx("\tadd.rn.f32 %f1, %f2, %f3;\n\tfma.rn.f32 %f1, %f2, %f3, %f4;\n"
                       "\tsub.s32 %r1, %r2, %r3; // call atom .approx\n"
                       "\tredux.sync.add.s32 %r1, %r2, %r3;\n$L__BB0_1:\n"
                       "\tmma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32\n"
                       "\tcp.async.wait_group 2;\n")
                  .ok());
}

TEST(Ptx, TextNamesVersionTargetAndOperands) {
  CudaCase test({.space = {64},
                 .ins = {{"f32", "(i) -> (i)", {64}}, {"bf16", "(i) -> (i)", {64}}},
                 .outs = {{"f32", "(i) -> (i)", {64}}},
                 .scalars = 1,
                 .kernelClass = "flat",
                 .body = R"(
    ^bb0(%x: f32, %y: bf16, %s: index):
      %w = arith.extf %y : bf16 to f32
      %p = arith.mulf %x, %w : f32
      %q = arith.addf %p, %x : f32
      kernel.yield %q : f32
)"});
  ASSERT_TRUE(test.ok());
  for (const char* part : {".version 8.0\n", ".target sm_80\n", ".address_size 64\n", ".reqntid 32",
                           "// titan: titan_kernel_0 operands(read 256, read 128, write 256) "
                           "scalars(1)\n.visible .entry",
                           "mul.rn.f32", "add.rn.f32"})
    EXPECT_NE(test.ptx().find(part), std::string::npos) << part << " is not in\n" << test.ptx();
}

/// How often `part` is in `text`.
size_t countOf(std::string_view part, const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

/// A chunk of f32, rounded where `where` (i1 in a row of `rows`) says so, else zero.
CudaCase chosenAndRounded(std::string wheres, std::vector<int64_t> shape) {
  return CudaCase({.space = {2, 1024},
                   .ins = {{"f32", "(i, j) -> (i, j)", {2, 1024}}, {"i1", wheres, shape}},
                   .outs = {{"bf16", "(i, j) -> (i, j)", {2, 1024}}},
                   .kernelClass = "flat",
                   .body = R"(
    ^bb0(%x: f32, %where: i1):
      %zero = arith.constant 0.0 : f32
      %y = arith.mulf %x, %x : f32
      %s = arith.select %where, %y, %zero : f32
      %r = arith.truncf %s : f32 to bf16
      kernel.yield %r : bf16
)"});
}

TEST(Ptx, SelectionsDoNotTearPairsApart) {
  CudaCase lanes = chosenAndRounded("(i, j) -> (i, j)", {2, 1024});
  ASSERT_TRUE(lanes.ok());
  EXPECT_EQ(countOf("selp.f32", lanes.ptx()), 8) << lanes.ptx();
  EXPECT_EQ(countOf("cvt.rn.bf16x2.f32", lanes.ptx()), 4);
  EXPECT_EQ(countOf(".b16", lanes.ptx()), 0);

  CudaCase rows = chosenAndRounded("(i, j) -> (i)", {2});
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(countOf("selp.b32", rows.ptx()), 4) << rows.ptx();
  EXPECT_EQ(countOf("cvt.rn.bf16x2.f32", rows.ptx()), 4);
  EXPECT_EQ(countOf("selp.", rows.ptx()), 4);
}

TEST(Assembler, LogsAreRead) {
  std::vector<EntryUsage> entries = parseUsage(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'a' for 'sm_90'\n"
      "ptxas info    : Function properties for a\n"
      "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size\n"
      "ptxas info    : Compiling entry function 'b' for 'sm_90'\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers, used 0 barriers\n");
  ASSERT_EQ(entries.size(), 2);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[0].registers, 40);
  EXPECT_EQ(entries[0].stackBytes, 16);
  EXPECT_EQ(entries[0].spillBytes, 20);
  EXPECT_EQ(entries[1].registers, 8);
  EXPECT_EQ(entries[1].spillBytes, 0);
}

/// The name of the ptxas that is found where one on PATH answers `--version` with `lines` of shell.
std::string ptxasBehind(const std::string& lines) {
  llvm::SmallString<128> folder;
  EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("titan-ptxas", folder));
  const std::string program = (folder + "/ptxas").str(), before = std::getenv("PATH");
  std::ofstream(program) << "#!/bin/sh\n" << lines << "\n";
  EXPECT_FALSE(llvm::sys::fs::setPermissions(program, llvm::sys::fs::all_all));
  setenv("PATH", (folder + ":" + before).str().c_str(), 1);
  const std::unique_ptr<Assembler> found = Assembler::findPtxas();
  setenv("PATH", before.c_str(), 1);
  llvm::sys::fs::remove_directories(folder);
  return found ? found->name() : "";
}

TEST(Assembler, APtxasThatIsTooOldOrDoesNotRunIsNone) {
  const std::string release = "echo Cuda compilation tools, release ";
  EXPECT_EQ(ptxasBehind(release + "12.4, V12.4.131"), "ptxas 12.4");
  EXPECT_NE(ptxasBehind(release + "11.8, V11.8.89"), "ptxas 11.8");
  EXPECT_NE(ptxasBehind("exec /nowhere/ptxas"), "ptxas ");
}

constexpr const char* emptyKernel = ".version 8.0\n.target sm_80\n.address_size 64\n"
                                    ".visible .entry k()\n{\n\tret;\n}\n";

TEST(Assembler, EachThatIsHereGivesACubin) {
  std::vector<std::unique_ptr<Assembler>> found;
  found.push_back(Assembler::findNvJitLink());
  found.push_back(Assembler::findPtxas());
  std::erase(found, nullptr);
  if (found.empty())
    GTEST_SKIP() << Assembler::whatIsMissing();
  for (const auto& assembler : found) {
    SCOPED_TRACE(assembler->name());
    Result<Cubin> cubin = assembler->assemble(emptyKernel, "sm_90");
    ASSERT_TRUE(cubin.ok()) << cubin.error().message();
    EXPECT_TRUE(cubin->bytes.starts_with("\x7f"
                                         "ELF"));
    ASSERT_EQ(cubin->entries.size(), 1);
    EXPECT_EQ(cubin->entries[0].name, "k");
    Result<Cubin> refused = assembler->assemble("nonsense", "sm_90");
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message().find("does not assemble for sm_90"), std::string::npos);
    Result<Cubin> later = assembler->assemble(emptyKernel, "sm_999");
    ASSERT_FALSE(later.ok());
    EXPECT_EQ(later.error().code(), ErrorCode::Environment);
    EXPECT_TRUE(later.error().message().starts_with(assembler->name() + " does not know sm_999"))
        << later.error().message();
  }
}

} // namespace
} // namespace titan::codegen::cuda::testing
