// Correct kernels: the same bits in every order, what lanes tell each other, and what is counted.
#include "runtime/device/cuda/testing/ptx/TestKernel.h"

#include <bit>
#include <cmath>

namespace titan::ptx {
namespace {

/// p2[i] = p0[i] + p1[i], in blocks of any size.
std::string addKernel() {
  return kernelText(3, R"(
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mad.lo.s32 %r3, %r1, %r2, %r0;
    mul.wide.u32 %rd4, %r3, 4;
    add.s64 %rd5, %rd0, %rd4;
    add.s64 %rd6, %rd1, %rd4;
    add.s64 %rd7, %rd2, %rd4;
    ld.global.b32 %r4, [%rd5];
    ld.global.b32 %r5, [%rd6];
    add.rn.f32 %r6, %r4, %r5;
    st.global.b32 [%rd7], %r6;)");
}

TEST(Run, AddsInEveryOrder) {
  std::vector<float> a(1000), b(1000), sum(1000);
  for (int i = 0; i < 1000; ++i) {
    a[i] = 0.1F * i;
    b[i] = 3.0F / (i + 1);
    sum[i] = a[i] + b[i];
  }
  for (uint32_t threads : {1u, 40u, 250u, 1000u})
    for (Launch launch : orders({.entry = "k"})) {
      launch.grid = {1000 / threads, 1, 1};
      launch.block = {threads, 1, 1};
      Memory memory;
      launch.arguments = {put(memory, a), put(memory, b), memory.allocate(4000).take()};
      Counters counters = runFine(addKernel(), launch, memory);
      EXPECT_EQ(get<float>(memory, launch.arguments[2], 1000), sum);
      EXPECT_EQ(counters.float32, 1000);
      EXPECT_EQ(counters.globalLoads.bytes, 8000);
      EXPECT_EQ(counters.globalStores.bytes, 4000);
    }
}

/// The sum of a row of bf16, as LLVM prints it: strided loads, a butterfly in each warp, the warps'
/// sums through shared memory, added by the first warp.
const char* const rowSum = R"(
.version 8.0
.target sm_80
.address_size 64
// titan: row operands(read 12288, write 24) scalars(1)
.visible .entry row(
	.param .u64 .ptr .global .align 16 row_param_0,
	.param .u64 .ptr .global .align 16 row_param_1,
	.param .u64 row_param_2
)
.reqntid 256
{
	.reg .pred 	%p<5>;
	.reg .b16 	%rs<3>;
	.reg .b32 	%r<42>;
	.reg .b64 	%rd<23>;
	// demoted variable
	.shared .align 16 .b8 s[32];
// %bb.0:                               // %entry
	ld.param.b64 	%rd5, [row_param_2];
	ld.param.b64 	%rd4, [row_param_1];
	ld.param.b64 	%rd6, [row_param_0];
	mov.u32 	%r3, %tid.x;
	mov.u32 	%r4, %ctaid.x;
	cvt.u64.u32 	%rd1, %r4;
	cvt.u64.u32 	%rd2, %r3;
	mad.lo.s64 	%rd7, %rd1, %rd5, %rd2;
	shl.b64 	%rd8, %rd7, 1;
	add.s64 	%rd21, %rd6, %rd8;
	mov.b32 	%r21, 0f00000000;
	mov.b64 	%rd22, %rd2;
$L__BB0_1:                              // %loop
                                        // =>This Inner Loop Header: Depth=1
	ld.global.b16 	%rs2, [%rd21];
	cvt.f32.bf16 	%r5, %rs2;
	add.rn.f32 	%r21, %r21, %r5;
	add.s64 	%rd22, %rd22, 256;
	add.s64 	%rd21, %rd21, 512;
	setp.lt.s64 	%p1, %rd22, %rd5;
	@%p1 bra 	$L__BB0_1;
// %bb.2:                               // %done
	shfl.sync.bfly.b32 	%r6, %r21, 16, 31, -1;
	add.rn.f32 	%r7, %r21, %r6;
	shfl.sync.bfly.b32 	%r8, %r7, 8, 31, -1;
	add.rn.f32 	%r9, %r7, %r8;
	shfl.sync.bfly.b32 	%r10, %r9, 4, 31, -1;
	add.rn.f32 	%r11, %r9, %r10;
	shfl.sync.bfly.b32 	%r12, %r11, 2, 31, -1;
	add.rn.f32 	%r13, %r11, %r12;
	shfl.sync.bfly.b32 	%r14, %r13, 1, 31, -1;
	add.rn.f32 	%r15, %r13, %r14;
	shr.u32 	%r16, %r3, 5;
	mul.wide.u32 	%rd9, %r16, 4;
	mov.b64 	%rd10, s;
	add.s64 	%rd11, %rd10, %rd9;
	st.shared.b32 	[%rd11], %r15;
	bar.sync 	0;
	setp.ne.b32 	%p4, %r3, 0;
	@%p4 bra 	$L__BB0_4;
// %bb.3:                               // %w0
	ld.shared.v4.b32 	{%r22, %r23, %r24, %r25}, [s];
	ld.shared.v4.b32 	{%r26, %r27, %r28, %r29}, [s+16];
	add.rn.f32 	%r30, %r22, %r23;
	add.rn.f32 	%r31, %r30, %r24;
	add.rn.f32 	%r32, %r31, %r25;
	add.rn.f32 	%r33, %r32, %r26;
	add.rn.f32 	%r34, %r33, %r27;
	add.rn.f32 	%r35, %r34, %r28;
	add.rn.f32 	%r36, %r35, %r29;
	shl.b64 	%rd20, %rd1, 2;
	add.s64 	%rd3, %rd4, %rd20;
	st.global.b32 	[%rd3], %r36;
$L__BB0_4:                              // %end
	ret;
                                        // -- End function
}
)";

TEST(Run, SumsRowsInEveryOrder) {
  constexpr int rows = 6, columns = 1024;
  std::vector<uint16_t> values(rows * columns);
  for (int i = 0; i < rows * columns; ++i)
    values[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(std::sin(float(i))) >> 16);
  auto value = [&](int row, int column) {
    return std::bit_cast<float>(uint32_t{values[row * columns + column]} << 16);
  };
  std::vector<float> sums;
  for (int row = 0; row < rows; ++row) {
    std::vector<float> lanes(256);
    for (int column = 0; column < columns; ++column)
      lanes[column % 256] += value(row, column);
    for (int by : {16, 8, 4, 2, 1})
      for (int lane = 0; lane < 256; ++lane)
        if ((lane & by) == 0)
          lanes[lane] = lanes[lane ^ by] = lanes[lane] + lanes[lane ^ by];
    float sum = lanes[0];
    for (int warp = 1; warp < 8; ++warp)
      sum += lanes[32 * warp];
    sums.push_back(sum);
  }
  for (Launch launch : orders({.entry = "row", .grid = {rows, 1, 1}, .block = {256, 1, 1}})) {
    Memory memory;
    launch.arguments = {put(memory, values), memory.allocate(4 * rows).take(), columns};
    Counters counters = runFine(rowSum, launch, memory);
    EXPECT_EQ(get<float>(memory, launch.arguments[1], rows), sums);
    EXPECT_EQ(counters.barriers, rows);
    EXPECT_EQ(counters.exchange, rows * 256 * 6);
    EXPECT_EQ(counters.divergences, rows);
    EXPECT_EQ(counters.globalLoads.sectors, rows * columns * 2 / 32);
    EXPECT_EQ(counters.sharedLoads.byWidth[4], rows * 2);
  }
}

/// 32 x 32 tiles in two dimensions of threads and blocks: C = A B with n = p3.
TEST(Run, MultipliesTilesInEveryOrder) {
  std::string text = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p<2>; .reg .b32 %r<32>; .reg .b64 %rd<16>;
  .shared .align 4 .b8 ta[1088];
  .shared .align 4 .b8 tb[1088];
  ld.param.u64 %rd0, [a];
  ld.param.u64 %rd1, [b];
  ld.param.u64 %rd2, [c];
  ld.param.u32 %r0, [n];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %tid.y;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ctaid.y;
  mad.lo.s32 %r5, %r4, 16, %r2;   // row
  mad.lo.s32 %r6, %r3, 16, %r1;   // column
  mov.u32 %r7, ta;
  mov.u32 %r8, tb;
  mul.lo.u32 %r9, %r2, 68;
  add.s32 %r9, %r9, %r7;          // row of ta
  shl.b32 %r10, %r1, 2;
  add.s32 %r11, %r9, %r10;        // own place in ta
  add.s32 %r12, %r8, %r10;        // column of tb
  mad.lo.s32 %r13, %r2, 68, %r12; // own place in tb
  mov.b32 %r14, 0f00000000;
  mov.b32 %r15, 0;                // k
Loop:
  add.s32 %r16, %r15, %r1;
  mad.lo.s32 %r17, %r5, %r0, %r16;
  mul.wide.u32 %rd3, %r17, 4;
  add.s64 %rd3, %rd3, %rd0;
  ld.global.f32 %r18, [%rd3];
  st.shared.f32 [%r11], %r18;
  add.s32 %r16, %r15, %r2;
  mad.lo.s32 %r17, %r16, %r0, %r6;
  mul.wide.u32 %rd3, %r17, 4;
  add.s64 %rd3, %rd3, %rd1;
  ld.global.f32 %r18, [%rd3];
  st.shared.f32 [%r13], %r18;
  bar.sync 0;
  mov.b32 %r19, 0;
  mov.b32 %r20, %r9;
  mov.b32 %r21, %r12;
Inner:
  ld.shared.f32 %r22, [%r20];
  ld.shared.f32 %r23, [%r21];
  fma.rn.f32 %r14, %r22, %r23, %r14;
  add.s32 %r20, %r20, 4;
  add.s32 %r21, %r21, 68;
  add.s32 %r19, %r19, 1;
  setp.lt.u32 %p0, %r19, 16;
  @%p0 bra Inner;
  BARRIER
  add.s32 %r15, %r15, 16;
  setp.lt.u32 %p0, %r15, %r0;
  @%p0 bra Loop;
  mad.lo.s32 %r17, %r5, %r0, %r6;
  mul.wide.u32 %rd3, %r17, 4;
  add.s64 %rd3, %rd3, %rd2;
  st.global.f32 [%rd3], %r14;
  ret;
})";
  std::string racing = text;
  text.replace(text.find("BARRIER"), 7, "bar.sync 0;");
  racing.replace(racing.find("BARRIER"), 7, "");
  constexpr int n = 48;
  std::vector<float> a(n * n), b(n * n), c(n * n);
  for (int i = 0; i < n * n; ++i) {
    a[i] = std::sin(float(i));
    b[i] = std::cos(float(i));
  }
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      for (int k = 0; k < n; ++k)
        c[i * n + j] = std::fma(a[i * n + k], b[k * n + j], c[i * n + j]);
  for (Launch launch : orders({.entry = "k", .grid = {3, 3, 1}, .block = {16, 16, 1}})) {
    Memory memory;
    launch.arguments = {put(memory, a), put(memory, b), memory.allocate(4 * n * n).take(), n};
    Counters counters = runFine(text, launch, memory);
    EXPECT_EQ(get<float>(memory, launch.arguments[2], n * n), c);
    EXPECT_EQ(counters.barriers, 9 * 3 * 2);
    EXPECT_EQ(counters.float32, n * n * n);
    EXPECT_EQ(counters.sharedLoads.bankConflicts, 0);
    EXPECT_NE(runError(racing, launch, memory).find("without a barrier between"),
              std::string::npos);
  }
}

