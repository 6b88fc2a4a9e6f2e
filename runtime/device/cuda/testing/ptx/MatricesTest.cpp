// ldmatrix and mma: which lane has which element, by formulas that go from elements to lanes.
#include "runtime/device/cuda/testing/ptx/TestKernel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace titan::ptx {
namespace {

constexpr const char* sharedTile = ".shared .align 16 .b8 tile[8192];\n";

/// Copies the first `bytes` of p0 to shared memory; lane l has the word l of p1 as an address
/// there.
std::string withTile(const std::string& body, int bytes = 2048) {
  std::string text = std::string(sharedTile) + "mov.u32 %r30, tile;\nmul.lo.u32 %r29, %r0, 16;\n"
                                               "add.u32 %r29, %r29, %r30;\n"
                                               "mul.wide.u32 %rd30, %r0, 16;\n"
                                               "add.s64 %rd30, %rd30, %rd0;\n";
  for (int at = 0; at < bytes; at += 512)
    text += fmt::format("ld.global.v4.b32 {{%r20, %r21, %r22, %r23}}, [%rd30+{}];\n"
                        "st.shared.v4.b32 [%r29+{}], {{%r20, %r21, %r22, %r23}};\n",
                        at, at);
  return text +
         "bar.sync 0;\nmul.wide.u32 %rd31, %r0, 4;\nadd.s64 %rd31, %rd31, %rd1;\n"
         "ld.global.b32 %r28, [%rd31];\nadd.u32 %r28, %r28, %r30;\n" +
         body;
}

std::string load(int count, bool transposed, const std::string& address = "%r28") {
  std::string list;
  for (int i = 0; i < count; ++i)
    list += fmt::format("{}%r{}", i ? ", " : "", 1 + i);
  return fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {{{}}}, [{}];\n", count,
                     transposed ? ".trans" : "", list, address);
}

std::string storeResults(int count) {
  std::string text =
      fmt::format("mul.wide.u32 %rd29, %r0, {};\nadd.s64 %rd29, %rd29, %rd2;\n", 4 * count);
  for (int i = 0; i < count; ++i)
    text += fmt::format("st.global.b32 [%rd29+{}], %r{};\n", 4 * i, 1 + i);
  return text;
}

TEST(LoadMatrix, GivesEachElementToItsLane) {
  std::vector<uint16_t> values(1024);
  std::iota(values.begin(), values.end(), 1000);
  std::vector<uint32_t> rows(32);
  std::iota(rows.begin(), rows.end(), 0);
  std::mt19937 generator(3);
  std::shuffle(rows.begin(), rows.end(), generator);
  for (uint32_t& row : rows)
    row = row * 48; // bytes, so rows lie apart
  for (int count : {1, 2, 4})
    for (bool transposed : {false, true})
      for (Launch launch : orders({.entry = "k", .block = {32, 1, 1}})) {
        Memory memory;
        launch.arguments = {put(memory, values), put(memory, rows),
                            memory.allocate(128 * count).take()};
        runFine(kernelText(3, withTile(load(count, transposed) + storeResults(count))), launch,
                memory);
        auto found = get<uint16_t>(memory, launch.arguments[2], int64_t{64} * count);
        for (int matrix = 0; matrix < count; ++matrix)
          for (int row = 0; row < 8; ++row)
            for (int column = 0; column < 8; ++column) {
              const int line = transposed ? column : row, place = transposed ? row : column;
              const int lane = 4 * line + place / 2;
              EXPECT_EQ(found[(lane * count + matrix) * 2 + place % 2],
                        values[rows[matrix * 8 + row] / 2 + column])
                  << matrix << ", " << row << ", " << column;
            }
      }
}

TEST(LoadMatrix, TakesAddressesOfTheLanesThatNameRows) {
  // Those of the others lie outside.
  std::vector<uint16_t> values(1024, 7);
  for (int count : {1, 2}) {
    std::vector<uint32_t> rows(32, 1 << 20);
    for (int i = 0; i < 8 * count; ++i)
      rows[i] = 16 * i;
    Memory memory;
    Launch launch{.entry = "k", .block = {32, 1, 1}};
    launch.arguments = {put(memory, values), put(memory, rows),
                        memory.allocate(128 * count).take()};
    runFine(kernelText(3, withTile(load(count, false) + storeResults(count))), launch, memory);
  }
}

