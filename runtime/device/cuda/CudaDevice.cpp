#include "runtime/device/cuda/CudaDevice.h"

#include "runtime/device/cuda/Results.h"
#include "runtime/host/AvailableMemory.h"
#include "runtime/program/HostStates.h"
#include "runtime/program/Recipe.h"
#include "runtime/program/Text.h"

#include <chrono>
#include <cstdlib>
#include <cstring>

namespace titan {

using namespace cuda;

namespace {

/// What a card cannot run, by name.
Status checkTable(const Program& program) {
  TITAN_TRY(verify(program));
  if (!program.collectives.empty()) {
    const Collective& first = program.collectives[0];
    return Error::badInput("the job's {} of {} needs several ranks, and a card runs jobs of one "
                           "rank: compile it without a mesh, or with --target=cpu",
                           toString(first.kind), first.label);
  }
  for (const Kernel& kernel : program.kernels)
    if (kernel.launches.empty())
      return Error::internal("'{}' has no launches: the program is for {}, no card", kernel.label,
                             program.target.kind);
  return {};
}

/// What to do where `missing` bytes are too many: about which batch.micro would fit.
std::string smallerBatch(const Program& program, int64_t available) {
  const int64_t arena = deviceBytes(program);
  int64_t fixed = program.stateBytes - hostBytes(program);
  for (const Constant& constant : program.constants)
    fixed += constant.bytes;
  if (available <= fixed)
    return fmt::format("its states alone are {}: take a card with more memory",
                       readableBytes(fixed));
  const Result<Recipe> recipe = parseRecipeJson(program.recipe);
  const int64_t micro = recipe.ok() ? recipe->batch.micro : 0;
  const double part = static_cast<double>(available - fixed) / static_cast<double>(arena - fixed);
  const auto fitting = static_cast<int64_t>(part * static_cast<double>(micro));
  if (fitting >= micro)
    return "something else takes it: look with nvidia-smi, and start the job again";
  if (fitting < 1)
    return "compile it with a smaller batch.micro";
  return fmt::format("compile it with a batch.micro of about {} (it is {})", fitting, micro);
}

/// 0: every run is a walk, so that a driver which cannot record or replay still trains.
constexpr const char* graphsVariable = "TITAN_CUDA_GRAPHS";

bool isSet(const char* variable, std::string_view value) {
  const char* found = std::getenv(variable);
  return found && value == found;
}

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace

CudaDevice::CudaDevice(const Program& program, std::unique_ptr<const Driver> driver, Card card,
                       int64_t bytes)
    : Device(bytes), program_(&program), driver_(std::move(driver)), card_(std::move(card)) {}

Result<std::unique_ptr<CudaDevice>> CudaDevice::create(const Program& program,
                                                       std::string_view payload, int64_t number,
                                                       const ProductRequest& products,
                                                       const AttentionRequest& attention) {
  TITAN_TRY(checkTable(program));
  auto driver = std::make_unique<const Driver>(TITAN_TRY(Driver::load()));
  Card card = TITAN_TRY(chooseCard(*driver, number));
  std::unique_ptr<CudaDevice> device(
      new CudaDevice(program, std::move(driver), std::move(card), wholeLines(program.arenaBytes)));
  TITAN_TRY(device->open(payload, products, attention));
  return device;
}

Status CudaDevice::open(std::string_view payload, const ProductRequest& products,
                        const AttentionRequest& attention) {
  const std::string what = "opening " + card_.text();
  TITAN_TRY(driver_->need(driver_->cuDevicePrimaryCtxRetain(&context_, card_.handle), what));
  held_ = OwnedContext(*driver_, card_.handle);
  TITAN_TRY(driver_->need(driver_->cuCtxSetCurrent(context_), what));
  image_ = TITAN_TRY(LoadedImage::load(*driver_, card_, *program_, payload));
  stream_ = TITAN_TRY(makeStream(*driver_, what));
  for (OwnedEvent& event : events_)
    event = TITAN_TRY(makeEvent(*driver_, CU_EVENT_DISABLE_TIMING, what));
  for (OwnedEvent* event : {&start_, &end_})
    *event = TITAN_TRY(makeEvent(*driver_, CU_EVENT_DEFAULT, what));
  inputs_ = TITAN_TRY(StagedInputs::open(*driver_, *program_, what));
  products_ = TITAN_TRY(LtProducts::open(*driver_, card_, *program_, products));
  attention_ = TITAN_TRY(CardAttention::open(*driver_, card_, *program_, attention));
  // Last: what the driver has taken for itself by now is no longer free.
  TITAN_TRY(reserveMemory());
  TITAN_TRY(clearScalars());
  functions_.reserve(program_->functions.size());
  for (size_t i = 0; i < program_->functions.size(); ++i)
    functions_.emplace_back(*program_, i, image_, memory_);
  recorded_.resize(functions_.size());
  if (products_->isOpen())
    TITAN_TRY(products_->choose(productPlaces(), stream_.get(), start_.get(), end_.get()));
  if (attention_->isOpen())
    TITAN_TRY(attention_->choose(attentionPlaces(), stream_.get()));
  return {};
}

std::vector<ProductPlace> CudaDevice::productPlaces() const {
  std::vector<ProductPlace> places(program_->libraryCalls.size());
  for (const PreparedFunction& function : functions_)
    for (size_t i = 0; i < function.commands().size(); ++i) {
      const PreparedCommand& command = function.commands()[i];
      if (!command.call || places[*command.call].generate)
        continue;
      const LibraryCall& call = program_->libraryCalls[*command.call];
      if (call.routine != LibraryRoutine::Gemm)
        continue;
      const std::vector<Operand>& operands = function.source().commands[i].operands;
      ProductPlace& place = places[*command.call];
      place.addresses = ProductAddresses::of(call, command.operands);
      place.aBytes = operands[0].bytes;
      place.bBytes = operands[1].bytes;
      place.cBytes = operands[2].bytes;
      place.biasBytes = call.gemm.bias ? operands[3].bytes : 0;
      place.workspaceBytes = call.workspace;
      place.generate = [this, &command] { return launch(command); };
    }
  return places;
}

std::vector<AttentionPlace> CudaDevice::attentionPlaces() const {
  std::vector<AttentionPlace> places(program_->libraryCalls.size());
  for (const PreparedFunction& function : functions_)
    for (size_t i = 0; i < function.commands().size(); ++i) {
      const PreparedCommand& command = function.commands()[i];
      if (!command.call || places[*command.call].generate ||
          program_->libraryCalls[*command.call].routine != LibraryRoutine::Attention)
        continue;
      AttentionPlace& place = places[*command.call];
      place.operands.assign(command.operands.begin(), command.operands.end());
      for (const Operand& operand : function.source().commands[i].operands)
        place.bytes.push_back(operand.bytes);
      place.generate = [this, &command] { return launch(command); };
    }
  return places;
}

Status CudaDevice::clearScalars() {
  for (const Function& function : program_->functions)
    for (const Binding& binding : function.bindings)
      if (binding.role == Binding::Role::Metric || binding.role == Binding::Role::Control)
        TITAN_TRY(fill(binding.offset, binding.bytes, 0));
  return {};
}

std::vector<CudaDevice::Graph> CudaDevice::graphs() const {
  std::vector<Graph> graphs;
  for (size_t i = 0; i < functions_.size(); ++i)
    if (recorded_[i].exec.get())
      graphs.push_back({functions_[i].source().name, functions_[i].nodes(), recorded_[i].seconds});
  return graphs;
}

Status CudaDevice::reserveMemory() {
  size_t free = 0, total = 0;
  TITAN_TRY(driver_->need(driver_->cuMemGetInfo_v2(&free, &total), "asking for free memory"));
  const auto available = static_cast<int64_t>(free);
  memory_ = CardMemory(*program_, bytes(), isSet(CardMemory::splitVariable, "1"));
  TITAN_TRY(reserveHostMemory());
  const int64_t needed = memory_.cardBytes() + inputs_.bytes();
  if (needed + outsideBytes <= available) {
    Answer answer = memory_.allocateCard(*driver_);
    if (answer.ok())
      answer = inputs_.allocate();
    if (answer.result != CUDA_ERROR_OUT_OF_MEMORY)
      return driver_->need(answer, fmt::format("allocating {}", readableBytes(needed)));
  }
  return Error::environment(
      "the job needs {} of device memory, and {} more for the driver; {} has {} free of {}: {}",
      readableBytes(needed), readableBytes(outsideBytes), card_.text(), readableBytes(available),
      readableBytes(static_cast<int64_t>(total)),
      smallerBatch(*program_, available - inputs_.bytes() - outsideBytes));
}

Status CudaDevice::reserveHostMemory() {
  const int64_t needed = memory_.hostBytes(), available = availableMemoryBytes();
  // The system would end the process for what it has not got.
  if (needed <= available) {
    const Answer answer = memory_.allocateHost(*driver_);
    if (answer.result != CUDA_ERROR_OUT_OF_MEMORY)
      return driver_->need(answer, "reserving pinned host memory for averages");
  }
  return Error::environment(
      "ema.device = \"host\": averages need {} of pinned host memory, and {} are available: free "
      "memory, raise its limit (ulimit -l), or compile it with ema.device = \"device\"",
      readableBytes(needed), readableBytes(available));
}

CudaDevice::~CudaDevice() {
  if (!context_)
    return;
  // What is still queued may use host memory that ends with the device. A card that failed answers
  // all of this with its error, and takes everything back when the process ends.
  (void)driver_->cuCtxSetCurrent(context_);
  inputs_.finish();
  (void)driver_->cuStreamSynchronize(stream_.get());
}

Status CudaDevice::enter() {
  if (error_)
    return *error_;
  // It may return the error of what was queued before it.
  return check(driver_->cuCtxSetCurrent(context_), "using");
}

Error CudaDevice::keep(Error error) {
  error_ = std::move(error);
  return *error_;
}

Status CudaDevice::check(Answer answer, const char* what) {
  if (answer.ok())
    return {};
  if (running_.empty() || !isSticky(answer.result))
    return keep(driver_->error(answer, fmt::format("{} {}", what, card_.text())));
  if (isFault(answer.result))
    return keep(Error::internal("a command of {} failed on {}: {}: run it again with --poison, "
                                "which names the command",
                                running_, card_.text(), driver_->text(answer)));
  return keep(Error::runFailed("{} failed while it ran {}: {}", card_.text(), running_,
                               driver_->text(answer)));
}

Error CudaDevice::commandFailed(Answer answer, const Function& function, uint32_t index) const {
  return driver_->error(answer, fmt::format("'{}' (command {} of {}) on {}",
                                            labelOf(*program_, function.commands[index]), index,
                                            function.name, card_.text()));
}

Answer CudaDevice::queue(const PreparedCommand& command) const {
  const auto address = [&](size_t i) { return static_cast<CUdeviceptr>(command.operands[i]); };
  const auto bytes = static_cast<size_t>(command.units);
  if (command.kind == CommandKind::Copy)
    return driver_->cuMemcpyDtoDAsync_v2(address(0), address(1), bytes, stream_.get());
  if (command.kind == CommandKind::Zero)
    return driver_->cuMemsetD8Async(address(0), 0, bytes, stream_.get());
  if (command.call && products_->computes(*command.call))
    return products_->queue(*command.call, command.operands, stream_.get());
  if (command.call && attention_->computes(*command.call))
    return attention_->queue(*command.call, command.operands, stream_.get());
  return launch(command);
}

Answer CudaDevice::launch(const PreparedCommand& command) const {
  for (const PreparedLaunch& launch : command.launches) {
    const Answer answer =
        driver_->cuLaunchKernel(launch.function, launch.blocks, 1, 1, launch.threads, 1, 1,
                                launch.sharedBytes, stream_.get(), command.parameters, nullptr);
    if (!answer.ok() || &launch == &command.launches.back())
      return answer;
  }
  return {CUDA_SUCCESS, driver_->cuLaunchKernel.name()};
}

Answer CudaDevice::runAlone(const PreparedCommand& command, double* seconds) const {
  Answer answer = {CUDA_SUCCESS, ""};
  const auto then = [&](auto&& call) {
    if (answer.ok())
      answer = call();
  };
  if (seconds)
    then([&] { return driver_->cuEventRecord(start_.get(), stream_.get()); });
  then([&] { return queue(command); });
  if (seconds)
    then([&] { return driver_->cuEventRecord(end_.get(), stream_.get()); });
  then([&] { return driver_->cuStreamSynchronize(stream_.get()); });
  float milliseconds = 0;
  if (seconds)
    then([&] { return driver_->cuEventElapsedTime(&milliseconds, start_.get(), end_.get()); });
  if (seconds)
    *seconds = 1e-3 * static_cast<double>(milliseconds);
  return answer;
}

/// Passes the device's gate on its way.
template <bool observed> struct CudaDevice::Walker {
  CudaDevice& device;
  const PreparedFunction& function;
  CommandObserver* observer;
  std::span<const PreparedCommand> commands = function.commands();
  const Function& source = function.source();
  Answer answer = {CUDA_SUCCESS, ""}; ///< that ended the walk
  uint32_t last = 0;                  ///< the command that did

  void enter(uint32_t index) {
    if (index == function.firstUpdate())
      device.passGate();
    if constexpr (observed)
      observer->before(source, index);
  }
  void leave(uint32_t index) {
    if constexpr (observed)
      observer->after(source, index);
  }
  bool command(uint32_t index, const RepeatCounters& counters) {
    const PreparedCommand& command = commands[index];
    for (const Varying& varying : command.varying)
      varying.update(counters);
    enter(index);
    last = index;
    if (device.error_) // of the gate
      return false;
    if constexpr (!observed) {
      answer = device.queue(command);
    } else {
      double seconds = 0;
      const bool timed = observer->wantsSeconds();
      answer = device.runAlone(command, timed ? &seconds : nullptr);
      if (answer.ok() && timed)
        observer->took(source, index, seconds);
      if (answer.ok())
        observer->after(source, index);
    }
    return answer.ok();
  }
};

Status CudaDevice::run(uint32_t index, CommandObserver* observer) {
  TITAN_TRY(enter());
  const PreparedFunction& function = functions_[index];
  Recorded& recorded = recorded_[index];
  // A graph has no place for the gate.
  const bool passes = hasGate() && function.firstUpdate() < function.commands().size();
  if (observer || passes || !recorded.walked) {
    recorded.walked = true;
    return observer ? walkObserved(function, *observer) : walk(function);
  }
  if (function.nodes() == 0 || function.nodes() > mostGraphNodes || isSet(graphsVariable, "0"))
    return walk(function);
  if (!recorded.exec.get()) {
    const auto start = std::chrono::steady_clock::now();
    recorded.exec = TITAN_TRY(capture(function));
    recorded.seconds = secondsSince(start);
  }
  running_ = function.source().name;
  return check(driver_->cuGraphLaunch(recorded.exec.get(), stream_.get()), "launching on");
}

Status CudaDevice::walk(const PreparedFunction& function) {
  running_ = function.source().name;
  Walker<false> walker{*this, function, nullptr};
  if (walkCommands(function.commands(), walker))
    return {};
  if (error_)
    return *error_;
  // A launch may return the error of what was queued before it.
  return isSticky(walker.answer.result)
             ? check(walker.answer, "launching on")
             : Status(keep(commandFailed(walker.answer, function.source(), walker.last)));
}

Status CudaDevice::walkObserved(const PreparedFunction& function, CommandObserver& observer) {
  // What was queued before is done, so that an error is the command's after which it appears.
  TITAN_TRY(check(driver_->cuStreamSynchronize(stream_.get()), "waiting for"));
  running_ = function.source().name;
  observer.beforeFunction(function.source());
  TITAN_TRY(enter());
  Walker<true> walker{*this, function, &observer};
  if (!walkCommands(function.commands(), walker))
    return error_ ? *error_ : keep(commandFailed(walker.answer, function.source(), walker.last));
  observer.afterFunction(function.source());
  return {};
}

Result<OwnedGraphExec> CudaDevice::capture(const PreparedFunction& function) {
  TITAN_TRY(
      check(driver_->cuStreamBeginCapture_v2(stream_.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
            "recording for"));
  Status walked = walk(function);
  CUgraph graph = nullptr;
  const Answer ended = driver_->cuStreamEndCapture(stream_.get(), &graph);
  const OwnedGraph owned = graph ? OwnedGraph(*driver_, graph) : OwnedGraph();
  TITAN_TRY(std::move(walked));
  TITAN_TRY(check(ended, "recording for"));
  CUgraphExec exec = nullptr;
  TITAN_TRY(check(driver_->cuGraphInstantiateWithFlags(&exec, graph, 0), "preparing a graph for"));
  return OwnedGraphExec(*driver_, exec);
}

Status CudaDevice::upload(int64_t offset, std::span<const char> from) {
  TITAN_TRY(enter());
  if (from.empty())
    return {};
  if (const auto* input = inputs_.find(offset, static_cast<int64_t>(from.size())))
    return inputs_.upload(*input, offset, from, memory_, stream_.get(),
                          [this](Answer answer) { return check(answer, "copying to"); });
  return memory_.forEachRange(
      offset, static_cast<int64_t>(from.size()), [&](CUdeviceptr to, int64_t first, int64_t count) {
        return check(driver_->cuMemcpyHtoDAsync_v2(to, from.data() + first,
                                                   static_cast<size_t>(count), stream_.get()),
                     "copying to");
      });
}

Status CudaDevice::download(int64_t offset, std::span<char> into) {
  TITAN_TRY(enter());
  if (into.empty())
    return {};
  return memory_.forEachRange(
      offset, static_cast<int64_t>(into.size()),
      [&](CUdeviceptr from, int64_t first, int64_t count) {
        return check(driver_->cuMemcpyDtoHAsync_v2(into.data() + first, from,
                                                   static_cast<size_t>(count), stream_.get()),
                     "copying from");
      });
}

Status CudaDevice::fill(int64_t offset, int64_t bytes, char value) {
  TITAN_TRY(enter());
  if (bytes == 0)
    return {};
  return memory_.forEachRange(offset, bytes, [&](CUdeviceptr to, int64_t, int64_t count) {
    return check(driver_->cuMemsetD8Async(to, static_cast<unsigned char>(value),
                                          static_cast<size_t>(count), stream_.get()),
                 "filling memory of");
  });
}

Result<OwnedMemory> CudaDevice::scratch(int64_t bytes) {
  CUdeviceptr address = 0;
  TITAN_TRY(
      driver_->need(driver_->cuMemAlloc_v2(&address, static_cast<size_t>(bytes)),
                    fmt::format("reserving {} to measure {}", readableBytes(bytes), card_.text())));
  return OwnedMemory(*driver_, address);
}

Result<double> CudaDevice::measureCopy() {
  constexpr int64_t bytes = int64_t{128} << 20; // stays in no cache
  constexpr int times = 5;
  TITAN_TRY(enter());
  const OwnedMemory from = TITAN_TRY(scratch(bytes)), to = TITAN_TRY(scratch(bytes));
  const auto made = [&](Answer answer) { return check(answer, "measuring"); };
  const auto copy = [&] {
    return made(driver_->cuMemcpyDtoDAsync_v2(to.get(), from.get(), bytes, stream_.get()));
  };
  TITAN_TRY(made(driver_->cuMemsetD8Async(from.get(), 0, bytes, stream_.get())));
  TITAN_TRY(copy());
  TITAN_TRY(made(driver_->cuEventRecord(start_.get(), stream_.get())));
  for (int i = 0; i < times; ++i)
    TITAN_TRY(copy());
  TITAN_TRY(made(driver_->cuEventRecord(end_.get(), stream_.get())));
  TITAN_TRY(made(driver_->cuStreamSynchronize(stream_.get())));
  float milliseconds = 0;
  TITAN_TRY(made(driver_->cuEventElapsedTime(&milliseconds, start_.get(), end_.get())));
  return 2e3 * times * static_cast<double>(bytes) / static_cast<double>(milliseconds);
}

Device::Event CudaDevice::record() {
  if (!enter().ok())
    return {lastEvent_};
  ++lastEvent_;
  const OwnedEvent& event = events_[lastEvent_ % eventsInTurn];
  (void)check(driver_->cuEventRecord(event.get(), stream_.get()), "recording an event of");
  return {lastEvent_};
}

Status CudaDevice::wait(Event event) {
  TITAN_TRY(enter());
  if (event.number <= doneEvent_)
    return {};
  const OwnedEvent& recorded = events_[event.number % eventsInTurn];
  TITAN_TRY(check(driver_->cuEventSynchronize(recorded.get()), "waiting for"));
  doneEvent_ = event.number;
  return {};
}

Result<std::unique_ptr<StateReader>> CudaDevice::reader() {
  TITAN_TRY(enter());
  const auto hold = [this](CUevent event) -> Status {
    TITAN_TRY(enter());
    return check(driver_->cuStreamWaitEvent(stream_.get(), event, 0), "holding");
  };
  return std::unique_ptr<StateReader>(
      TITAN_TRY(CardReader::create(*driver_, context_, card_, memory_, hold)));
}

Result<std::span<char>> CudaDevice::hostBuffer(int64_t bytes) {
  TITAN_TRY(enter());
  const size_t size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  void* memory = nullptr;
  const Answer answer = driver_->cuMemHostAlloc(&memory, size, 0);
  if (answer.result == CUDA_ERROR_OUT_OF_MEMORY)
    return Error::environment("cannot reserve {} of pinned host memory: free memory, or raise its "
                              "limit (ulimit -l)",
                              readableBytes(bytes));
  TITAN_TRY(driver_->need(answer, "reserving pinned host memory"));
  buffers_.emplace_back(*driver_, memory);
  std::memset(memory, 0, size);
  return std::span<char>(static_cast<char*>(memory), static_cast<size_t>(bytes));
}

} // namespace titan