/// What shuffle `mode` with `b` and `c` gives each lane, and whether it was in range.
std::pair<std::vector<uint32_t>, std::vector<uint32_t>> shuffled(const std::string& mode,
                                                                 const std::string& b, uint32_t c) {
  std::string text = kernelText(
      1, fmt::format("mov.b32 %r5, 1000;\nadd.s32 %r1, %r0, %r5;\n"
                     "shfl.sync.{}.b32 %r2|%p1, %r1, {}, {}, -1;\nselp.b32 %r3, 1, 0, %p1;\n"
                     "mul.wide.u32 %rd2, %r0, 8;\nadd.s64 %rd3, %rd0, %rd2;\n"
                     "st.global.v2.b32 [%rd3], {{%r2, %r3}};",
                     mode, b, c));
  Memory memory;
  uint64_t out = memory.allocate(256).take();
  runFine(text, {.entry = "k", .block = {32, 1, 1}, .arguments = {out}}, memory);
  std::vector<uint32_t> both = get<uint32_t>(memory, out, 64), from(32), inRange(32);
  for (int lane = 0; lane < 32; ++lane) {
    from[lane] = both[2 * lane] - 1000;
    inRange[lane] = both[2 * lane + 1];
  }
  return {from, inRange};
}

TEST(Run, ShufflesInAllModes) {
  for (uint32_t width : {32u, 8u}) {
    uint32_t segment = (32 - width) << 8;
    for (uint32_t by : {1u, 3u, 7u}) {
      auto [up, upIn] = shuffled("up", std::to_string(by), segment);
      auto [down, downIn] = shuffled("down", std::to_string(by), segment | 31);
      auto [fly, flyIn] = shuffled("bfly", std::to_string(by), segment | 31);
      auto [index, indexIn] = shuffled("idx", std::to_string(by), segment | 31);
      for (uint32_t lane = 0; lane < 32; ++lane) {
        uint32_t first = lane / width * width, place = lane % width;
        EXPECT_EQ(up[lane], place >= by ? lane - by : lane);
        EXPECT_EQ(upIn[lane], place >= by);
        EXPECT_EQ(down[lane], place + by < width ? lane + by : lane);
        EXPECT_EQ(downIn[lane], place + by < width);
        EXPECT_EQ(fly[lane], first + (place ^ by));
        EXPECT_EQ(flyIn[lane], 1u);
        EXPECT_EQ(index[lane], first + by);
        EXPECT_EQ(indexIn[lane], 1u);
      }
    }
  }
  // Each lane its own source, and a result in the source's register.
  EXPECT_EQ(shuffled("idx", "%r0", 31).first[17], 17u);
}

