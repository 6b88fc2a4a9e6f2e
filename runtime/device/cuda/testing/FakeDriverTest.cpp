#include "runtime/device/cuda/testing/FakeCard.h"
#include "runtime/device/cuda/testing/LinearPtx.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

#include <dlfcn.h>

namespace titan::cuda {
namespace {

using titan::testing::FakeVariable;
using titan::testing::loadDriver;
using titan::testing::ptxEntry;
using titan::testing::ptxHeader;

/// A device with a context for this thread, 4096 bytes of memory and two streams.
struct Opened {
  Driver driver = loadDriver();
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  CUstream first = nullptr, second = nullptr;

  Opened() {
    EXPECT_TRUE(driver.cuDeviceGet(&device, 0).ok());
    EXPECT_TRUE(driver.cuDevicePrimaryCtxRetain(&context, device).ok());
    EXPECT_TRUE(driver.cuCtxSetCurrent(context).ok());
    EXPECT_TRUE(driver.cuMemAlloc_v2(&memory, 4096).ok());
    EXPECT_TRUE(driver.cuStreamCreate(&first, CU_STREAM_NON_BLOCKING).ok());
    EXPECT_TRUE(driver.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING).ok());
  }
  ~Opened() { EXPECT_TRUE(driver.cuDevicePrimaryCtxRelease_v2(device).ok()); }

  char* pinned(size_t bytes) {
    void* address = nullptr;
    EXPECT_TRUE(driver.cuMemHostAlloc(&address, bytes, 0).ok());
    return static_cast<char*>(address);
  }
  CUevent event(unsigned flags = CU_EVENT_DISABLE_TIMING) {
    CUevent event = nullptr;
    EXPECT_TRUE(driver.cuEventCreate(&event, flags).ok());
    return event;
  }
  void set(char value, CUstream stream) {
    EXPECT_TRUE(driver.cuMemsetD8Async(memory, static_cast<unsigned char>(value), 1, stream).ok());
  }
  CUmodule module(const std::string& ptx) {
    CUmodule module = nullptr;
    EXPECT_TRUE(driver.cuModuleLoadDataEx(&module, ptx.c_str(), 0, nullptr, nullptr).ok());
    return module;
  }
  CUfunction function(CUmodule module, const char* name) {
    CUfunction function = nullptr;
    EXPECT_TRUE(driver.cuModuleGetFunction(&function, module, name).ok());
    return function;
  }
  CUresult launch(CUfunction function, std::vector<void*> parameters, unsigned blocks = 1,
                  unsigned threads = 1, unsigned shared = 0) {
    return driver
        .cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, first, parameters.data(),
                        nullptr)
        .result;
  }
};

TEST(FakeDriver, HasTheEntryPointsOfTheListAlone) {
  loadDriver();
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
#define TITAN_CUDA_FIND(name, parameters) EXPECT_NE(dlsym(library, #name), nullptr) << #name;
  TITAN_CUDA_ENTRY_POINTS(TITAN_CUDA_FIND)
#undef TITAN_CUDA_FIND
  for (const char* none :
       {"cuMemAlloc", "cuGraphUpload", "cuStreamBeginCapture", "cuMemAllocManaged",
        "cuCtxSynchronize", "cuMemcpy", "cuGetProcAddress_v2"})
    EXPECT_EQ(dlsym(library, none), nullptr) << none;
  dlclose(library);
}

TEST(FakeDriver, AddressesAreNotTheHosts) {
  Opened card;
  EXPECT_EQ(card.memory % 256, 0);
  // The upper bits of a pointer are those of bit 47.
  const auto address = static_cast<int64_t>(card.memory);
  EXPECT_NE(address << 16 >> 16, address);
}

TEST(FakeDriver, StreamsAreLateAndInOrder) {
  Opened card;
  char* into = card.pinned(2);
  card.set('a', card.first);
  ASSERT_TRUE(card.driver.cuMemcpyDtoHAsync_v2(into, card.memory, 1, card.first).ok());
  card.set('b', card.first);
  EXPECT_NE(into[0], 'a');
  ASSERT_TRUE(card.driver.cuStreamSynchronize(card.first).ok());
  EXPECT_EQ(into[0], 'a');
}

