// Each mistake that a kernel can make, planted once, and what the interpreter says of it.
#include "runtime/device/cuda/testing/ptx/TestKernel.h"

namespace titan::ptx {
namespace {

/// Runs `text` with one operand of `bytes` zeros at p0; the message without the address.
std::string errorWith(const std::string& text, int64_t bytes = 4096, Launch launch = {}) {
  Memory memory;
  launch.entry = "k";
  if (launch.block == std::array<uint32_t, 3>{1, 1, 1})
    launch.block = {32, 1, 1};
  launch.arguments = {put(memory, std::vector<char>(bytes))};
  return runError(text, launch, memory);
}

std::string titanLine(const std::string& operands) {
  return "// titan: k operands(" + operands + ") scalars(0)";
}

constexpr const char* eachThread = "mul.wide.u32 %rd2, %r0, 4;\nadd.s64 %rd3, %rd0, %rd2;\n";

TEST(Checks, NameEntryBlockThreadLineAndInstruction) {
  std::string text = kernelText(1, "mov.u32 %r1, %tid.y;\nmul.wide.u32 %rd2, %r1, 2;\n"
                                   "add.s64 %rd3, %rd0, %rd2;\nld.global.b32 %r4, [%rd3];");
  Launch launch{.grid = {2, 3, 1}, .block = {4, 2, 1}};
  uint32_t line = bodyLine(1) + 3;
  EXPECT_EQ(
      errorWith(text, 64, launch),
      fmt::format("entry k, block (0, 0, 0), thread (0, 1, 0), line {}, ld.global.b32: reads 4 "
                  "bytes at 0x7a00000000000002, which is not a multiple of 4",
                  line));
}

TEST(Checks, FindAccessesOutsideOfAllocations) {
  std::string load = kernelText(1, eachThread + std::string("ld.global.b32 %r4, [%rd3];"));
  EXPECT_EQ(errorWith(load, 128), "");
  EXPECT_TRUE(errorWith(load, 124).ends_with(
      "thread 31, line 12, ld.global.b32: reads 4 bytes at 0x7a0000000000007c, which are in no "
      "allocation"))
      << errorWith(load, 124);
  std::string null = kernelText(1, "mov.b64 %rd2, 0;\nst.global.b32 [%rd2], %r0;");
  EXPECT_NE(errorWith(null).find("writes 4 bytes at 0x0, which are in no allocation"),
            std::string::npos);
}

TEST(Checks, FindAccessesOutsideOfTheirOperand) {
  std::string body = eachThread + std::string("ld.global.b32 %r4, [%rd3];");
  EXPECT_EQ(errorWith(kernelText(1, body, titanLine("read 128"))), "");
  EXPECT_EQ(errorWith(kernelText(1, body, titanLine("both 128"))), "");
  std::string error = errorWith(kernelText(1, body, titanLine("read 120")));
  EXPECT_NE(error.find("thread 30"), std::string::npos) << error;
  EXPECT_NE(error.find("byte 120 of operand 0, which has 120"), std::string::npos) << error;
  EXPECT_NE(errorWith(kernelText(1, body, titanLine("write 128")))
                .find("byte 0 of operand 0, which is only written"),
            std::string::npos);
  std::string store = eachThread + std::string("st.global.b32 [%rd3], %r0;");
  EXPECT_NE(errorWith(kernelText(1, store, titanLine("read 128")))
                .find("byte 0 of operand 0, which is only read"),
            std::string::npos);
  std::string before = "add.s64 %rd3, %rd0, -4;\nst.global.b32 [%rd3], %r0;";
  // Inside the allocation that the operand is a part of.
  Memory memory;
  uint64_t address = put(memory, std::vector<char>(256));
  EXPECT_NE(runError(kernelText(1, before, titanLine("write 128")),
                     {.entry = "k", .arguments = {address + 128}}, memory)
                .find(", before all operands"),
            std::string::npos);
}

TEST(Checks, AllowWhatOneOfOverlappingOperandsAllows) {
  std::string text = kernelText(2, "ld.global.b32 %r1, [%rd0];\nst.global.b32 [%rd1], %r1;",
                                titanLine("read 4, write 4"));
  Memory memory;
  uint64_t address = put(memory, std::vector<int32_t>{7});
  EXPECT_EQ(runError(text, {.entry = "k", .arguments = {address, address}}, memory), "");
}

TEST(Checks, FindReadsOfWhatWasNeverWritten) {
  Memory memory;
  uint64_t address = memory.allocate(128).take();
  memory.markWritten(address, 100);
  std::string body = eachThread + std::string("ld.global.b32 %r4, [%rd3];");
  std::string error = runError(kernelText(1, body, titanLine("read 128")),
                               {.entry = "k", .block = {32, 1, 1}, .arguments = {address}}, memory);
  EXPECT_NE(error.find("thread 25"), std::string::npos) << error;
  EXPECT_NE(error.find("reads byte 0x7a00000000000064 (byte 100 of operand 0), which was never "
                       "written"),
            std::string::npos)
      << error;
  // What a kernel writes is written.
  body = eachThread + std::string("st.global.b32 [%rd3], %r0;\nld.global.b32 %r4, [%rd3];");
  EXPECT_EQ(runError(kernelText(1, body),
                     {.entry = "k", .block = {32, 1, 1}, .arguments = {address}}, memory),
            "");
}

TEST(Checks, FindReadsOfUnwrittenRegisters) {
  EXPECT_EQ(errorWith(kernelText(1, "add.s32 %r1, %r2, 1;\nmov.b32 %r2, 5;")),
            "entry k, block 0, thread 0, line 10, add.s32: reads register %r2, which this thread "
            "never wrote");
  // Written by some lanes only.
  std::string some = kernelText(1, "setp.lt.u32 %p1, %r0, 3;\n@%p1 mov.b32 %r2, 5;\n"
                                   "add.s32 %r1, %r2, 1;");
  EXPECT_NE(errorWith(some).find("thread 3, line 12"), std::string::npos) << errorWith(some);
  std::string guard = "@%p3 mov.b32 %r2, 5;\nsetp.lt.u32 %p3, %r0, 3;";
  EXPECT_NE(errorWith(kernelText(1, guard)).find("register %p3"), std::string::npos);
}

TEST(Checks, GiveUndefinedRegistersValuesThatDifferByOrder) {
  std::string text = kernelText(1, "// implicit-def: %r1\nst.global.b32 [%rd0], %r1;");
  std::vector<uint32_t> seen;
  for (Launch launch : orders({.entry = "k"})) {
    Memory memory;
    launch.arguments = {memory.allocate(4).take()};
    runFine(text, launch, memory);
    seen.push_back(get<uint32_t>(memory, launch.arguments[0], 1)[0]);
  }
  EXPECT_NE(seen[0], seen[1]);
  EXPECT_NE(seen[2], seen[3]);
}

// LLVM names a register that nothing writes, where its value does not matter.
TEST(Checks, GiveUnwrittenRegistersValuesThatDifferByOrder) {
  std::string text = kernelText(1, "mov.b16 %rs1, 7;\nmov.b32 %r1, {%rs2, %rs1};\n"
                                   "shr.u32 %r2, %r1, 16;\nst.global.v2.b32 [%rd0], {%r1, %r2};");
  std::vector<std::vector<uint32_t>> seen;
  for (Launch launch : orders({.entry = "k"})) {
    Memory memory;
    launch.arguments = {memory.allocate(8).take()};
    runFine(text, launch, memory);
    seen.push_back(get<uint32_t>(memory, launch.arguments[0], 2));
    EXPECT_EQ(seen.back()[1], 7);
  }
  EXPECT_NE(seen[0][0], seen[1][0]);
}

TEST(Checks, FindDivisionByZero) {
  EXPECT_NE(errorWith(kernelText(1, "mov.b32 %r1, 0;\ndiv.s32 %r2, %r0, %r1;"))
                .find("divides by zero, whose value PTX leaves open"),
            std::string::npos);
}

TEST(Checks, FindBlocksThatTouchOneByte) {
  Launch two{.grid = {2, 1, 1}};
  std::string store = kernelText(1, "mov.u32 %r1, %ctaid.x;\nst.global.b32 [%rd0], %r1;");
  two.block = {2, 1, 1};
  std::string one = kernelText(1, "mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd2, %r1, 2;\n"
                                  "add.s64 %rd3, %rd0, %rd2;\nst.global.b16 [%rd3], %rs1;");
  std::string error = errorWith(store, 64, two);
  EXPECT_NE(error.find("block 1, thread 0"), std::string::npos) << error;
  EXPECT_NE(error.find("writes byte 0x7a00000000000000, which block 0 wrote in this launch"),
            std::string::npos)
      << error;
  std::string read = kernelText(1, "ld.global.b32 %r1, [%rd0];");
  EXPECT_EQ(errorWith(read, 64, two), "");
  std::string readThenWrite =
      kernelText(1, "ld.global.b32 %r1, [%rd0];\nmov.u32 %r2, %ctaid.x;\nsetp.eq.s32 %p1, %r2, 2;\n"
                    "@%p1 st.global.b32 [%rd0], %r1;");
  Launch three{.grid = {3, 1, 1}, .block = {2, 1, 1}};
  EXPECT_NE(errorWith(readThenWrite, 64, three).find("which several blocks read in this launch"),
            std::string::npos)
      << errorWith(readThenWrite, 64, three);
  three.order = Order::Descending;
  EXPECT_NE(errorWith(readThenWrite, 64, three)
                .find("reads byte 0x7a00000000000000, which block 2 "
                      "wrote"),
            std::string::npos)
      << errorWith(readThenWrite, 64, three);
}

TEST(Checks, LetBlocksTouchNeighbouringBytes) {
  std::string text = kernelText(1, "mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd2, %r1, 2;\n"
                                   "add.s64 %rd3, %rd0, %rd2;\nmov.b16 %rs1, 3;\n"
                                   "st.global.b16 [%rd3], %rs1;");
  EXPECT_EQ(errorWith(text, 4096, {.grid = {1000, 1, 1}, .block = {3, 1, 1}}), "");
}

TEST(Checks, FindLanesThatStoreDifferentValuesToOneAddress) {
  EXPECT_NE(errorWith(kernelText(1, "st.global.b32 [%rd0], %r0;"))
                .find("thread 1, line 10, st.global.b32: writes 0x7a00000000000000, where lane 0 "
                      "writes another value"),
            std::string::npos);
  // Not all of them: two lanes of 32 meet.
  std::string some = kernelText(1, "and.b32 %r1, %r0, 15;\nmul.wide.u32 %rd2, %r1, 4;\n"
                                   "add.s64 %rd3, %rd0, %rd2;\nst.global.b32 [%rd3], %r0;");
  EXPECT_NE(errorWith(some).find("thread 16, line 13, st.global.b32: writes 0x7a00000000000000, "
                                 "where lane 0 writes another value"),
            std::string::npos)
      << errorWith(some);
}

// Shared memory. s is at 1024; each thread has its word at %r1.

const char* const sharedHead = ".shared .align 4 .b8 s[4096];";
const char* const own = "shl.b32 %r1, %r0, 2;\nadd.s32 %r1, %r1, 1024;\n"
                        "mov.u32 %r2, s;\nst.shared.b32 [%r1], %r0;\n";

std::string sharedError(const std::string& body, uint32_t threads = 64,
                        Order order = Order::Ascending) {
  return errorWith(kernelText(1, own + body, sharedHead), 64,
                   {.block = {threads, 1, 1}, .order = order});
}

TEST(Checks, FindSharedRacesBetweenWarps) {
  // The word of the first warp's lane.
  std::string other = "and.b32 %r3, %r1, -129;\nld.shared.b32 %r4, [%r3];";
  EXPECT_EQ(sharedError("bar.sync 0;\n" + other), "");
  std::string error = sharedError(other);
  EXPECT_NE(error.find("thread 32, line 15, ld.shared.b32: reads shared byte 0, which thread 0 "
                       "wrote without a barrier between"),
            std::string::npos)
      << error;
  std::string store = "xor.b32 %r3, %r1, 128;\nst.shared.b32 [%r3], %r0;";
  EXPECT_EQ(sharedError("bar.sync 0;\n" + store), "");
  EXPECT_NE(sharedError(store).find("writes shared byte 128, which thread 0 wrote without"),
            std::string::npos)
      << sharedError(store);
  // A write after others' reads.
  std::string late = "bar.sync 0;\n" + other + "\nst.shared.b32 [%r1], %r0;";
  EXPECT_NE(sharedError(late, 64, Order::Descending)
                .find("thread 0, line 17, st.shared.b32: writes shared byte 0, which other threads "
                      "read without a barrier between"),
            std::string::npos)
      << sharedError(late, 64, Order::Descending);
  EXPECT_EQ(sharedError("bar.sync 0;\n" + other + "\nbar.sync 0;\nst.shared.b32 [%r1], %r0;"), "");
  std::string all = "bar.sync 0;\nld.shared.b32 %r4, [s];\nst.shared.b32 [%r1], %r0;";
  EXPECT_NE(sharedError(all).find("which other threads read without a barrier between"),
            std::string::npos)
      << sharedError(all);
}

TEST(Checks, FindSharedRacesBetweenLanes) {
  std::string other = "xor.b32 %r3, %r1, 4;\nld.shared.b32 %r4, [%r3];";
  EXPECT_NE(sharedError(other, 32).find("thread 0, line 15, ld.shared.b32: reads shared byte 4, "
                                        "which thread 1 wrote"),
            std::string::npos)
      << sharedError(other, 32);
  EXPECT_EQ(sharedError("bar.warp.sync -1;\n" + other, 32), "");
  EXPECT_EQ(sharedError("bar.warp.sync -1;\n" + other, 64), "");
  // A shuffle orders registers, not memory.
  EXPECT_NE(sharedError("shfl.sync.bfly.b32 %r5, %r0, 1, 31, -1;\n" + other, 32), "");
  std::string late = "bar.warp.sync -1;\n" + other + "\nst.shared.b32 [%r1], %r0;";
  EXPECT_NE(sharedError(late, 32).find("read without a barrier between"), std::string::npos);
  EXPECT_EQ(
      sharedError("bar.warp.sync -1;\n" + other + "\nbar.warp.sync -1;\nst.shared.b32 [%r1], %r0;",
                  32),
      "");
}

TEST(Checks, FindDifferentValuesOfOneSharedStore) {
  EXPECT_NE(sharedError("st.shared.b32 [s+2048], %r0;", 32)
                .find("writes shared byte 2048, where thread 0 writes another value"),
            std::string::npos);
  EXPECT_EQ(sharedError("mov.b32 %r5, 1;\nst.shared.b32 [s+2048], %r5;", 32), "");
}

TEST(Checks, FindSharedRacesOfLanesThatReadTheSame) {
  // Lane l and lane l + 16 read the word of lane l.
  std::string halves = "and.b32 %r3, %r1, -65;\nld.shared.b32 %r4, [%r3];\n";
  std::string write = "st.shared.b32 [%r1], %r0;";
  EXPECT_NE(sharedError(halves, 32)
                .find("thread 16, line 15, ld.shared.b32: reads shared byte 0, "
                      "which thread 0 wrote"),
            std::string::npos)
      << sharedError(halves, 32);
  EXPECT_NE(sharedError("bar.sync 0;\n" + halves + write, 32)
                .find("writes shared byte 0, which other threads read without a barrier between"),
            std::string::npos);
  EXPECT_EQ(sharedError("bar.sync 0;\n" + halves + "bar.warp.sync 0xffffffff;\n" + write, 32), "");
  // Each lane's own word, read twice, is its own.
  EXPECT_EQ(sharedError("bar.sync 0;\nld.shared.b32 %r4, [%r1];\n" + write, 32), "");
}

TEST(Checks, FindReadsOfUnwrittenSharedMemory) {
  EXPECT_NE(sharedError("ld.shared.b32 %r3, [s+2048];", 32)
                .find("reads shared byte 2048, which was never written"),
            std::string::npos);
  // What one block wrote is not there for the next.
  std::string text = kernelText(1,
                                "mov.u32 %r1, %ctaid.x;\nsetp.eq.s32 %p1, %r1, 0;\n"
                                "@%p1 st.shared.b32 [s], %r1;\nbar.sync 0;\n"
                                "ld.shared.b32 %r2, [s];",
                                sharedHead);
  EXPECT_NE(errorWith(text, 64, {.grid = {2, 1, 1}}).find("block 1, thread 0"), std::string::npos);
}

TEST(Checks, FindAccessesOutsideOfSharedMemory) {
  EXPECT_NE(sharedError("ld.shared.b32 %r3, [s+4096];", 32)
                .find("reads 4 bytes at shared address 5120: the block's 4096 bytes start at 1024"),
            std::string::npos);
  EXPECT_NE(sharedError("mov.b32 %r5, 0;\nst.shared.b32 [%r5], %r5;", 32)
                .find("writes 4 bytes at shared address 0: the block's"),
            std::string::npos);
  EXPECT_NE(sharedError("ld.shared.b32 %r3, [s+2];", 32).find("not a multiple of 4"),
            std::string::npos);
}

// Lanes and warps that have to be together.

TEST(Checks, FindBarriersThatSomeThreadsMiss) {
  std::string exits = kernelText(1, "setp.lt.u32 %p1, %r0, 3;\n@%p1 bra L;\nret;\nL:\nbar.sync 0;");
  EXPECT_NE(errorWith(exits).find("waits for lanes 0xfffffff8, which have exited"),
            std::string::npos)
      << errorWith(exits);
  std::string parts = kernelText(1, "setp.lt.u32 %p1, %r0, 3;\n@%p1 bra L;\nbar.sync 0;\nret;\n"
                                    "L:\nbar.sync 1;");
  EXPECT_NE(errorWith(parts).find("lanes 0xfffffff8 wait for lanes 0x00000007, which wait at line "
                                  "15"),
            std::string::npos)
      << errorWith(parts);
  std::string warps =
      kernelText(1, "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra L;\nret;\nL:\nbar.sync 0;");
  EXPECT_NE(errorWith(warps, 64, {.block = {64, 1, 1}})
                .find("waits at barrier 0 for warp 1, which has exited"),
            std::string::npos)
      << errorWith(warps, 64, {.block = {64, 1, 1}});
  std::string numbers = kernelText(1, "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra L;\nbar.sync 1;\nret;\n"
                                      "L:\nbar.sync 0;");
  EXPECT_NE(errorWith(numbers, 64, {.block = {64, 1, 1}}).find("for warp 0, which is at barrier 0"),
            std::string::npos);
  EXPECT_NE(errorWith(kernelText(1, "bar.sync 0, 64;"))
                .find("is a barrier of 64 threads, in a "
                      "block of 32"),
            std::string::npos);
  EXPECT_EQ(errorWith(kernelText(1, "bar.sync 0, 32;")), "");
}

TEST(Checks, WaitForLanesThatComeLater) {
  // The join lies before the branch that leads back to it.
  std::string text = kernelText(1, "setp.lt.u32 %p1, %r0, 3;\n@%p1 bra Cold;\nJoin:\nbar.sync 0;\n"
                                   "shfl.sync.idx.b32 %r1, %r0, 5, 31, -1;\nst.global.b32 [%rd0], "
                                   "%r1;\nret;\nCold:\nbra Join;");
  EXPECT_EQ(errorWith(text), "");
}

TEST(Checks, FindShufflesThatSomeLanesMiss) {
  std::string some = kernelText(1, "setp.lt.u32 %p1, %r0, 3;\n@%p1 bra L;\nret;\nL:\n"
                                   "shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;");
  EXPECT_NE(errorWith(some).find("which have exited"), std::string::npos);
  // The mask names those that are there, but lane 3 is read.
  std::string reads = kernelText(1, "setp.lt.u32 %p1, %r0, 3;\n@%p1 bra L;\nret;\nL:\n"
                                    "shfl.sync.bfly.b32 %r1, %r0, 1, 31, 7;");
  EXPECT_NE(
      errorWith(reads).find("thread 2, line 14, shfl.sync.bfly.b32: reads lane 3, which takes "
                            "no part: lanes are 0x00000007"),
      std::string::npos)
      << errorWith(reads);
  EXPECT_NE(errorWith(kernelText(1, "shfl.sync.idx.b32 %r1, %r0, 1, 31, 7;"))
                .find("takes part with lanes 0x00000007, but runs with 0xffffffff"),
            std::string::npos);
}

TEST(Checks, EndLoopsWithoutEnd) {
  Launch launch{.block = {32, 1, 1}, .warpBudget = 1000};
  EXPECT_NE(errorWith(kernelText(1, "L:\nbra L;"), 64, launch)
                .find("has run 1000 instructions: an endless loop?"),
            std::string::npos);
}

TEST(Checks, KeepModuleVariablesConstant) {
  std::string head = ".global .align 4 .b32 t[2] = {7, 9};";
  EXPECT_EQ(
      errorWith(kernelText(1, "ld.global.nc.b32 %r1, [t+4];\nst.global.b32 [%rd0], %r1;", head)),
      "");
  EXPECT_NE(errorWith(kernelText(1, "mov.b64 %rd2, t;\nst.global.b32 [%rd2], %r0;", head))
                .find("a variable of the module: these are only read"),
            std::string::npos);
  EXPECT_NE(errorWith(kernelText(1, "ld.global.b32 %r1, [t+8];", head))
                .find("behind the variables of the module"),
            std::string::npos);
  EXPECT_NE(errorWith(kernelText(1, "ld.global.nc.b32 %r1, [%rd0];", head))
                .find("as data that nobody writes: only variables"),
            std::string::npos);
  EXPECT_NE(
      errorWith(kernelText(1, "ld.const.b32 %r1, [%rd0];", head)).find("where no constant lies"),
      std::string::npos);
}

TEST(Checks, ResolveGenericAddresses) {
  std::string text = kernelText(1,
                                "mov.b64 %rd2, s;\ncvta.shared.u64 %rd3, %rd2;\n"
                                "mov.b32 %r1, 5;\nst.b32 [%rd3], %r1;\nbar.warp.sync -1;\n"
                                "ld.shared.b32 %r2, [s];\n"
                                "st.b32 [%rd0], %r2;",
                                sharedHead);
  EXPECT_EQ(errorWith(text), "");
  std::string mixed = kernelText(1,
                                 "mov.b64 %rd2, s;\ncvta.shared.u64 %rd3, %rd2;\n"
                                 "setp.eq.s32 %p1, %r0, 0;\nselp.b64 %rd4, %rd3, %rd0, %p1;\n"
                                 "st.b32 [%rd4], %r0;",
                                 sharedHead);
  EXPECT_NE(errorWith(mixed).find("some lanes address shared memory and some global"),
            std::string::npos);
}

TEST(Checks, AskThatALaunchFitsItsEntry) {
  std::string text = kernelText(1, "");
  std::string limited = text;
  limited.replace(limited.find(")\n{"), 2, ")\n.reqntid 64\n");
  Memory memory;
  uint64_t address = put(memory, std::vector<char>(64));
  EXPECT_EQ(runError(text, {.entry = "j", .arguments = {address}}, memory),
            "the module has no entry j");
  EXPECT_EQ(runError(text, {.entry = "k"}, memory), "entry k has 1 parameters, not 0");
  EXPECT_EQ(runError(text, {.entry = "k", .block = {32, 33, 1}, .arguments = {address}}, memory),
            "entry k: no launch has a grid of 1 x 1 x 1 blocks of 32 x 33 x 1 threads");
  EXPECT_EQ(runError(limited, {.entry = "k", .block = {32, 1, 1}, .arguments = {address}}, memory),
            "entry k is made for exactly 64 threads a block, not 32");
  limited.replace(limited.find(".reqntid"), 8, ".maxntid");
  EXPECT_EQ(runError(limited, {.entry = "k", .block = {96, 1, 1}, .arguments = {address}}, memory),
            "entry k is made for at most 64 threads a block, not 96");
  EXPECT_EQ(runError(text, {.entry = "k", .sharedBytes = 300000, .arguments = {address}}, memory),
            "entry k wants 300000 bytes of shared memory, a block has at most 232448");
  EXPECT_EQ(runError(text,
                     {.entry = "k", .grid = {2, 3, 1}, .arguments = {address}, .blocks = {5, 6}},
                     memory),
            "entry k: no block 6 in a grid of 6");
}

} // namespace
} // namespace titan::ptx