TEST(Run, Votes) {
  std::string text = kernelText(1, R"(
    setp.lt.u32 %p1, %r0, 5;
    setp.lt.u32 %p2, %r0, 99;
    vote.sync.ballot.b32 %r1, %p1, -1;
    vote.sync.any.pred %p3, %p1, -1;
    vote.sync.all.pred %p4, %p1, -1;
    vote.sync.all.pred %p5, %p2, -1;
    vote.sync.uni.pred %p6, %p1, -1;
    vote.sync.uni.pred %p7, %p2, -1;
    selp.b32 %r2, 1, 0, %p3;
    selp.b32 %r3, 2, 0, %p4;
    selp.b32 %r4, 4, 0, %p5;
    selp.b32 %r5, 8, 0, %p6;
    selp.b32 %r6, 16, 0, %p7;
    add.s32 %r2, %r2, %r3;
    add.s32 %r2, %r2, %r4;
    add.s32 %r2, %r2, %r5;
    add.s32 %r2, %r2, %r6;
    activemask.b32 %r7;
    mov.b32 %r8, 0;
    @!%p1 bra L;
    activemask.b32 %r8;
    vote.sync.ballot.b32 %r8, %p2, 31;
    L:
    setp.ne.b32 %p1, %r0, 0;
    @%p1 bra End;
    st.global.v4.b32 [%rd0], {%r1, %r2, %r7, %r8};
    End:)");
  Memory memory;
  uint64_t out = memory.allocate(16).take();
  runFine(text, {.entry = "k", .block = {20, 1, 1}, .arguments = {out}}, memory);
  EXPECT_EQ(get<uint32_t>(memory, out, 4), (std::vector<uint32_t>{31, 1 + 4 + 16, 0xfffff, 31}));
}

