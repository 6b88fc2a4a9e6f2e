// A CUDA driver without a card: libcuda.so.1 for tests, on the PTX interpreter.
//
// Device addresses are such as the host cannot touch, but those of pinned memory that was allocated
// to be mapped: kernels reach it by the host's address. Streams are as late as the API allows
// (FakeQueue). A copy from pinned memory reads its source when the stream comes to it, a copy into
// pinned memory leaves garbage there until then; of pageable memory the one makes a copy at the
// call, and the other returns when it is done, as the vendor's do. A launch that fails prints what
// the interpreter says, and its context answers every later call with the error.
//
// A stream that is captured notes what it is told with the parameters of that moment. Whatever may
// not be done meanwhile is refused and spoils the capture: to wait, to allocate and to free, and
// to launch what no launch has loaded before. So are copies of pageable memory and events, which
// the vendor's driver takes in some forms: nobody here captures more than one stream.
//
// Functions return what the entry points of their names do; FakeEntryPoints.cpp has those.
#pragma once

#include "runtime/device/cuda/testing/FakeQueue.h"
#include "runtime/device/cuda/testing/FakeSettings.h"
#include "runtime/device/cuda/testing/FakeWork.h"
#include "runtime/device/cuda/testing/ptx/Ptx.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace titan::cuda {

struct CUfunc_st {
  CUmodule module;
  std::string name;
  ptx::EntryInfo info;
  uint32_t mostDynamicShared = 0; ///< as asked for
  bool loaded = false;            ///< on the card: since its first launch
};

struct CUmod_st {
  CUcontext context;
  std::shared_ptr<const ptx::Module> code;
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
};

/// What a stream was told while it was captured, in order.
struct CUgraph_st {
  std::vector<std::function<void()>> nodes;
};

struct CUgraphExec_st {
  std::vector<std::function<void()>> nodes;
};

struct CUstream_st {
  CUcontext context;
  size_t number; ///< of its context, from 1 on
  testing::FakeQueue* queue;
  std::unique_ptr<CUgraph_st> capture = nullptr; ///< while one goes on
  bool captureFailed = false;                    ///< something was done that may not be
  std::thread::id captureThread = {};
};

struct CUevent_st {
  CUcontext context;
  bool timed = false;
  testing::Position position; ///< null: never recorded, or its stream has ended
  std::chrono::steady_clock::time_point time;
};

struct CUctx_st {
  CUctx_st(CUdevice device, uint64_t seed) : device(device), queues(seed) {}

  CUdevice device;
  int holders = 0;
  CUresult error = CUDA_SUCCESS; ///< that stays
  ptx::Memory memory;
  std::map<CUdeviceptr, size_t> allocations;
  testing::FakeQueues queues;
  std::vector<std::unique_ptr<CUmod_st>> modules;
  std::vector<std::unique_ptr<CUstream_st>> streams;
  std::vector<std::unique_ptr<CUevent_st>> events;
  std::vector<std::unique_ptr<CUgraph_st>> graphs;
  std::vector<std::unique_ptr<CUgraphExec_st>> execs;
};

} // namespace titan::cuda

namespace titan::cuda::testing {

/// Returns the result of `call` from the enclosing function unless it is success.
#define TITAN_FAKE_TRY(call)                                                                       \
  if (const CUresult tried = (call); tried != CUDA_SUCCESS)                                        \
  return tried

/// Is `handle` one of those that `held` owns?
template <typename T> bool holds(const std::vector<std::unique_ptr<T>>& held, const T* handle) {
  return std::ranges::any_of(held, [&](const auto& owned) { return owned.get() == handle; });
}

/// Ends `handle`. False: it is none of those that `held` owns.
template <typename T> bool release(std::vector<std::unique_ptr<T>>& held, const T* handle) {
  return std::erase_if(held, [&](const auto& owned) { return owned.get() == handle; }) > 0;
}

/// The results of all entry points but those that only ask for texts.
class FakeDriver {
public:
  static FakeDriver& instance();

  /// Takes the settings of the environment, unless a context is held. Calls are counted anew.
  void start();

  /// One call of an entry point: counts it, lets it fail where that was asked for, else does
  /// `body`, and records it.
  template <typename Body>
  CUresult call(const char* entry, const std::string& arguments, Body&& body) {
    std::lock_guard lock(mutex_);
    CUresult result = CUDA_SUCCESS;
    if (!fails(entry, arguments, result))
      result = body(*this);
    const char* name = nameOf(result);
    record(fmt::format("{}({}) = {}", entry, arguments, name ? name : "another error"));
    return result;
  }

