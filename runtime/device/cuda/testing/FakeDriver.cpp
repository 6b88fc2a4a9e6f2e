#include "runtime/device/cuda/testing/FakeDriver.h"

#include "runtime/device/cuda/Results.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace titan::cuda::testing {
namespace {

constexpr char garbage = '\xcd';
constexpr size_t page = 4096;

thread_local CUcontext current = nullptr;

} // namespace

FakeDriver& FakeDriver::instance() {
  // Never ended: a job may call the driver from destructors of static objects.
  static auto* driver = new FakeDriver;
  return *driver;
}

const char* FakeDriver::nameOf(CUresult result) {
  switch (result) {
#define TITAN_CUDA_NAME(name, value)                                                               \
  case name:                                                                                       \
    return #name;
    TITAN_CUDA_RESULTS(TITAN_CUDA_NAME)
#undef TITAN_CUDA_NAME
  }
  return nullptr;
}

void FakeDriver::start() {
  std::lock_guard lock(mutex_);
  if (!contexts_.empty())
    return;
  Result<FakeSettings> settings = FakeSettings::read();
  if (!settings.ok()) {
    std::fprintf(stderr, "fake CUDA driver: %s\n", settings.error().message().c_str());
    std::_Exit(settings.error().exitCode());
  }
  settings_ = settings.take();
  calls_.clear();
  if (record_ >= 0)
    close(record_);
  record_ = settings_.record.empty()
                ? -1
                : open(settings_.record.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

bool FakeDriver::fails(const char* entry, const std::string& arguments, CUresult& result) {
  const int64_t call = ++calls_[entry];
  for (const FakeSettings::Failure& failure : settings_.failures) {
    if (failure.entry != entry || failure.call != call)
      continue;
    if (failure.kill) {
      record(fmt::format("{}({}): killed", entry, arguments));
      std::raise(SIGKILL);
    }
    result = static_cast<CUresult>(failure.result);
    if (isSticky(result) && current)
      current->error = result;
    return true;
  }
  return false;
}

void FakeDriver::record(const std::string& line) {
  if (record_ < 0)
    return;
  const std::string whole = line + '\n';
  if (write(record_, whole.data(), whole.size()) < 0)
    std::perror("fake CUDA driver: cannot record a call");
}

CUresult FakeDriver::enter(CUcontext& context) {
  if (!initialized_)
    return CUDA_ERROR_NOT_INITIALIZED;
  if (!current)
    return CUDA_ERROR_INVALID_CONTEXT;
  context = current;
  return context->error;
}

CUresult FakeDriver::find(CUcontext context, CUstream stream, FakeQueue*& queue) {
  if (!holds(context->streams, stream))
    return CUDA_ERROR_INVALID_HANDLE;
  queue = stream->queue;
  return CUDA_SUCCESS;
}

CUresult FakeDriver::enterUncaptured(CUcontext& context) {
  TITAN_FAKE_TRY(enter(context));
  for (const auto& stream : context->streams)
    if (stream->capture && stream->captureThread == std::this_thread::get_id()) {
      stream->captureFailed = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  return CUDA_SUCCESS;
}

CUresult FakeDriver::findUncaptured(CUcontext context, CUstream stream, FakeQueue*& queue,
                                    CUresult result) {
  TITAN_FAKE_TRY(find(context, stream, queue));
  if (!stream->capture)
    return CUDA_SUCCESS;
  stream->captureFailed = true;
  return result;
}

CUresult FakeDriver::add(CUcontext context, CUstream stream, std::function<void()> operation) {
  FakeQueue* queue = nullptr;
  TITAN_FAKE_TRY(find(context, stream, queue));
  if (!stream->capture)
    queue->add(std::move(operation));
  else if (stream->captureFailed)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  else
    stream->capture->nodes.push_back(std::move(operation));
  return CUDA_SUCCESS;
}

CUresult FakeDriver::driverGetVersion(int* version) {
  *version = settings_.driverVersion;
  return CUDA_SUCCESS;
}

CUresult FakeDriver::init() {
  if (settings_.devices == 0)
    return CUDA_ERROR_NO_DEVICE;
  initialized_ = true;
  return CUDA_SUCCESS;
}

CUresult FakeDriver::deviceGetCount(int* count) {
  *count = settings_.devices;
  return initialized_ ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult FakeDriver::deviceGet(CUdevice* device, int ordinal) {
  if (ordinal < 0 || ordinal >= settings_.devices)
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return initialized_ ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult FakeDriver::deviceGetName(char* name, int length, CUdevice device) {
  std::snprintf(name, static_cast<size_t>(length), "Titan fake card");
  return CUDA_SUCCESS;
}

CUresult FakeDriver::deviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = settings_.capability.major;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = settings_.capability.minor;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = 4;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    *value = static_cast<int>(settings_.sharedBytes);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult FakeDriver::deviceTotalMem(size_t* bytes, CUdevice device) {
  *bytes = static_cast<size_t>(settings_.bytes);
  return CUDA_SUCCESS;
}

CUresult FakeDriver::primaryCtxRetain(CUcontext* context, CUdevice device) {
  if (!initialized_)
    return CUDA_ERROR_NOT_INITIALIZED;
  if (device < 0 || device >= settings_.devices)
    return CUDA_ERROR_INVALID_DEVICE;
  std::unique_ptr<CUctx_st>& held = contexts_[device];
  if (!held)
    held = std::make_unique<CUctx_st>(device, settings_.seed);
  ++held->holders;
  *context = held.get();
  return CUDA_SUCCESS;
}

CUresult FakeDriver::primaryCtxRelease(CUdevice device) {
  const auto found = contexts_.find(device);
  if (found == contexts_.end())
    return CUDA_ERROR_INVALID_CONTEXT;
  CUctx_st& context = *found->second;
  if (--context.holders > 0)
    return CUDA_SUCCESS;
  context.queues.finishAll();
  for (const auto& [address, bytes] : context.allocations)
    record(fmt::format("# {} bytes at {:#x} were never freed", bytes, address));
  if (current == &context)
    current = nullptr;
  contexts_.erase(found);
  return CUDA_SUCCESS;
}

CUresult FakeDriver::ctxSetCurrent(CUcontext context) {
  const bool known = std::ranges::any_of(
      contexts_, [&](const auto& held) { return held.second.get() == context; });
  if (context && !known)
    return CUDA_ERROR_INVALID_CONTEXT;
  current = context;
  return context ? context->error : CUDA_SUCCESS;
}

CUresult FakeDriver::memGetInfo(size_t* free, size_t* total) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enter(context));
  *total = *free = static_cast<size_t>(settings_.bytes);
  for (const auto& [address, bytes] : context->allocations)
    *free -= bytes;
  return CUDA_SUCCESS;
}

CUresult FakeDriver::memAlloc(CUdeviceptr* address, size_t bytes) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enterUncaptured(context));
  size_t free = 0, total = 0;
  TITAN_FAKE_TRY(memGetInfo(&free, &total));
  if (bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (bytes > free)
    return CUDA_ERROR_OUT_OF_MEMORY;
  Result<uint64_t> allocated = context->memory.allocate(static_cast<int64_t>(bytes));
  if (!allocated.ok())
    return CUDA_ERROR_OUT_OF_MEMORY;
  *address = *allocated;
  context->allocations[*address] = bytes;
  return CUDA_SUCCESS;
}

CUresult FakeDriver::memFree(CUdeviceptr address) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enterUncaptured(context));
  if (context->allocations.erase(address) == 0)
    return CUDA_ERROR_INVALID_VALUE;
  context->queues.finishAll();
  context->memory.free(address);
  return context->error;
}