TEST(Run, FillsSpecialRegisters) {
  std::string body = "mov.u32 %r1, %tid.y;\nmov.u32 %r2, %tid.z;\nmov.u32 %r3, %ntid.x;\n"
                     "mov.u32 %r4, %ntid.y;\nmad.lo.s32 %r5, %r2, %r4, %r1;\n"
                     "mad.lo.s32 %r5, %r5, %r3, %r0;\n" // number in the block
                     "mov.u32 %r6, %ctaid.z;\nmov.u32 %r7, %nctaid.y;\nmov.u32 %r8, %ctaid.y;\n"
                     "mad.lo.s32 %r6, %r6, %r7, %r8;\nmov.u32 %r7, %nctaid.x;\n"
                     "mad.lo.s32 %r6, %r6, %r7, %ctaid.x;\n" // number of the block
                     "mov.u32 %r9, %ntid.z;\nmul.lo.s32 %r9, %r9, %r4;\nmul.lo.s32 %r9, %r9, %r3;\n"
                     "mad.lo.s32 %r10, %r6, %r9, %r5;\nmul.wide.u32 %rd2, %r10, 16;\n"
                     "add.s64 %rd3, %rd0, %rd2;\nmov.u32 %r11, %laneid;\nmov.u32 %r12, %warpid;\n"
                     "mov.u32 %r13, %nctaid.z;\nst.global.v4.b32 [%rd3], {%r10, %r11, %r12, %r13};";
  Memory memory;
  constexpr int count = 5 * 3 * 2 * 2 * 3 * 4;
  uint64_t out = memory.allocate(16 * count).take();
  runFine(kernelText(1, body),
          {.entry = "k", .grid = {2, 3, 4}, .block = {5, 3, 2}, .arguments = {out}}, memory);
  std::vector<uint32_t> found = get<uint32_t>(memory, out, 4 * count);
  for (int i = 0; i < count; ++i)
    EXPECT_EQ((std::vector<uint32_t>(found.begin() + 4 * i, found.begin() + 4 * i + 4)),
              (std::vector<uint32_t>{uint32_t(i), uint32_t(i % 30), 0, 4}));
}

