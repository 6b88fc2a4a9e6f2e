// What ends a run on a card, and what a card cannot run: who is told, and what it says.
#include "runtime/device/cuda/testing/CudaRun.h"
#include "runtime/device/cuda/testing/MarkProgram.h"
#include "runtime/device/testing/RanksProgram.h"

namespace titan {
namespace {

using testing::CudaRun;
using testing::FakeVariable;
using testing::kernelCommand;
using testing::markPtx;
using testing::ptxEntry;
using testing::ptxHeader;
using testing::ptxProgram;
using testing::Record;
using testing::textOf;

/// Writes 4 bytes where no memory of a card can be, 2^44 bytes behind the arena.
std::string strayPtx() {
  return ptxHeader() + ptxEntry("good", "both 4", 0, 1, "") +
         ptxEntry("stray", "both 4", 0, 1,
                  "  add.s64 %d0, %p0, 17592186044416;\n  mov.u32 %r0, 7;\n"
                  "  st.global.u32 [%d0], %r0;\n");
}

/// "step" runs `good`, then `stray`.
Program strayProgram() {
  Program program = ptxProgram(strayPtx(), {"good", "stray"});
  program.kernels[1].label = "loss of the head";
  program.functions[0].commands = {kernelCommand(0), kernelCommand(1)};
  return program;
}

std::string errorOf(const Program& program, const std::string& payload, int card = 0) {
  const auto device = CudaDevice::create(program, payload, card);
  return device.ok()
             ? std::string()
             : fmt::format("exit {}: {}", device.error().exitCode(), device.error().message());
}

TEST(CudaDeviceErrors, AFaultEndsTheRunAndStays) {
  const Program program = strayProgram();
  auto device = CudaDevice::create(program, strayPtx()).take();
  ASSERT_TRUE(device->fill(0, 4096, 0).ok());
  ASSERT_TRUE(device->run(0, nullptr).ok());
  const std::string text = textOf(device->wait(device->record()));
  EXPECT_EQ(text,
            "exit 4: a command of step failed on card 0 (Titan fake card, sm_120): "
            "cuEventSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (as the fake driver says): run it "
            "again with --poison, which names the command");
  EXPECT_EQ(textOf(device->run(0, nullptr)), text);
  EXPECT_EQ(textOf(device->fill(0, 4, 0)), text);
  EXPECT_EQ(textOf(device->wait({})), text);
  EXPECT_FALSE(device->hostBuffer(8).ok());
}

TEST(CudaDeviceErrors, AnEarlierFaultIsNotTheLaunchsThatReportsIt) {
  const FakeVariable fail("FAIL", "cuLaunchKernel:2:700");
  const Program program = strayProgram();
  auto device = CudaDevice::create(program, strayPtx()).take();
  EXPECT_NE(textOf(device->run(0, nullptr)).find("a command of step failed on card 0"),
            std::string::npos);
}

TEST(CudaDeviceErrors, WithAnObserverAFaultNamesItsCommand) {
  const Program program = strayProgram();
  auto device = CudaDevice::create(program, strayPtx()).take();
  ASSERT_TRUE(device->fill(0, 4096, 0).ok());
  CommandObserver observer;
  EXPECT_EQ(textOf(device->run(0, &observer)),
            "exit 4: 'loss of the head' (command 1 of step) on card 0 (Titan fake card, sm_120) "
            "failed: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (as the fake driver says)");
}

/// What every card says, whatever its name. Behind it the process has no use for the card.
TEST(CudaDeviceErrors, AFaultOnAnyCardEndsTheRun) {
  const Program program = strayProgram();
  auto device = CudaDevice::create(program, strayPtx()).take();
  ASSERT_TRUE(device->fill(0, 4096, 0).ok());
  ASSERT_TRUE(device->run(0, nullptr).ok());
  const Status status = device->wait(device->record());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().exitCode(), 4);
  const std::string& text = status.error().message();
  EXPECT_TRUE(text.starts_with("a command of step failed on card 0 (")) << text;
  EXPECT_NE(text.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << text;
  EXPECT_EQ(textOf(device->fill(0, 4, 0)), textOf(status));
}

TEST(CudaDeviceErrors, AFaultOnAnyCardNamesItsCommand) {
  const Program program = strayProgram();
  auto device = CudaDevice::create(program, strayPtx()).take();
  ASSERT_TRUE(device->fill(0, 4096, 0).ok());
  CommandObserver observer;
  const std::string text = textOf(device->run(0, &observer));
  EXPECT_TRUE(text.starts_with("exit 4: 'loss of the head' (command 1 of step) on card 0 ("))
      << text;
  EXPECT_NE(text.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << text;
}

TEST(CudaDeviceErrors, ALaunchThatIsRefusedNamesItsCommand) {
  const FakeVariable fail("FAIL", "cuLaunchKernel:2:701");
  const Program program = strayProgram();
  auto device = CudaDevice::create(program, strayPtx()).take();
  ASSERT_TRUE(device->fill(0, 4096, 0).ok());
  EXPECT_EQ(textOf(device->run(0, nullptr)),
            "exit 4: 'loss of the head' (command 1 of step) on card 0 (Titan fake card, sm_120) "
            "failed: cuLaunchKernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (as the fake driver says)");
}

TEST(CudaDeviceErrors, ALostCardEndsTheRun) {
  for (const auto& [result, name] :
       {std::pair{"214", "CUDA_ERROR_ECC_UNCORRECTABLE"},
        std::pair{"702", "CUDA_ERROR_LAUNCH_TIMEOUT"}, std::pair{"999", "CUDA_ERROR_UNKNOWN"}}) {
    const FakeVariable fail("FAIL", fmt::format("cuEventSynchronize:2:{}", result));
    const Program program = ptxProgram(markPtx(), {"mark"});
    auto device = CudaDevice::create(program, markPtx()).take();
    ASSERT_TRUE(device->wait(device->record()).ok());
    ASSERT_TRUE(device->run(0, nullptr).ok());
    EXPECT_EQ(textOf(device->wait(device->record())),
              fmt::format("exit 5: card 0 (Titan fake card, sm_120) failed while it ran step: "
                          "cuEventSynchronize: {} (as the fake driver says)",
                          name));
  }
}

TEST(CudaDeviceErrors, NeedsItsArenaInFreeMemory) {
  Program program = testing::linearCudaProgram();
  program.arenaBytes = int64_t{1} << 30;
  const FakeVariable memory("MEMORY", std::to_string(int64_t{600} << 20));
  EXPECT_EQ(
      errorOf(program, testing::linearCudaPayload()),
      "exit 3: the job needs 1.0 GiB of device memory, and 192.0 MiB more for the driver; card "
      "0 (Titan fake card, sm_120) has 600.0 MiB free of 600.0 MiB: compile it with a "
      "batch.micro of about 1 (it is 4)");
  const FakeVariable less("MEMORY", std::to_string(int64_t{64} << 20));
  EXPECT_NE(errorOf(program, testing::linearCudaPayload()).find(": its states alone are "),
            std::string::npos);
  const FakeVariable little("MEMORY", std::to_string(int64_t{300} << 20));
  EXPECT_NE(errorOf(program, testing::linearCudaPayload())
                .find(": compile it with a smaller batch.micro"),
            std::string::npos);
}

TEST(CudaDeviceErrors, AnAllocationMayFailAllTheSame) {
  const FakeVariable fail("FAIL", "cuMemAlloc_v2:1:2,cuMemHostAlloc:1:2");
  EXPECT_NE(errorOf(testing::linearCudaProgram(), testing::linearCudaPayload())
                .find("exit 3: the job needs "),
            std::string::npos);
  const Program program = ptxProgram(markPtx(), {"mark"});
  const FakeVariable host("FAIL", "cuMemHostAlloc:1:2");
  auto device = CudaDevice::create(program, markPtx()).take();
  const auto buffer = device->hostBuffer(1 << 20);
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.error().message(), "cannot reserve 1.0 MiB of pinned host memory: free memory, "
                                      "or raise its limit (ulimit -l)");
}

TEST(CudaDeviceErrors, TakesTheNextImageWhereOneIsRefused) {
  const FakeVariable capability("CAPABILITY", "9.0");
  const std::string cubin = "\177ELF of sm_90", ptx = markPtx();
  Program program = ptxProgram(ptx, {"mark"});
  Image compiled = testing::ptxImage(cubin);
  compiled.kind = Image::Kind::Cubin, compiled.arch = "sm_90";
  program.images = {testing::ptxImage(ptx, static_cast<int64_t>(cubin.size())), compiled};
  auto device = CudaDevice::create(program, cubin + ptx).take();
  EXPECT_EQ(device->image().kind, Image::Kind::Ptx);
  device.reset();

  const std::string path =
      fmt::format("{}/fake-{}.ptx", std::filesystem::temp_directory_path().string(), getpid());
  std::ofstream(path) << ptx;
  const FakeVariable standIn("PTX", path);
  device = CudaDevice::create(program, cubin + ptx).take();
  EXPECT_EQ(device->image().kind, Image::Kind::Cubin);
  EXPECT_EQ(device->driverVersion(), 13000);
  std::filesystem::remove(path);
}

TEST(CudaDeviceErrors, SaysWhyTheDriverTakesNoImage) {
  const FakeVariable version("VERSION", "12.0");
  const std::string ptx = ptxHeader("9.0") + ptxEntry("mark", "", 0, 1, "");
  EXPECT_EQ(errorOf(ptxProgram(ptx, {"mark"}), ptx),
            "exit 3: the driver (CUDA 12.0) of card 0 (Titan fake card, sm_120) takes none of the "
            "job's images: PTX for sm_80: cuModuleLoadDataEx: CUDA_ERROR_UNSUPPORTED_PTX_VERSION "
            "(as the fake driver says): update the driver, or compile the job with --arch=sm_120");
  const std::string broken = ptxHeader() + "nonsense\n";
  EXPECT_NE(errorOf(ptxProgram(broken, {"mark"}), broken).find("CUDA_ERROR_INVALID_PTX (as the "),
            std::string::npos);
  const FakeVariable fail("FAIL", "cuModuleLoadDataEx:1:2");
  EXPECT_NE(errorOf(ptxProgram(markPtx(), {"mark"}), markPtx())
                .find("exit 3: loading PTX for sm_80 failed: cuModuleLoadDataEx: "
                      "CUDA_ERROR_OUT_OF_MEMORY"),
            std::string::npos);
}

TEST(CudaDeviceErrors, RefusesACardBelowEveryImage) {
  const FakeVariable capability("CAPABILITY", "7.5");
  EXPECT_NE(errorOf(ptxProgram(markPtx(), {"mark"}), markPtx())
                .find("exit 3: card 0 (Titan fake card, sm_75) can run none of the job's images"),
            std::string::npos);
}

TEST(CudaDeviceErrors, RefusesDamagedImages) {
  const Program program = ptxProgram(markPtx(), {"mark"});
  std::string payload = markPtx();
  payload[20] ^= 1;
  const std::string text = errorOf(program, payload);
  EXPECT_NE(text.find("exit 1: PTX for sm_80 in the job is damaged: its digest is "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(program.images[0].digest), std::string::npos);
  EXPECT_EQ(errorOf(program, payload.substr(0, 100)),
            "exit 1: the job's payload of 100 bytes ends before PTX for sm_80: compile the job "
            "again");
}

TEST(CudaDeviceErrors, RefusesTablesThatAreNotForACard) {
  Program program = ptxProgram(markPtx(), {"mark"});
  program.kernels[0].launches[0].entry = "other";
  EXPECT_EQ(errorOf(program, markPtx()),
            "exit 4: PTX for sm_80 in the job has no entry point 'other'");
  program.kernels[0].launches.clear();
  program.target.kind = "cpu";
  EXPECT_EQ(errorOf(program, markPtx()),
            "exit 4: 'mark' has no launches: the program is for cpu, no card");
  Program damaged = ptxProgram(markPtx(), {"mark"});
  damaged.functions[0].commands = {kernelCommand(7)};
  EXPECT_NE(errorOf(damaged, markPtx()).find("exit 1: "), std::string::npos);
}

TEST(CudaDeviceErrors, RefusesCollectivesByName) {
  const Program program = testing::ranksProgram(2, 2);
  EXPECT_EQ(errorOf(program, ""),
            fmt::format("exit 1: the job's all_reduce of {} needs several ranks, and a card runs "
                        "jobs of one rank: compile it without a mesh, or with --target=cpu",
                        program.collectives[0].label));
}

TEST(CudaDeviceErrors, AsksForMuchSharedMemory) {
  Program program = ptxProgram(markPtx(), {"mark"});
  program.kernels[0].launches[0].sharedBytes = 100 << 10;
  program.functions[0].commands = {kernelCommand(0, 0, 8)};
  program.functions[0].commands[0].scalars = {{1}};
  {
    const Record record;
    auto device = CudaDevice::create(program, markPtx()).take();
    EXPECT_EQ(record.count("cuFuncSetAttribute(mark, 8, 102400) = CUDA_SUCCESS"), 1);
    ASSERT_TRUE(device->fill(0, 8, 0).ok());
    EXPECT_TRUE(device->run(0, nullptr).ok());
    EXPECT_TRUE(device->wait(device->record()).ok());
  }
  const FakeVariable shared("SHARED", "65536");
  EXPECT_EQ(errorOf(program, markPtx()),
            "exit 3: 'mark' needs 102400 bytes of shared memory a block, and card 0 (Titan fake "
            "card, sm_120) has 65536: take another card, or compile the job with --target=cpu");
}

TEST(CudaDeviceErrors, NamesTheCallOfTheDriverThatFailed) {
  const Program program = ptxProgram(markPtx(), {"mark"});
  for (const auto& [call, what] :
       {std::pair{"cuDevicePrimaryCtxRetain", "opening card 0 (Titan fake card, sm_120)"},
        std::pair{"cuStreamCreate", "opening card 0 (Titan fake card, sm_120)"},
        std::pair{"cuEventCreate", "opening card 0 (Titan fake card, sm_120)"},
        std::pair{"cuMemGetInfo_v2", "asking for free memory"},
        std::pair{"cuModuleGetFunction", "looking up 'mark'"}}) {
    const FakeVariable fail("FAIL", fmt::format("{}:1:1", call));
    EXPECT_EQ(errorOf(program, markPtx()),
              fmt::format("exit 4: {} failed: {}: CUDA_ERROR_INVALID_VALUE (as the fake driver "
                          "says)",
                          what, call));
  }
}

} // namespace
} // namespace titan