/// What the interpreter says of `body`, for 32 threads or `threads`, with rows `stride` bytes
/// apart.
std::string errorOf(const std::string& body, uint32_t threads = 32, uint32_t stride = 16,
                    Counters* counters = nullptr) {
  Memory memory;
  std::vector<uint32_t> rows(32);
  for (int i = 0; i < 32; ++i)
    rows[i] = stride * i;
  Launch launch{.entry = "k", .block = {threads, 1, 1}};
  launch.arguments = {put(memory, std::vector<char>(8192)), put(memory, rows),
                      memory.allocate(512).take()};
  Result<Counters> done = run(*parsed(kernelText(3, body)), launch, memory);
  if (done.ok() && counters)
    *counters = *done;
  return done.ok() ? "" : done.error().message();
}

void expectError(const std::string& error, const std::string& part) {
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST(LoadMatrix, IsCheckedAsLoadsAre) {
  EXPECT_EQ(errorOf(withTile(load(4, false))), "");
  expectError(errorOf(withTile(load(4, false, "%r28+8"))),
              "thread 0, line 31, ldmatrix.sync.aligned.m8n8.x4.shared.b16: reads 16 bytes at");
  expectError(errorOf(withTile(load(4, false, "%r28+8"))), "which is not a multiple of 16");
  expectError(errorOf(withTile(load(4, false, "%r28+8192"))),
              "the block's 8192 bytes start at 1024");
  expectError(errorOf(withTile(load(4, false), 512), 32, 32),
              "thread 16, line 25, ldmatrix.sync.aligned.m8n8.x4.shared.b16: reads shared byte "
              "512, which was never written");
}

TEST(LoadMatrix, NeedsABarrierBehindWritesOfOtherLanes) {
  std::string write = "st.shared.b32 [%r29], %r0;\n";
  expectError(errorOf(withTile(write + load(4, false))),
              "thread 0, line 32, ldmatrix.sync.aligned.m8n8.x4.shared.b16: reads shared byte 0, "
              "which thread 0 wrote without a barrier between");
  EXPECT_EQ(errorOf(withTile(write + "bar.warp.sync 0xffffffff;\n" + load(4, false))), "");
  expectError(errorOf(withTile(load(4, false) + write)),
              "writes shared byte 0, which other threads read without a barrier between");
  EXPECT_EQ(errorOf(withTile(load(4, false) + "bar.warp.sync 0xffffffff;\n" + write)), "");
  // Two warps.
  std::string both = withTile(load(4, false) + "bar.warp.sync 0xffffffff;\n" + write, 1024);
  for (size_t at; (at = both.find("mul.wide.u32 %rd31, %r0, 4;")) != std::string::npos;)
    both.replace(at, 27, "and.b32 %r27, %r0, 31;\nmul.wide.u32 %rd31, %r27, 4;");
  expectError(errorOf(both, 64), "without a barrier between");
}

TEST(LoadMatrix, CountsBankConflicts) {
  for (auto [stride, conflicts] :
       {std::pair<uint32_t, int64_t>{16, 0}, {48, 0}, {32, 4}, {128, 28}}) {
    Counters counters;
    EXPECT_EQ(errorOf(withTile(load(4, false), 4096), 32, stride, &counters), "");
    EXPECT_EQ(counters.sharedLoads.requests, 1);
    EXPECT_EQ(counters.sharedLoads.bytes, 512);
    EXPECT_EQ(counters.sharedLoads.byWidth[4], 1);
    EXPECT_EQ(counters.sharedLoads.bankConflicts, conflicts) << stride;
  }
}

constexpr const char* multiplication =
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r14, %r15, %r16, %r17}, "
    "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7, %r8, %r9, %r10};\n";

TEST(Matrices, NeedAllLanes) {
  std::string zeros;
  for (int i = 1; i <= 10; ++i)
    zeros += fmt::format("mov.b32 %r{}, 0;\n", i);
  for (const std::string& instruction : {load(4, false), std::string(multiplication)}) {
    expectError(errorOf(withTile(zeros + instruction), 31),
                "is for the 32 lanes of a warp, and this one has 31");
    expectError(errorOf(withTile(zeros + "setp.lt.u32 %p1, %r0, 5;\n@%p1 bra after;\n" +
                                 instruction + "after:\n")),
                "which have exited");
    expectError(parseError(kernelText(1, "@%p1 " + instruction)),
                "under a predicate is not for all lanes: branch around it");
  }
}

using Matrix = std::vector<float>; // row by row

uint16_t bf16(float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); }