CUresult FakeDriver::memHostAlloc(void** address, size_t bytes, unsigned flags) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enterUncaptured(context));
  if (bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  const size_t rounded = (bytes + page - 1) / page * page;
  *address = std::aligned_alloc(page, rounded);
  if (!*address)
    return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(*address, garbage, rounded);
  pinned_[static_cast<const char*>(*address)] = bytes;
  if (flags & mappedHostMemory)
    context->memory.map({static_cast<char*>(*address), bytes});
  return CUDA_SUCCESS;
}

CUresult FakeDriver::memHostGetDevicePointer(CUdeviceptr* address, void* host) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enter(context));
  const ptx::Memory::Allocation* mapped = context->memory.find(reinterpret_cast<CUdeviceptr>(host));
  if (!mapped)
    return CUDA_ERROR_INVALID_VALUE;
  *address = reinterpret_cast<CUdeviceptr>(host); // one address space
  return CUDA_SUCCESS;
}

CUresult FakeDriver::memFreeHost(void* address) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enterUncaptured(context));
  if (pinned_.erase(static_cast<const char*>(address)) == 0)
    return CUDA_ERROR_INVALID_VALUE;
  context->queues.finishAll();
  context->memory.free(reinterpret_cast<CUdeviceptr>(address)); // where it is mapped
  std::free(address);
  return context->error;
}

std::string FakeDriver::kindOf(const void* address, size_t bytes) {
  const std::lock_guard lock(mutex_);
  return isPinned(address, bytes) ? "pinned" : "pageable";
}