TEST(Run, ExtendsWhatIsNarrowerThanItsRegister) {
  std::string text = kernelText(2, R"(
    ld.global.s8 %r1, [%rd0];
    ld.global.u8 %r2, [%rd0];
    ld.global.b8 %rs1, [%rd0];
    ld.global.s16 %rd3, [%rd0];
    ld.global.u32 %rd4, [%rd0];
    ld.global.s32 %rd5, [%rd0];
    st.global.b32 [%rd1], %r1;
    st.global.b32 [%rd1+4], %r2;
    st.global.b16 [%rd1+8], %rs1;
    st.global.b8 [%rd1+10], %r2;
    st.global.b8 [%rd1+11], %rd4;
    st.global.b32 [%rd1+12], %rd4;
    st.global.b64 [%rd1+16], %rd3;
    st.global.b64 [%rd1+24], %rd4;
    st.global.b64 [%rd1+32], %rd5;)");
  Memory memory;
  uint64_t in = put(memory, std::vector<uint32_t>{0x818283f4}), out = memory.allocate(40).take();
  runFine(text, {.entry = "k", .arguments = {in, out}}, memory);
  EXPECT_EQ(get<uint64_t>(memory, out, 5),
            (std::vector<uint64_t>{0xf4fffffff4, 0x818283f4f4f400f4, 0xffffffffffff83f4, 0x818283f4,
                                   0xffffffff818283f4}));
}

// Counters.

Counters countersOf(const std::string& body, uint32_t threads = 32) {
  Memory memory;
  uint64_t address = put(memory, std::vector<char>(65536));
  return runFine(kernelText(1, body, ".shared .align 16 .b8 s[65536];"),
                 {.entry = "k", .block = {threads, 1, 1}, .arguments = {address}}, memory);
}

std::string strided(int stride, const std::string& access) {
  return fmt::format("mul.wide.u32 %rd2, %r0, {};\nadd.s64 %rd3, %rd0, %rd2;\n", stride) + access;
}