TEST(FakeDriver, PinnedSourcesAreReadLateAndOthersAtTheCall) {
  Opened card;
  char *from = card.pinned(1), pageable = 'c';
  char* into = card.pinned(2);
  *from = 'a';
  ASSERT_TRUE(card.driver.cuMemcpyHtoDAsync_v2(card.memory, from, 1, card.first).ok());
  ASSERT_TRUE(card.driver.cuMemcpyHtoDAsync_v2(card.memory + 1, &pageable, 1, card.first).ok());
  *from = 'b', pageable = 'd';
  ASSERT_TRUE(card.driver.cuMemcpyDtoHAsync_v2(into, card.memory, 2, card.first).ok());
  ASSERT_TRUE(card.driver.cuStreamSynchronize(card.first).ok());
  EXPECT_EQ(std::string_view(into, 2), "bc");
  // Pageable targets are filled when the call returns.
  char target = 0;
  card.set('e', card.first);
  ASSERT_TRUE(card.driver.cuMemcpyDtoHAsync_v2(&target, card.memory, 1, card.first).ok());
  EXPECT_EQ(target, 'e');
}

TEST(FakeDriver, StreamsWaitForEventsAndForNothingElse) {
  Opened card;
  const CUevent filled = card.event();
  char* into = card.pinned(1);
  card.set('a', card.first);
  ASSERT_TRUE(card.driver.cuEventRecord(filled, card.first).ok());
  card.set('b', card.first);
  ASSERT_TRUE(card.driver.cuStreamWaitEvent(card.second, filled, 0).ok());
  ASSERT_TRUE(card.driver.cuMemcpyDtoHAsync_v2(into, card.memory, 1, card.second).ok());
  ASSERT_TRUE(card.driver.cuStreamSynchronize(card.second).ok());
  EXPECT_EQ(*into, 'a'); // 'b' was nobody's business
  ASSERT_TRUE(card.driver.cuStreamSynchronize(card.first).ok());

  // Without the event the second stream may be first.
  card.set('c', card.first);
  ASSERT_TRUE(card.driver.cuMemcpyDtoHAsync_v2(into, card.memory, 1, card.second).ok());
  ASSERT_TRUE(card.driver.cuStreamSynchronize(card.second).ok());
  EXPECT_EQ(*into, 'b');
}

TEST(FakeDriver, WhoAsksOftenEnoughGetsThere) {
  Opened card;
  const CUevent event = card.event();
  EXPECT_TRUE(card.driver.cuEventQuery(event).ok()); // never recorded
  for (int i = 0; i < 3; ++i)
    card.set('a', card.first);
  ASSERT_TRUE(card.driver.cuEventRecord(event, card.first).ok());
  int asked = 0;
  while (card.driver.cuEventQuery(event).result == CUDA_ERROR_NOT_READY)
    ++asked;
  EXPECT_EQ(asked, 4);
  EXPECT_TRUE(card.driver.cuEventQuery(event).ok());
}

TEST(FakeDriver, MeasuresTimeBetweenTimedEvents) {
  Opened card;
  const CUevent start = card.event(CU_EVENT_DEFAULT), end = card.event(CU_EVENT_DEFAULT);
  float time = -1;
  EXPECT_EQ(card.driver.cuEventElapsedTime(&time, start, end).result, CUDA_ERROR_INVALID_HANDLE);
  ASSERT_TRUE(card.driver.cuEventRecord(start, card.first).ok());
  ASSERT_TRUE(card.driver.cuEventRecord(end, card.first).ok());
  EXPECT_EQ(card.driver.cuEventElapsedTime(&time, start, end).result, CUDA_ERROR_NOT_READY);
  ASSERT_TRUE(card.driver.cuEventSynchronize(end).ok());
  ASSERT_TRUE(card.driver.cuEventElapsedTime(&time, start, end).ok());
  EXPECT_GE(time, 0);
  const CUevent untimed = card.event();
  ASSERT_TRUE(card.driver.cuEventRecord(untimed, card.first).ok());
  EXPECT_EQ(card.driver.cuEventElapsedTime(&time, start, untimed).result,
            CUDA_ERROR_INVALID_HANDLE);
}

TEST(FakeDriver, ASeedRunsStreamsInAnotherOrder) {
  std::vector<char> seen;
  for (const char* seed : {"1", "2", "3", "4", "5", "6", "7", "8"}) {
    const FakeVariable variable("SEED", seed);
    Opened card;
    char* into = card.pinned(1);
    card.set('0', card.first);
    ASSERT_TRUE(card.driver.cuStreamSynchronize(card.first).ok());
    for (char value = '1'; value <= '8'; ++value)
      card.set(value, card.first);
    ASSERT_TRUE(card.driver.cuMemcpyDtoHAsync_v2(into, card.memory, 1, card.second).ok());
    ASSERT_TRUE(card.driver.cuStreamSynchronize(card.second).ok());
    seen.push_back(*into);
  }
  std::ranges::sort(seen);
  EXPECT_NE(seen.front(), seen.back()) << std::string(seen.begin(), seen.end());
}