bool FakeDriver::isPinned(const void* address, size_t bytes) const {
  const auto* first = static_cast<const char*>(address);
  auto after = pinned_.upper_bound(first);
  if (after == pinned_.begin())
    return false;
  const auto& [start, size] = *std::prev(after);
  return first + bytes <= start + size;
}

CUresult FakeDriver::memcpyHtoD(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enter(context));
  const auto size = static_cast<int64_t>(bytes);
  const std::span<char> target = context->memory.bytes(to, size);
  if (target.size() != bytes)
    return CUDA_ERROR_INVALID_VALUE;
  std::string staged;
  if (!isPinned(from, bytes)) {
    FakeQueue* queue = nullptr;
    TITAN_FAKE_TRY(findUncaptured(context, stream, queue));
    staged.assign(static_cast<const char*>(from), bytes);
  }
  return add(context, stream, [=, staged = std::move(staged)] {
    if (context->error != CUDA_SUCCESS)
      return;
    std::memcpy(target.data(), staged.empty() ? from : staged.data(), bytes);
    context->memory.markWritten(to, size);
  });
}

CUresult FakeDriver::memcpyDtoH(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  CUcontext context = nullptr;
  FakeQueue* queue = nullptr;
  TITAN_FAKE_TRY(enter(context));
  const bool pinned = isPinned(to, bytes);
  TITAN_FAKE_TRY(pinned ? find(context, stream, queue) : findUncaptured(context, stream, queue));
  const std::span<const char> source = context->memory.bytes(from, static_cast<int64_t>(bytes));
  if (source.size() != bytes)
    return CUDA_ERROR_INVALID_VALUE;
  std::memset(to, garbage, bytes);
  TITAN_FAKE_TRY(add(context, stream, [=] {
    if (context->error == CUDA_SUCCESS)
      std::memcpy(to, source.data(), bytes);
  }));
  if (!pinned)
    queue->finish();
  return context->error;
}

CUresult FakeDriver::memcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enter(context));
  const auto size = static_cast<int64_t>(bytes);
  const ptx::Memory::Allocation *target = context->memory.find(to),
                                *source = context->memory.find(from);
  if (!target || !target->holds(to, size) || !source || !source->holds(from, size))
    return CUDA_ERROR_INVALID_VALUE;
  return add(context, stream, [=] {
    if (context->error != CUDA_SUCCESS)
      return;
    const auto copy = [&](auto* into, const auto* out) {
      std::memmove(into + (to - target->address), out + (from - source->address), bytes);
    };
    copy(target->bytes.get(), source->bytes.get());
    copy(target->written.get(), source->written.get()); // what was never written stays so
  });
}

CUresult FakeDriver::memsetD8(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enter(context));
  const auto size = static_cast<int64_t>(bytes);
  const std::span<char> target = context->memory.bytes(to, size);
  if (target.size() != bytes)
    return CUDA_ERROR_INVALID_VALUE;
  return add(context, stream, [=] {
    if (context->error != CUDA_SUCCESS)
      return;
    std::memset(target.data(), value, bytes);
    context->memory.markWritten(to, size);
  });
}

CUresult FakeDriver::streamCreate(CUstream* stream, unsigned flags) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enter(context));
  context->streams.push_back(std::make_unique<CUstream_st>(
      CUstream_st{context, context->streams.size() + 1, &context->queues.add()}));
  *stream = context->streams.back().get();
  return CUDA_SUCCESS;
}

CUresult FakeDriver::streamDestroy(CUstream stream) {
  CUcontext context = nullptr;
  FakeQueue* queue = nullptr;
  TITAN_FAKE_TRY(enter(context));
  TITAN_FAKE_TRY(findUncaptured(context, stream, queue));
  for (const auto& event : context->events)
    if (event->position.queue == queue)
      event->position = {};
  context->queues.remove(*queue);
  release(context->streams, stream);
  return context->error;
}

CUresult FakeDriver::streamSynchronize(CUstream stream) {
  CUcontext context = nullptr;
  FakeQueue* queue = nullptr;
  TITAN_FAKE_TRY(enter(context));
  TITAN_FAKE_TRY(findUncaptured(context, stream, queue));
  queue->finish();
  return context->error;
}

CUresult FakeDriver::streamWaitEvent(CUstream stream, CUevent event) {
  CUcontext context = nullptr;
  FakeQueue* queue = nullptr;
  TITAN_FAKE_TRY(enter(context));
  TITAN_FAKE_TRY(findUncaptured(context, stream, queue, CUDA_ERROR_STREAM_CAPTURE_ISOLATION));
  if (!holds(context->events, event))
    return CUDA_ERROR_INVALID_HANDLE;
  if (event->position.queue)
    queue->addWait(event->position);
  return CUDA_SUCCESS;
}