  CUresult driverGetVersion(int* version);
  CUresult init();
  CUresult deviceGetCount(int* count);
  CUresult deviceGet(CUdevice* device, int ordinal);
  CUresult deviceGetName(char* name, int length, CUdevice device);
  CUresult deviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device);
  CUresult deviceTotalMem(size_t* bytes, CUdevice device);
  CUresult primaryCtxRetain(CUcontext* context, CUdevice device);
  CUresult primaryCtxRelease(CUdevice device);
  CUresult ctxSetCurrent(CUcontext context);
  CUresult memGetInfo(size_t* free, size_t* total);
  CUresult memAlloc(CUdeviceptr* address, size_t bytes);
  CUresult memFree(CUdeviceptr address);
  CUresult memHostAlloc(void** address, size_t bytes, unsigned flags);
  CUresult memHostGetDevicePointer(CUdeviceptr* address, void* host);
  CUresult memFreeHost(void* address);
  CUresult memcpyHtoD(CUdeviceptr to, const void* from, size_t bytes, CUstream stream);
  CUresult memcpyDtoH(void* to, CUdeviceptr from, size_t bytes, CUstream stream);
  CUresult memcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
  CUresult memsetD8(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream);
  CUresult streamCreate(CUstream* stream, unsigned flags);
  CUresult streamDestroy(CUstream stream);
  CUresult streamSynchronize(CUstream stream);
  CUresult streamWaitEvent(CUstream stream, CUevent event);
  CUresult streamBeginCapture(CUstream stream);
  CUresult streamEndCapture(CUstream stream, CUgraph* graph);
  CUresult graphDestroy(CUgraph graph);
  CUresult graphInstantiate(CUgraphExec* exec, CUgraph graph);
  CUresult graphExecDestroy(CUgraphExec exec);
  CUresult graphLaunch(CUgraphExec exec, CUstream stream);
  CUresult eventCreate(CUevent* event, unsigned flags);
  CUresult eventDestroy(CUevent event);
  CUresult eventRecord(CUevent event, CUstream stream);
  CUresult eventQuery(CUevent event);
  CUresult eventSynchronize(CUevent event);
  CUresult eventElapsedTime(float* milliseconds, CUevent start, CUevent end);
  CUresult moduleLoad(CUmodule* module, const char* image, std::string& log);
  CUresult moduleUnload(CUmodule module);
  CUresult moduleGetFunction(CUfunction* function, CUmodule module, const char* name);
  CUresult funcSetAttribute(CUfunction function, CUfunction_attribute attribute, int value);
  CUresult launchKernel(CUfunction function, unsigned blocks, unsigned threads,
                        unsigned sharedBytes, CUstream stream, void** parameters);
  /// Of a library of the tests.
  CUresult enqueue(CUstream stream, const FakeWork& work);

  /// "pinned" or "pageable"
  std::string kindOf(const void* address, size_t bytes);

  /// "CUDA_ERROR_INVALID_VALUE"; null where the fake knows no such result.
  static const char* nameOf(CUresult result);

private:
  FakeDriver() = default;
  bool fails(const char* entry, const std::string& arguments, CUresult& result);
  void record(const std::string& line);
  /// The context of the calling thread, or why there is none to work with.
  CUresult enter(CUcontext& context);
  /// The same for calls that must not be made while this thread captures a stream.
  CUresult enterUncaptured(CUcontext& context);
  /// The stream's queue in the context.
  CUresult find(CUcontext context, CUstream stream, FakeQueue*& queue);
  /// The same for calls that a captured stream does not take; `result` is what they return then.
  CUresult findUncaptured(CUcontext context, CUstream stream, FakeQueue*& queue,
                          CUresult result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  /// Into the stream, or the graph that it is captured to.
  CUresult add(CUcontext context, CUstream stream, std::function<void()> operation);
  bool isPinned(const void* address, size_t bytes) const;
  void execute(CUcontext context, const ptx::Launch& launch, const ptx::Module& code);
  /// The context fails from here on.
  void fail(CUcontext context, const std::string& name, const Error& error);

  std::mutex mutex_;
  FakeSettings settings_;
  bool initialized_ = false;
  std::map<std::string, int64_t> calls_; ///< by entry point
  std::map<CUdevice, std::unique_ptr<CUctx_st>> contexts_;
  std::map<const char*, size_t> pinned_; ///< bytes by address
  int record_ = -1;                      ///< file descriptor
};

} // namespace titan::cuda::testing
