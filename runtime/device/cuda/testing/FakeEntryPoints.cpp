// The functions that libcuda.so.1 of the tests exports: those of DriverApi.h, and no other.
#include "runtime/device/cuda/testing/FakeDriver.h"

#include <cstring>
#include <type_traits>

using namespace titan::cuda;
using titan::cuda::testing::FakeDriver;

namespace {

template <typename... Arguments> std::string text(const Arguments&... arguments) {
  std::string joined;
  ((joined += fmt::format("{}{}", joined.empty() ? "" : ", ", arguments)), ...);
  return joined;
}

/// "0x7a00000000000000"
std::string hex(CUdeviceptr address) { return fmt::format("{:#x}", address); }

/// "stream 1"
std::string nameOf(CUstream stream) { return fmt::format("stream {}", stream->number); }

std::string kindOf(const void* address, size_t bytes) {
  return FakeDriver::instance().kindOf(address, bytes);
}

template <typename Body>
CUresult call(const char* entry, const std::string& arguments, Body&& body) {
  return FakeDriver::instance().call(entry, arguments, body);
}

} // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuDriverGetVersion(int* version) {
  FakeDriver::instance().start();
  return call("cuDriverGetVersion", "",
              [&](FakeDriver& fake) { return fake.driverGetVersion(version); });
}

CUresult cuInit(unsigned flags) {
  FakeDriver::instance().start();
  return call("cuInit", text(flags), [&](FakeDriver& fake) { return fake.init(); });
}

CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = FakeDriver::nameOf(error);
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  const char* name = FakeDriver::nameOf(error);
  // The name is all that the fake has to say.
  *text = name ? "as the fake driver says" : nullptr;
  return name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int* count) {
  return call("cuDeviceGetCount", "", [&](FakeDriver& fake) { return fake.deviceGetCount(count); });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return call("cuDeviceGet", text(ordinal),
              [&](FakeDriver& fake) { return fake.deviceGet(device, ordinal); });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return call("cuDeviceGetName", text(device),
              [&](FakeDriver& fake) { return fake.deviceGetName(name, length, device); });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return call("cuDeviceGetAttribute", text(static_cast<int>(attribute), device),
              [&](FakeDriver& fake) { return fake.deviceGetAttribute(value, attribute, device); });
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return call("cuDeviceTotalMem_v2", text(device),
              [&](FakeDriver& fake) { return fake.deviceTotalMem(bytes, device); });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return call("cuDevicePrimaryCtxRetain", text(device),
              [&](FakeDriver& fake) { return fake.primaryCtxRetain(context, device); });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return call("cuDevicePrimaryCtxRelease_v2", text(device),
              [&](FakeDriver& fake) { return fake.primaryCtxRelease(device); });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return call("cuCtxSetCurrent", "", [&](FakeDriver& fake) { return fake.ctxSetCurrent(context); });
}

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  return call("cuMemGetInfo_v2", "",
              [&](FakeDriver& fake) { return fake.memGetInfo(free, total); });
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return call("cuMemAlloc_v2", text(bytes),
              [&](FakeDriver& fake) { return fake.memAlloc(address, bytes); });
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  return call("cuMemFree_v2", hex(address),
              [&](FakeDriver& fake) { return fake.memFree(address); });
}

CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned flags) {
  return call("cuMemHostAlloc", text(bytes, flags),
              [&](FakeDriver& fake) { return fake.memHostAlloc(address, bytes, flags); });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* host, unsigned flags) {
  return call("cuMemHostGetDevicePointer_v2", text(flags),
              [&](FakeDriver& fake) { return fake.memHostGetDevicePointer(address, host); });
}

