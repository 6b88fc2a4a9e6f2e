// cp.async: what comes when, and what may touch the bytes until then.
#include "runtime/device/cuda/testing/ptx/TestKernel.h"

#include <numeric>

namespace titan::ptx {
namespace {

/// %r1: the thread's 16 bytes of shared memory; %rd2: its 16 bytes of p0; %rd3: those of p1.
constexpr const char* places = R"(.shared .align 16 .b8 tile[4096];
mov.u32 %r30, tile;
mul.lo.u32 %r29, %r0, 16;
add.u32 %r1, %r30, %r29;
mul.wide.u32 %rd30, %r0, 16;
add.s64 %rd2, %rd0, %rd30;
add.s64 %rd3, %rd1, %rd30;
)";
constexpr const char* copy = "cp.async.cg.shared.global [%r1], [%rd2], 16;\n";
constexpr const char* commit = "cp.async.commit_group;\n";
constexpr const char* waitAll = "cp.async.wait_all;\n";
constexpr const char* barrier = "bar.sync 0;\n";
constexpr const char* read = "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r1];\n";
constexpr const char* write = "st.global.v4.b32 [%rd3], {%r4, %r5, %r6, %r7};\n";
/// Reads what the next thread copied; the last one what the first did.
constexpr const char* readNext = "add.u32 %r2, %r29, 16;\nand.b32 %r2, %r2, 511;\n"
                                 "add.u32 %r2, %r2, %r30;\n"
                                 "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r2];\n";

std::vector<uint16_t> numbers(int count) {
  std::vector<uint16_t> values(count);
  std::iota(values.begin(), values.end(), 1);
  return values;
}

/// What the interpreter says of `body` behind the places, in each order the same.
std::string errorOf(const std::string& body, int64_t bytes = 4096, uint32_t threads = 32) {
  std::vector<std::string> errors;
  for (Launch launch : orders({.entry = "k", .block = {threads, 1, 1}})) {
    Memory memory;
    launch.arguments = {put(memory, std::vector<char>(bytes)), memory.allocate(4096).take()};
    errors.push_back(runError(kernelText(2, places + body), launch, memory));
  }
  for (const std::string& error : errors)
    EXPECT_EQ(error.empty(), errors[0].empty()) << error;
  return errors[0];
}

void expectError(const std::string& error, const std::string& part) {
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

/// The 256 numbers of 32 threads after `body`.
std::vector<uint16_t> resultOf(const std::string& body, Counters* counters = nullptr) {
  std::vector<std::vector<uint16_t>> results;
  for (Launch launch : orders({.entry = "k", .block = {32, 1, 1}})) {
    Memory memory;
    launch.arguments = {put(memory, numbers(256)), memory.allocate(512).take()};
    Counters found = runFine(kernelText(2, places + body + read + write), launch, memory);
    if (counters)
      *counters = found;
    results.push_back(get<uint16_t>(memory, launch.arguments[1], 256));
    EXPECT_EQ(results.back(), results[0]);
  }
  return results[0];
}

TEST(AsyncCopies, BringAllWidths) {
  Counters counters;
  EXPECT_EQ(resultOf(std::string(copy) + waitAll, &counters), numbers(256));
  EXPECT_EQ(counters.globalLoads.bytes, 512);
  EXPECT_EQ(counters.globalLoads.byWidth[4], 1);
  EXPECT_EQ(counters.globalLoads.sectors, 16);
  EXPECT_EQ(counters.sharedStores.bytes, 512);
  EXPECT_EQ(counters.sharedStores.byWidth[4], 1);
  EXPECT_EQ(counters.sharedStores.bankConflicts, 0);
  for (int bytes : {4, 8, 16}) {
    std::string body;
    for (int at = 0; at < 16; at += bytes)
      body += fmt::format("cp.async.ca.shared.global [%r1+{}], [%rd2+{}], {};\n", at, at, bytes);
    EXPECT_EQ(resultOf(body + commit + "cp.async.wait_group 0;\n"), numbers(256)) << bytes;
  }
}

TEST(AsyncCopies, FillWithZeros) {
  // Thread t reads 2 (t % 9) bytes.
  std::string body = "rem.u32 %r2, %r0, 9;\nmul.lo.u32 %r2, %r2, 2;\n"
                     "cp.async.cg.shared.global [%r1], [%rd2], 16, %r2;\n";
  Counters counters;
  std::vector<uint16_t> wanted = numbers(256), found = resultOf(body + waitAll, &counters);
  int64_t bytes = 0;
  for (int i = 0; i < 256; ++i) {
    bool isRead = i % 8 < i / 8 % 9;
    bytes += isRead ? 2 : 0;
    EXPECT_EQ(found[i], isRead ? wanted[i] : 0) << i;
  }
  EXPECT_EQ(counters.globalLoads.bytes, bytes);
  EXPECT_EQ(counters.sharedStores.bytes, 512);
}

TEST(AsyncCopies, OfNoBytesNeedNoSource) {
  EXPECT_EQ(errorOf("cp.async.cg.shared.global [%r1], [%rd2+65536], 16, 0;\n" +
                    std::string(waitAll) + read),
            "");
  expectError(errorOf("cp.async.cg.shared.global [%r1], [%rd2+65536], 16, 2;\n"),
              "reads 2 bytes at 0x7a00000000010000, which are in no allocation");
}

TEST(AsyncCopies, AreNotThereBeforeTheirWait) {
  expectError(errorOf(std::string(copy) + commit + read),
              "ld.shared.v4.b32: reads shared byte 0, which a copy of thread 0 is still to write: "
              "it has not waited for it");
  // A barrier is no wait.
  expectError(errorOf(std::string(copy) + commit + barrier + read), "it has not waited for it");
  // A wait for what was committed is none for what was not.
  expectError(errorOf(std::string(copy) + "cp.async.wait_group 0;\n" + read),
              "it has not waited for it");
  EXPECT_EQ(errorOf(std::string(copy) + waitAll + read), "");
  // The wait of another lane is none.
  expectError(errorOf(std::string(copy) + commit + "setp.lt.u32 %p1, %r0, 5;\n@%p1 bra on;\n" +
                      waitAll + "on:\n" + read),
              "thread 0, line 24, ld.shared.v4.b32: reads shared byte 0, which a copy of thread 0");
}

TEST(AsyncCopies, NeedABarrierForOtherThreads) {
  expectError(errorOf(std::string(copy) + waitAll + readNext),
              "reads shared byte 16, which thread 1 wrote without a barrier between");
  EXPECT_EQ(errorOf(std::string(copy) + waitAll + barrier + readNext), "");
  EXPECT_EQ(errorOf(std::string(copy) + waitAll + "bar.warp.sync 0xffffffff;\n" + readNext), "");
  // The barrier must stand behind the wait.
  expectError(errorOf(std::string(copy) + barrier + waitAll + readNext),
              "which thread 1 wrote without a barrier between");
}

TEST(AsyncCopies, WaitForGroupsInOrder) {
  auto into = [](int at) {
    return fmt::format("cp.async.cg.shared.global [%r1+{}], [%rd2], 16;\n{}", at, commit);
  };
  auto readFrom = [](int at) { return fmt::format("ld.shared.b32 %r8, [%r1+{}];\n", at); };
  std::string three = into(0) + into(512) + into(1024);
  EXPECT_EQ(errorOf(three + "cp.async.wait_group 2;\n" + readFrom(0) + waitAll), "");
  expectError(errorOf(three + "cp.async.wait_group 2;\n" + readFrom(512) + waitAll),
              "it has not waited for it");
  EXPECT_EQ(errorOf(three + "cp.async.wait_group 1;\n" + readFrom(512) + waitAll), "");
  expectError(errorOf(three + "cp.async.wait_group 1;\n" + readFrom(1024) + waitAll),
              "it has not waited for it");
  EXPECT_EQ(errorOf(three + "cp.async.wait_group 0;\n" + readFrom(1024)), "");
  // An empty group is one.
  EXPECT_EQ(errorOf(into(0) + commit + "cp.async.wait_group 1;\n" + readFrom(0)), "");
  // Lanes count for themselves: the first five have committed one group more.
  expectError(errorOf(into(0) + "setp.ge.u32 %p1, %r0, 5;\n@%p1 bra on;\n" + commit + "on:\n" +
                      "cp.async.wait_group 1;\n" + readFrom(0)),
              "thread 5, ");
}

TEST(AsyncCopies, AreAloneWithTheirBytes) {
  std::string store = "st.shared.b32 [%r1+4], %r0;\n";
  expectError(errorOf(std::string(copy) + store),
              "writes shared byte 4, where a copy of thread 0 is on its way");
  expectError(errorOf(std::string(copy) + commit + barrier + copy),
              "cp.async.cg.shared.global: writes shared byte 0, where a copy of thread 0 is on its "
              "way");
  expectError(errorOf("cp.async.cg.shared.global [%r30], [%rd2], 16;\n"),
              "thread 1, line 18, cp.async.cg.shared.global: writes shared byte 0, where a copy of "
              "thread 0 is on its way");
  EXPECT_EQ(errorOf(std::string(copy) + waitAll + store), "");
  // What others may still read is no place for a copy.
  std::string filled = "mov.b32 %r8, 0;\nst.shared.v4.b32 [%r1], {%r8, %r8, %r8, %r8};\n";
  expectError(errorOf(filled + barrier + readNext + copy + waitAll),
              "which thread 31 read without a barrier between");
  EXPECT_EQ(errorOf(filled + barrier + readNext + barrier + copy + waitAll), "");
}

TEST(AsyncCopies, ComeBeforeTheirThreadExits) {
  expectError(errorOf(copy), "ret: exits before its copies have come: it waits for none");
  expectError(errorOf(std::string(copy) + commit), "exits before its copies have come");
}

TEST(AsyncCopies, AreCheckedAsLoadsAndStoresAre) {
  expectError(errorOf("cp.async.cg.shared.global [%r1+8], [%rd2], 16;\n"),
              "writes 16 bytes at 0x408, which is not a multiple of 16");
  expectError(errorOf("cp.async.cg.shared.global [%r1], [%rd2+4], 16;\n"),
              "reads 16 bytes at 0x7a00000000000004, which is not a multiple of 16");
  expectError(errorOf("cp.async.cg.shared.global [%r1+4096], [%rd2], 16;\n"),
              "writes 16 bytes at shared address 5120: the block's 4096 bytes start at 1024");
  expectError(errorOf(copy, 500), "thread 31, line 18, cp.async.cg.shared.global: reads 16 bytes "
                                  "at 0x7a000000000001f0, which are in no allocation");
  expectError(errorOf("mov.b32 %r2, 17;\ncp.async.cg.shared.global [%r1], [%rd2], 16, %r2;\n"),
              "reads 17 bytes to write 16");
  // What nobody wrote, and what another operand allows.
  Memory memory;
  Launch launch{.entry = "k", .block = {32, 1, 1}};
  launch.arguments = {memory.allocate(512).take(), memory.allocate(512).take()};
  std::string body = std::string(places) + copy + waitAll;
  expectError(runError(kernelText(2, body), launch, memory), "which was never written");
  memory.markWritten(launch.arguments[0], 512);
  expectError(runError(kernelText(2, body, "// titan: k operands(write 512, read 512) scalars(0)"),
                       launch, memory),
              "byte 0 of operand 0, which is only written");
  expectError(runError(kernelText(2, body, "// titan: k operands(read 504, read 512) scalars(0)"),
                       launch, memory),
              "byte 496 of operand 0, which has 504");
}

TEST(AsyncCopies, OfOtherBlocksResultsAreFound) {
  Memory memory;
  Launch launch{.entry = "k", .grid = {2, 1, 1}, .block = {32, 1, 1}};
  launch.arguments = {put(memory, numbers(256)), memory.allocate(512).take()};
  expectError(
      runError(kernelText(2, std::string(places) + copy + waitAll + "st.global.b32 [%rd2], %r0;\n"),
               launch, memory),
      "block 0 wrote in this launch");
}

TEST(AsyncCopies, OfOtherFormsAreRefused) {
  auto errorIn = [](const std::string& line) { return parseError(kernelText(1, line)); };
  expectError(errorIn("cp.async.cg.shared.global [%r1], [%rd0], 8;"),
              "cp.async.cg.shared.global copies 16 bytes, not 8");
  expectError(errorIn("cp.async.ca.shared.global [%r1], [%rd0], 2;"),
              "cp.async.ca.shared.global copies 4, 8 or 16 bytes, not 2");
  expectError(errorIn("cp.async.ca.shared.global [%r1], [%rd0];"),
              "has two addresses and a number of bytes");
  expectError(errorIn("cp.async.cx.shared.global [%r1], [%rd0], 4;"), "no instruction");
  expectError(errorIn("cp.async.cg.shared.global [%r1], [%rd0], 16, %p1;"), "a predicate");
  expectError(errorIn("cp.async.wait_group %r1;"), "the groups that a wait leaves are a number");
  expectError(errorIn("ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1}, [%r2];"), "no instruction");
  expectError(errorIn("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r2];"),
              "has a list of 2 registers and an address");
}

} // namespace
} // namespace titan::ptx
