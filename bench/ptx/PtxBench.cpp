// Prints how many lane instructions of generated kernels the PTX interpreter runs in a second of
// one CPU, with all its checks.
//
//   build/dev/bin/titan_ptx_bench [seconds a kernel] [filter]
#include "compiler/Codegen/cuda/testing/CudaRunner.h"
#include "compiler/Codegen/kernel/testing/GemmCase.h"
#include "compiler/Codegen/kernel/testing/KernelSpec.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <time.h>

using namespace titan;
using codegen::cuda::testing::CudaRunner;
using codegen::testing::GemmCase;
using codegen::testing::KernelSpec;

namespace {

struct Kernel {
  std::string name, text;
};

KernelSpec softmax() {
  return {.space = {256, 256},
          .ins = {{"f32", "(r, c) -> (r, c)", {256, 256}}},
          .outs = {{"f32", "(r, c) -> (r, c)", {256, 256}}},
          .kernelClass = "row",
          .body = R"(
    ^bb0(%v: f32):
      %max = kernel.reduce max %v over [1] : f32
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %sum = kernel.reduce add %e over [1] : f32
      %p = arith.divf %e, %sum : f32
      kernel.yield %p : f32
)"};
}

KernelSpec gelu() {
  return {.space = {65536},
          .ins = {{"bf16", "(i) -> (i)", {65536}}},
          .outs = {{"bf16", "(i) -> (i)", {65536}}},
          .kernelClass = "flat",
          .body = R"(
    ^bb0(%a: bf16):
      %x = arith.extf %a : bf16 to f32
      %s = arith.constant 0.70710678 : f32
      %half = arith.constant 0.5 : f32
      %one = arith.constant 1.0 : f32
      %z = arith.mulf %x, %s : f32
      %e = math.erf %z : f32
      %f = arith.addf %e, %one : f32
      %h = arith.mulf %x, %half : f32
      %y = arith.mulf %h, %f : f32
      %r = arith.truncf %y : f32 to bf16
      kernel.yield %r : bf16
)"};
}

std::vector<Kernel> kernels() {
  return {{"product 256 x 256 x 128, f32",
           moduleText(GemmCase{.m = 256, .n = 256, .k = 128, .offset = 0})},
          {"product 512 x 512 x 512, bf16", moduleText(GemmCase{.m = 512,
                                                                .n = 512,
                                                                .k = 512,
                                                                .transposeB = true,
                                                                .bf16 = true,
                                                                .toBf16 = true,
                                                                .offset = 0})},
          {"softmax 256 x 256, f32", moduleText(softmax())},
          {"gelu 65536, bf16", moduleText(gelu())}};
}

/// Operands of ones, 1 MiB each: more than any kernel here has.
std::vector<uint64_t> operandsIn(ptx::Memory& memory, size_t count) {
  constexpr int64_t bytes = 1 << 20;
  std::vector<uint64_t> addresses;
  for (size_t i = 0; i < count; ++i) {
    addresses.push_back(memory.allocate(bytes).take());
    std::memset(memory.bytes(addresses.back(), bytes).data(), 0x3f, bytes);
    memory.markWritten(addresses.back(), bytes);
  }
  return addresses;
}

/// Of this thread, which others may keep waiting.
double cpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Speed {
  double laneInstructions = 0; ///< of a run
  double seconds = 0;          ///< of a run, median
};

/// Runs for `seconds` together.
Result<Speed> speedOf(const Kernel& kernel, double seconds) {
  std::unique_ptr<CudaRunner> runner = TITAN_TRY(CudaRunner::compile(kernel.text));
  ptx::Memory memory;
  std::vector<uint64_t> operands = operandsIn(memory, runner->kernels()[0]->getNumOperands());
  std::vector<double> times;
  Speed speed;
  for (double spent = 0; spent < seconds || times.size() < 6;) {
    const double start = cpuSeconds();
    std::vector<ptx::Counters> launches =
        TITAN_TRY(runner->run(0, operands, {}, ptx::Order::Ascending, memory));
    const double took = cpuSeconds() - start;
    spent += took;
    times.push_back(took);
    speed.laneInstructions = static_cast<double>(launches.back().laneInstructions());
  }
  times.erase(times.begin()); // the first one warms up
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  speed.seconds = times[times.size() / 2];
  return speed;
}

} // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
  const std::string filter = argc > 2 ? argv[2] : "";
  for (const Kernel& kernel : kernels()) {
    if (kernel.name.find(filter) == std::string::npos)
      continue;
    Result<Speed> speed = speedOf(kernel, seconds);
    if (!speed.ok()) {
      fmt::print(stderr, "{}: {}\n", kernel.name, speed.error().message());
      return 1;
    }
    fmt::print("{:28} {:6.2f} G lane instructions/s, {:7.2f} ms\n", kernel.name,
               speed->laneInstructions / speed->seconds / 1e9, 1e3 * speed->seconds);
  }
  return 0;
}