/// a (16 x 16) b (16 x 8) + c (16 x 8), each element in the lane and register that the PTX ISA
/// says.
Matrix product(const Matrix& a, const Matrix& b, const Matrix& c, Launch launch) {
  std::vector<uint16_t> lanes(32 * 20);
  auto half = [&](int lane, int reg, int k) -> uint16_t& {
    return lanes[(lane * 10 + reg) * 2 + k % 2];
  };
  for (int k = 0; k < 16; ++k) {
    for (int i = 0; i < 16; ++i)
      half(i % 8 * 4 + k % 8 / 2, i / 8 + 2 * (k / 8), k) = bf16(a[i * 16 + k]);
    for (int j = 0; j < 8; ++j)
      half(j * 4 + k % 8 / 2, 4 + k / 8, k) = bf16(b[k * 8 + j]);
  }
  auto registerOf = [](int i, int j) { return std::pair(i % 8 * 4 + j / 2, i / 8 * 2 + j % 2); };
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      auto [lane, reg] = registerOf(i, j);
      std::memcpy(&half(lane, 6 + reg, 0), &c[i * 8 + j], 4);
    }
  std::string body = "mul.wide.u32 %rd30, %r0, 40;\nadd.s64 %rd30, %rd30, %rd0;\n";
  for (int i = 0; i < 10; ++i)
    body += fmt::format("ld.global.b32 %r{}, [%rd30+{}];\n", 1 + i, 4 * i);
  body += multiplication;
  body += "mul.wide.u32 %rd29, %r0, 16;\nadd.s64 %rd29, %rd29, %rd1;\n"
          "st.global.v4.b32 [%rd29], {%r14, %r15, %r16, %r17};\n";
  Memory memory;
  launch.entry = "k";
  launch.block = {32, 1, 1};
  launch.arguments = {put(memory, lanes), memory.allocate(512).take()};
  Counters counters = runFine(kernelText(2, body), launch, memory);
  EXPECT_EQ(counters.matrix, 32);
  std::vector<float> found = get<float>(memory, launch.arguments[1], 128);
  Matrix result(128);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      auto [lane, reg] = registerOf(i, j);
      result[i * 8 + j] = found[lane * 4 + reg];
    }
  return result;
}

/// Values that bf16 holds.
Matrix randomMatrix(int count, std::mt19937& generator, bool whole) {
  std::uniform_int_distribution<int> numbers(-128, 128);
  std::normal_distribution<float> normal;
  Matrix result(count);
  for (float& value : result)
    value = whole ? static_cast<float>(numbers(generator))
                  : std::bit_cast<float>(uint32_t{bf16(normal(generator))} << 16);
  return result;
}

TEST(Multiply, WholeNumbersAreExact) {
  std::mt19937 generator(1);
  Matrix a = randomMatrix(256, generator, true), b = randomMatrix(128, generator, true),
         c = randomMatrix(128, generator, true);
  for (const Launch& launch : orders({})) {
    Matrix found = product(a, b, c, launch);
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) {
        double sum = c[i * 8 + j];
        for (int k = 0; k < 16; ++k)
          sum += double{a[i * 16 + k]} * double{b[k * 8 + j]};
        EXPECT_EQ(found[i * 8 + j], sum) << i << ", " << j;
      }
  }
}

TEST(Multiply, IsOneChainOfFusedAdditionsInOrderOfK) {
  std::mt19937 generator(2);
  Matrix a = randomMatrix(256, generator, false), b = randomMatrix(128, generator, false),
         c = randomMatrix(128, generator, false);
  Matrix found = product(a, b, c, {});
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      float sum = c[i * 8 + j];
      for (int k = 0; k < 16; ++k)
        sum = std::fma(a[i * 16 + k], b[k * 8 + j], sum);
      EXPECT_EQ(found[i * 8 + j], sum) << i << ", " << j;
    }
}

TEST(Multiply, NanAndInfinityStayInTheirRowAndColumn) {
  Matrix a(256, 1), b(128, 1), c(128, 0);
  a[3 * 16 + 5] = std::numeric_limits<float>::quiet_NaN();
  b[9 * 8 + 2] = std::numeric_limits<float>::infinity();
  a[7 * 16 + 9] = 0;
  Matrix found = product(a, b, c, {});
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      const float value = found[i * 8 + j];
      if (i == 3 || (i == 7 && j == 2))
        EXPECT_EQ(std::bit_cast<uint32_t>(value), 0x7fffffff) << i << ", " << j;
      else
        EXPECT_EQ(value, j == 2 ? b[9 * 8 + 2] : i == 7 ? 15 : 16) << i << ", " << j;
    }
}

} // namespace
} // namespace titan::ptx