TEST(FakeDriver, MemoryIsCountedAndChecked) {
  const FakeVariable memory("MEMORY", "10000");
  Opened card;
  size_t free = 0, total = 0;
  ASSERT_TRUE(card.driver.cuMemGetInfo_v2(&free, &total).ok());
  EXPECT_EQ(total, 10000);
  EXPECT_EQ(free, 10000 - 4096);
  CUdeviceptr more = 0;
  EXPECT_EQ(card.driver.cuMemAlloc_v2(&more, 6000).result, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(card.driver.cuMemAlloc_v2(&more, 0).result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(card.driver.cuMemFree_v2(card.memory + 1).result, CUDA_ERROR_INVALID_VALUE);
  const auto fill = [&](CUdeviceptr to, size_t bytes) {
    return card.driver.cuMemsetD8Async(to, 0, bytes, card.first).result;
  };
  EXPECT_EQ(fill(card.memory, 4097), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(fill(card.memory + 4095, 1), CUDA_SUCCESS);
  char byte = 0;
  EXPECT_EQ(card.driver.cuMemcpyHtoDAsync_v2(card.memory + 4096, &byte, 1, card.first).result,
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(card.driver.cuMemcpyDtoHAsync_v2(&byte, card.memory - 1, 1, card.first).result,
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(
      card.driver.cuMemcpyDtoDAsync_v2(card.memory, card.memory + 4000, 97, card.first).result,
      CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(card.driver.cuMemFree_v2(card.memory).ok());
  EXPECT_EQ(fill(card.memory, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST(FakeDriver, NeedsAContext) {
  const Driver driver = loadDriver();
  ASSERT_TRUE(driver.cuCtxSetCurrent(nullptr).ok());
  CUdeviceptr memory = 0;
  EXPECT_EQ(driver.cuMemAlloc_v2(&memory, 8).result, CUDA_ERROR_INVALID_CONTEXT);
  CUcontext context = nullptr;
  EXPECT_EQ(driver.cuDevicePrimaryCtxRetain(&context, 1).result, CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(driver.cuCtxSetCurrent(reinterpret_cast<CUcontext>(&memory)).result,
            CUDA_ERROR_INVALID_CONTEXT);
}

/// Copies a u32 from its first operand to its second.
std::string copyPtx() {
  return ptxHeader() + ptxEntry("copy", "read 4, write 4", 0, 1,
                                "  ld.global.u32 %r0, [%p0];\n  st.global.u32 [%p1], %r0;\n");
}

TEST(FakeDriver, LaunchesReadTheirParametersAtTheCall) {
  Opened card;
  const CUfunction copy = card.function(card.module(copyPtx()), "copy");
  CUdeviceptr from = card.memory, into = card.memory + 256;
  ASSERT_TRUE(card.driver.cuMemsetD8Async(from, 7, 4, card.first).ok());
  ASSERT_EQ(card.launch(copy, {&from, &into}), CUDA_SUCCESS);
  from = into = 0;
  char* read = card.pinned(4);
  ASSERT_TRUE(card.driver.cuMemcpyDtoHAsync_v2(read, card.memory + 256, 4, card.first).ok());
  ASSERT_TRUE(card.driver.cuStreamSynchronize(card.first).ok());
  EXPECT_EQ(*read, 7);
}

constexpr CUstreamCaptureMode captureMode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;

TEST(FakeDriver, GraphsRepeatWhatWasCaptured) {
  Opened card;
  const CUfunction copy = card.function(card.module(copyPtx()), "copy");
  CUdeviceptr from = card.memory, into = card.memory + 256;
  char *source = card.pinned(4), *read = card.pinned(4);
  std::memset(source, 'x', 4);
  ASSERT_TRUE(card.driver.cuMemcpyHtoDAsync_v2(from, source, 4, card.first).ok());
  ASSERT_EQ(card.launch(copy, {&from, &into}), CUDA_SUCCESS); // loads it
  ASSERT_TRUE(card.driver.cuStreamSynchronize(card.first).ok());

  ASSERT_TRUE(card.driver.cuStreamBeginCapture_v2(card.first, captureMode).ok());
  EXPECT_EQ(card.driver.cuStreamBeginCapture_v2(card.first, captureMode).result,
            CUDA_ERROR_ILLEGAL_STATE);
  ASSERT_TRUE(card.driver.cuMemcpyHtoDAsync_v2(from, source, 4, card.first).ok());
  card.set('a', card.first);
  ASSERT_EQ(card.launch(copy, {&from, &into}), CUDA_SUCCESS);
  ASSERT_TRUE(card.driver.cuMemcpyDtoHAsync_v2(read, into, 4, card.first).ok());
  from = into = 0; // parameters are those of the capture
  CUgraph graph = nullptr;
  ASSERT_TRUE(card.driver.cuStreamEndCapture(card.first, &graph).ok());
  CUgraphExec exec = nullptr;
  ASSERT_TRUE(card.driver.cuGraphInstantiateWithFlags(&exec, graph, 0).ok());
  ASSERT_TRUE(card.driver.cuGraphDestroy(graph).ok());
  ASSERT_TRUE(card.driver.cuStreamSynchronize(card.first).ok());
  EXPECT_NE(read[0], 'a') << "a capture does nothing";
  for (const char value : {'1', '2'}) {
    std::memset(source, value, 4); // memory is that of the launch
    ASSERT_TRUE(card.driver.cuGraphLaunch(exec, card.first).ok());
    ASSERT_TRUE(card.driver.cuStreamSynchronize(card.first).ok());
    EXPECT_EQ(std::string_view(read, 4), std::string("a") + std::string(3, value));
  }
  EXPECT_TRUE(card.driver.cuGraphExecDestroy(exec).ok());
  EXPECT_EQ(card.driver.cuGraphLaunch(exec, card.first).result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(card.driver.cuGraphDestroy(graph).result, CUDA_ERROR_INVALID_VALUE);
}

TEST(FakeDriver, ACaptureRefusesWhatWaitsOrAllocates) {
  Opened card;
  const CUfunction copy = card.function(card.module(copyPtx()), "copy");
  const CUevent event = card.event();
  ASSERT_TRUE(card.driver.cuEventRecord(event, card.second).ok());
  CUdeviceptr from = card.memory, into = card.memory + 256, more = 0;
  void* host = nullptr;
  char pageable = 0;
  const std::pair<std::function<CUresult()>, CUresult> calls[] = {
      {[&] { return card.driver.cuStreamSynchronize(card.first).result; },
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {[&] { return card.driver.cuMemAlloc_v2(&more, 8).result; },
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {[&] { return card.driver.cuMemHostAlloc(&host, 8, 0).result; },
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {[&] { return card.driver.cuMemcpyHtoDAsync_v2(from, &pageable, 1, card.first).result; },
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {[&] { return card.driver.cuMemcpyDtoHAsync_v2(&pageable, from, 1, card.first).result; },
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {[&] { return card.driver.cuStreamWaitEvent(card.first, event, 0).result; },
       CUDA_ERROR_STREAM_CAPTURE_ISOLATION},
      {[&] { return card.launch(copy, {&from, &into}); }, // never launched, so not loaded
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
  };
  for (const auto& [call, result] : calls) {
    ASSERT_TRUE(card.driver.cuStreamBeginCapture_v2(card.first, captureMode).ok());
    EXPECT_EQ(call(), result);
    EXPECT_EQ(card.driver.cuMemsetD8Async(from, 0, 1, card.first).result,
              CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CUgraph graph = nullptr;
    EXPECT_EQ(card.driver.cuStreamEndCapture(card.first, &graph).result,
              CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
  }
  // Another stream is not concerned.
  ASSERT_TRUE(card.driver.cuStreamBeginCapture_v2(card.first, captureMode).ok());
  EXPECT_TRUE(card.driver.cuStreamSynchronize(card.second).ok());
  CUgraph graph = nullptr;
  EXPECT_TRUE(card.driver.cuStreamEndCapture(card.first, &graph).ok());
}

TEST(FakeDriver, CopiesTellWhatWasNeverWritten) {
  Opened card;
  const CUfunction copy = card.function(card.module(copyPtx()), "copy");
  CUdeviceptr from = card.memory + 256, into = card.memory;
  ASSERT_TRUE(card.driver.cuMemcpyDtoDAsync_v2(from, card.memory + 512, 4, card.first).ok());
  ASSERT_EQ(card.launch(copy, {&from, &into}), CUDA_SUCCESS);
  EXPECT_EQ(card.driver.cuStreamSynchronize(card.first).result, CUDA_ERROR_LAUNCH_FAILED);
}

TEST(FakeDriver, AFailedLaunchIsForGood) {
  Opened card;
  const CUfunction copy = card.function(card.module(copyPtx()), "copy");
  CUdeviceptr from = card.memory, into = 0x1000;
  ASSERT_TRUE(card.driver.cuMemsetD8Async(from, 7, 4, card.first).ok());
  ASSERT_EQ(card.launch(copy, {&from, &into}), CUDA_SUCCESS);
  EXPECT_EQ(card.driver.cuStreamSynchronize(card.first).result, CUDA_ERROR_ILLEGAL_ADDRESS);
  size_t free = 0, total = 0;
  EXPECT_EQ(card.driver.cuMemGetInfo_v2(&free, &total).result, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(card.driver.cuCtxSetCurrent(card.context).result, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(FakeDriver, AnAddressThatIsNoMultipleIsMisaligned) {
  Opened card;
  const CUfunction copy = card.function(card.module(copyPtx()), "copy");
  CUdeviceptr from = card.memory + 2, into = card.memory + 256;
  ASSERT_TRUE(card.driver.cuMemsetD8Async(card.memory, 7, 8, card.first).ok());
  ASSERT_EQ(card.launch(copy, {&from, &into}), CUDA_SUCCESS);
  EXPECT_EQ(card.driver.cuStreamSynchronize(card.first).result, CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST(FakeDriver, LaunchesAreChecked) {
  const FakeVariable shared("SHARED", "65536");
  Opened card;
  const CUfunction copy = card.function(card.module(copyPtx()), "copy");
  CUdeviceptr from = card.memory, into = card.memory + 4;
  EXPECT_EQ(card.launch(copy, {&from, &into}, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(card.launch(copy, {&from, &into}, 1, 2), CUDA_ERROR_INVALID_VALUE); // .reqntid 1
  EXPECT_EQ(card.launch(copy, {&from, &into}, 1, 1, 50000), CUDA_ERROR_INVALID_VALUE);
  const auto ask = [&](int bytes) {
    return card.driver
        .cuFuncSetAttribute(copy, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes)
        .result;
  };
  EXPECT_EQ(ask(65537), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ask(65536), CUDA_SUCCESS);
  EXPECT_EQ(card.launch(copy, {&from, &into}, 1, 1, 50000), CUDA_SUCCESS);
}

TEST(FakeDriver, ModulesAreChecked) {
  Opened card;
  CUmodule module = nullptr;
  const auto load = [&](const std::string& text) {
    return card.driver.cuModuleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr).result;
  };
  EXPECT_EQ(load(copyPtx()), CUDA_SUCCESS);
  CUfunction function = nullptr;
  EXPECT_EQ(card.driver.cuModuleGetFunction(&function, module, "other").result,
            CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(load("\177ELF"), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(load("nothing"), CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(load(ptxHeader("9.1")), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_EQ(load(ptxHeader("8.0", "sm_121")), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

TEST(FakeDriver, TheNthCallFails) {
  const FakeVariable fail("FAIL", "cuStreamCreate:3:2,cuMemGetInfo_v2:2:214");
  Opened card;
  CUstream stream = nullptr;
  EXPECT_EQ(card.driver.cuStreamCreate(&stream, 0).result, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(card.driver.cuStreamCreate(&stream, 0).result, CUDA_SUCCESS);
  size_t free = 0, total = 0;
  EXPECT_EQ(card.driver.cuMemGetInfo_v2(&free, &total).result, CUDA_SUCCESS);
  EXPECT_EQ(card.driver.cuMemGetInfo_v2(&free, &total).result, CUDA_ERROR_ECC_UNCORRECTABLE);
  // A card that is lost stays lost.
  EXPECT_EQ(card.driver.cuStreamCreate(&stream, 0).result, CUDA_ERROR_ECC_UNCORRECTABLE);
}

TEST(FakeDriverDeathTest, TheNthCallMayEndTheProcess) {
  EXPECT_EXIT(
      {
        const FakeVariable fail("FAIL", "cuMemAlloc_v2:1:kill");
        Opened card;
      },
      ::testing::KilledBySignal(SIGKILL), "");
}

TEST(FakeDriverDeathTest, VariablesAreChecked) {
  for (const auto& [name, value] :
       {std::pair{"DEVICES", "x"}, std::pair{"CAPABILITY", "9"}, std::pair{"ORDER", "up"},
        std::pair{"FAIL", "cuInit:1"}, std::pair{"VERSION", "12"}})
    EXPECT_EXIT(
        {
          const FakeVariable variable(name, value);
          loadDriver();
        },
        ::testing::ExitedWithCode(1),
        fmt::format("TITAN_FAKE_CUDA_{} cannot be '{}'", name, value));
}

} // namespace
} // namespace titan::cuda