CUresult cuMemFreeHost(void* address) {
  return call("cuMemFreeHost", "", [&](FakeDriver& fake) { return fake.memFreeHost(address); });
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return call("cuMemcpyHtoDAsync_v2", text(hex(to), bytes, kindOf(from, bytes), nameOf(stream)),
              [&](FakeDriver& fake) { return fake.memcpyHtoD(to, from, bytes, stream); });
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call("cuMemcpyDtoHAsync_v2", text(hex(from), bytes, kindOf(to, bytes), nameOf(stream)),
              [&](FakeDriver& fake) { return fake.memcpyDtoH(to, from, bytes, stream); });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call("cuMemcpyDtoDAsync_v2", text(hex(to), hex(from), bytes, nameOf(stream)),
              [&](FakeDriver& fake) { return fake.memcpyDtoD(to, from, bytes, stream); });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  return call("cuMemsetD8Async", text(hex(to), value, bytes),
              [&](FakeDriver& fake) { return fake.memsetD8(to, value, bytes, stream); });
}

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return call("cuStreamCreate", text(flags),
              [&](FakeDriver& fake) { return fake.streamCreate(stream, flags); });
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  return call("cuStreamDestroy_v2", "",
              [&](FakeDriver& fake) { return fake.streamDestroy(stream); });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return call("cuStreamSynchronize", "",
              [&](FakeDriver& fake) { return fake.streamSynchronize(stream); });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return call("cuStreamWaitEvent", nameOf(stream),
              [&](FakeDriver& fake) { return fake.streamWaitEvent(stream, event); });
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return call("cuStreamBeginCapture_v2", text(static_cast<int>(mode)), [&](FakeDriver& fake) {
    return mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ? fake.streamBeginCapture(stream)
                                                       : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return call("cuStreamEndCapture", "",
              [&](FakeDriver& fake) { return fake.streamEndCapture(stream, graph); });
}

CUresult cuGraphDestroy(CUgraph graph) {
  return call("cuGraphDestroy", "", [&](FakeDriver& fake) { return fake.graphDestroy(graph); });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return call("cuGraphInstantiateWithFlags", text(flags), [&](FakeDriver& fake) {
    return flags == 0 ? fake.graphInstantiate(exec, graph) : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  return call("cuGraphExecDestroy", "",
              [&](FakeDriver& fake) { return fake.graphExecDestroy(exec); });
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return call("cuGraphLaunch", nameOf(stream),
              [&](FakeDriver& fake) { return fake.graphLaunch(exec, stream); });
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return call("cuEventCreate", text(flags),
              [&](FakeDriver& fake) { return fake.eventCreate(event, flags); });
}

CUresult cuEventDestroy_v2(CUevent event) {
  return call("cuEventDestroy_v2", "", [&](FakeDriver& fake) { return fake.eventDestroy(event); });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return call("cuEventRecord", nameOf(stream),
              [&](FakeDriver& fake) { return fake.eventRecord(event, stream); });
}

CUresult cuEventQuery(CUevent event) {
  return call("cuEventQuery", "", [&](FakeDriver& fake) { return fake.eventQuery(event); });
}

CUresult cuEventSynchronize(CUevent event) {
  return call("cuEventSynchronize", "",
              [&](FakeDriver& fake) { return fake.eventSynchronize(event); });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return call("cuEventElapsedTime", "",
              [&](FakeDriver& fake) { return fake.eventElapsedTime(milliseconds, start, end); });
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned options,
                            CUjit_option* names, void** values) {
  return call("cuModuleLoadDataEx", text(options), [&](FakeDriver& fake) {
    std::string log;
    const CUresult result = fake.moduleLoad(module, static_cast<const char*>(image), log);
    char* buffer = nullptr;
    for (unsigned i = 0; i < options; ++i) {
      if (names[i] == CU_JIT_ERROR_LOG_BUFFER)
        buffer = static_cast<char*>(values[i]);
      if (names[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES && buffer)
        buffer[log.copy(buffer, reinterpret_cast<size_t>(values[i]) - 1)] = '\0';
    }
    return result;
  });
}

CUresult cuModuleUnload(CUmodule module) {
  return call("cuModuleUnload", "", [&](FakeDriver& fake) { return fake.moduleUnload(module); });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return call("cuModuleGetFunction", name,
              [&](FakeDriver& fake) { return fake.moduleGetFunction(function, module, name); });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return call("cuFuncSetAttribute", text(function->name, static_cast<int>(attribute), value),
              [&](FakeDriver& fake) { return fake.funcSetAttribute(function, attribute, value); });
}

CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ,
                        unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                        CUstream stream, void** parameters, void** extra) {
  return call("cuLaunchKernel", text(function->name, gridX, blockX, sharedBytes),
              [&](FakeDriver& fake) {
                if (gridY != 1 || gridZ != 1 || blockY != 1 || blockZ != 1 || extra)
                  return CUDA_ERROR_INVALID_VALUE; // the table knows no other launches
                return fake.launchKernel(function, gridX, blockX, sharedBytes, stream, parameters);
              });
}

CUresult titanFakeEnqueue(CUstream stream, const titan::cuda::testing::FakeWork* work) {
  return call("titanFakeEnqueue", work->name,
              [&](FakeDriver& fake) { return fake.enqueue(stream, *work); });
}

} // extern "C"
#pragma GCC visibility pop

// Each entry point of the list is there, with its signature.
#define TITAN_CUDA_CHECK(name, parameters)                                                         \
  static_assert(std::is_same_v<decltype(&::name), CUresult(*) parameters>);
TITAN_CUDA_ENTRY_POINTS(TITAN_CUDA_CHECK)