CUresult FakeDriver::streamBeginCapture(CUstream stream) {
  CUcontext context = nullptr;
  FakeQueue* queue = nullptr;
  TITAN_FAKE_TRY(enter(context));
  TITAN_FAKE_TRY(find(context, stream, queue));
  if (stream->capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  stream->capture = std::make_unique<CUgraph_st>();
  stream->captureFailed = false;
  stream->captureThread = std::this_thread::get_id();
  return CUDA_SUCCESS;
}

CUresult FakeDriver::streamEndCapture(CUstream stream, CUgraph* graph) {
  CUcontext context = nullptr;
  FakeQueue* queue = nullptr;
  *graph = nullptr;
  TITAN_FAKE_TRY(enter(context));
  TITAN_FAKE_TRY(find(context, stream, queue));
  if (!stream->capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  if (stream->captureThread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  std::unique_ptr<CUgraph_st> captured = std::move(stream->capture);
  if (stream->captureFailed)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = context->graphs.emplace_back(std::move(captured)).get();
  return CUDA_SUCCESS;
}

CUresult FakeDriver::graphDestroy(CUgraph graph) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enter(context));
  return release(context->graphs, graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FakeDriver::graphInstantiate(CUgraphExec* exec, CUgraph graph) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enterUncaptured(context));
  if (!holds(context->graphs, graph))
    return CUDA_ERROR_INVALID_VALUE;
  *exec = context->execs.emplace_back(new CUgraphExec_st{graph->nodes}).get();
  return CUDA_SUCCESS;
}

CUresult FakeDriver::graphExecDestroy(CUgraphExec exec) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enter(context));
  return release(context->execs, exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FakeDriver::graphLaunch(CUgraphExec exec, CUstream stream) {
  CUcontext context = nullptr;
  FakeQueue* queue = nullptr;
  TITAN_FAKE_TRY(enter(context));
  TITAN_FAKE_TRY(findUncaptured(context, stream, queue));
  if (!holds(context->execs, exec))
    return CUDA_ERROR_INVALID_VALUE;
  for (const std::function<void()>& node : exec->nodes)
    queue->add(node);
  return CUDA_SUCCESS;
}

CUresult FakeDriver::eventCreate(CUevent* event, unsigned flags) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enter(context));
  context->events.push_back(std::make_unique<CUevent_st>());
  *event = context->events.back().get();
  (*event)->context = context;
  (*event)->timed = !(flags & CU_EVENT_DISABLE_TIMING);
  return CUDA_SUCCESS;
}

CUresult FakeDriver::eventDestroy(CUevent event) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enter(context));
  if (!holds(context->events, event))
    return CUDA_ERROR_INVALID_HANDLE;
  // An operation may still want to note its time there.
  context->queues.finishAll();
  release(context->events, event);
  return context->error;
}

CUresult FakeDriver::eventRecord(CUevent event, CUstream stream) {
  CUcontext context = nullptr;
  FakeQueue* queue = nullptr;
  TITAN_FAKE_TRY(enter(context));
  TITAN_FAKE_TRY(findUncaptured(context, stream, queue));
  if (!holds(context->events, event))
    return CUDA_ERROR_INVALID_HANDLE;
  queue->add([event] { event->time = std::chrono::steady_clock::now(); });
  event->position = queue->last();
  return CUDA_SUCCESS;
}

CUresult FakeDriver::eventQuery(CUevent event) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enter(context));
  if (!holds(context->events, event))
    return CUDA_ERROR_INVALID_HANDLE;
  const Position& position = event->position;
  if (!position.queue || position.queue->isDone(position.number))
    return CUDA_SUCCESS;
  // Who asks again and again comes to an end.
  position.queue->advance();
  return context->error != CUDA_SUCCESS ? context->error : CUDA_ERROR_NOT_READY;
}

CUresult FakeDriver::eventSynchronize(CUevent event) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enter(context));
  if (!holds(context->events, event))
    return CUDA_ERROR_INVALID_HANDLE;
  if (event->position.queue)
    event->position.queue->finish(event->position.number);
  return context->error;
}

CUresult FakeDriver::eventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enter(context));
  for (CUevent event : {start, end}) {
    if (!holds(context->events, event) || !event->timed || !event->position.queue)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!event->position.queue->isDone(event->position.number))
      return CUDA_ERROR_NOT_READY;
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return CUDA_SUCCESS;
}

} // namespace titan::cuda::testing