TEST(Counters, CountSectorsOfARequest) {
  auto sectors = [](int stride, const char* access) {
    return countersOf(strided(stride, access)).globalLoads.sectors;
  };
  EXPECT_EQ(sectors(4, "ld.global.b32 %r1, [%rd3];"), 4);
  EXPECT_EQ(sectors(4, "ld.global.b32 %r1, [%rd3+16];"), 5);
  EXPECT_EQ(sectors(8, "ld.global.b32 %r1, [%rd3];"), 8);
  EXPECT_EQ(sectors(128, "ld.global.b32 %r1, [%rd3];"), 32);
  EXPECT_EQ(sectors(0, "ld.global.b32 %r1, [%rd3];"), 1);
  EXPECT_EQ(sectors(16, "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd3];"), 16);
  EXPECT_EQ(sectors(2, "ld.global.b16 %rs1, [%rd3];"), 2);
  EXPECT_EQ(countersOf(strided(32, "st.global.b32 [%rd3], %r0;")).globalStores.sectors, 32);
  // Falling addresses.
  EXPECT_EQ(countersOf("sub.s32 %r1, 31, %r0;\nmul.wide.u32 %rd2, %r1, 8;\n"
                       "add.s64 %rd3, %rd0, %rd2;\nld.global.b32 %r1, [%rd3];")
                .globalLoads.sectors,
            8);
}

TEST(Counters, CountSectorsOfATripOnce) {
  // A chunk of 32 bytes by two loads: each touches all sectors.
  Counters chunk = countersOf(strided(32, "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd3];\n"
                                          "ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%rd3+16];"));
  EXPECT_EQ(chunk.globalLoads.sectors, 64);
  EXPECT_EQ(chunk.globalLoads.tripSectors, 32);
  EXPECT_EQ(chunk.globalLoads.byWidth[4], 2);
  Counters twice = countersOf("mov.b32 %r9, 0;\nL:\n" +
                              strided(4, "ld.global.b32 %r1, [%rd3];\nadd.s32 %r9, %r9, 1;\n"
                                         "setp.lt.s32 %p1, %r9, 3;\n@%p1 bra L;"));
  EXPECT_EQ(twice.globalLoads.tripSectors, 12);
  EXPECT_EQ(twice.globalLoads.requests, 3);
  EXPECT_EQ(twice.globalLoads.bytes, 3 * 128);
}

TEST(Counters, CountBankConflicts) {
  auto conflicts = [](int stride, const std::string& type) {
    std::string value = type == "b64" ? "%rd2" : type == "b16" ? "%rs1" : "%r2";
    return countersOf(fmt::format("mov.b16 %rs1, 1;\nmov.b32 %r2, 1;\nmov.b64 %rd2, 1;\n"
                                  "mov.u32 %r5, s;\nmad.lo.u32 %r1, %r0, {}, %r5;\n"
                                  "st.shared.{} [%r1], {};",
                                  stride, type, value))
        .sharedStores.bankConflicts;
  };
  EXPECT_EQ(conflicts(4, "b32"), 0);
  EXPECT_EQ(conflicts(0, "b32"), 0);
  EXPECT_EQ(conflicts(8, "b32"), 1);
  EXPECT_EQ(conflicts(128, "b32"), 31);
  EXPECT_EQ(conflicts(132, "b32"), 0);
  EXPECT_EQ(conflicts(2, "b16"), 0);
  EXPECT_EQ(conflicts(8, "b64"), 0);
  EXPECT_EQ(conflicts(16, "b64"), 2);
}

TEST(Counters, CountLaneInstructionsByClass) {
  Counters counters = countersOf("setp.lt.u32 %p1, %r0, 4;\n@%p1 add.s32 %r1, %r0, 1;\n"
                                 "cvt.rn.f32.u32 %r2, %r0;\nadd.rn.f32 %r3, %r2, %r2;\n"
                                 "cvt.f64.f32 %rd2, %r3;\nmul.rn.f64 %rd3, %rd2, %rd2;\n"
                                 "bar.sync 0;\nmembar.gl;",
                                 40);
  EXPECT_EQ(counters.parameter, 40);
  EXPECT_EQ(counters.move, 40);
  EXPECT_EQ(counters.predicate, 40);
  EXPECT_EQ(counters.integer, 4);
  EXPECT_EQ(counters.conversion, 80);
  EXPECT_EQ(counters.float32, 40);
  EXPECT_EQ(counters.float64, 40);
  EXPECT_EQ(counters.exchange, 80);
  EXPECT_EQ(counters.control, 40);
  EXPECT_EQ(counters.memory, 0);
  EXPECT_EQ(counters.laneInstructions(), 9 * 40 + 4 + 40);
  EXPECT_EQ(counters.warpInstructions, 2 * 11);
  EXPECT_EQ(counters.barriers, 1);
}

} // namespace
} // namespace titan::ptx
