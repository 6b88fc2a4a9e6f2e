// Launches: what is asked of them, and that correct kernels give the same bits in every order.
#include "runtime/device/cuda/testing/ptx/TestKernel.h"

namespace titan::ptx {
namespace {

/// y[i] = a[i] + b[i] in blocks of any size; p2 is the result.
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

} // namespace
} // namespace titan::ptx
