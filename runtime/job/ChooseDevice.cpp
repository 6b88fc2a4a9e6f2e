#include "runtime/job/ChooseDevice.h"

#include "runtime/data/Loader.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/CpuFeatures.h"
#include "runtime/device/cpu/CpuLimits.h"
#include "runtime/device/cpu/GemmCeiling.h"

#include <algorithm>

namespace titan {
namespace {

/// The library for products, or nothing: they are generated.
Result<std::optional<OneDnn>> chooseLibrary(const DeviceRequest& request) {
  const bool asked = request.gemm != "auto";
  const std::string& wanted = asked ? request.gemm : request.savedGemm;
  if (request.program.libraryCalls.empty() || wanted == "generated")
    return std::optional<OneDnn>();
  Result<OneDnn> library = OneDnn::load();
  if (library.ok())
    return std::optional(library.take());
  if (asked)
    return library.takeError();
  return std::optional<OneDnn>();
}

} // namespace

Result<ChosenDevice> chooseDevice(const DeviceRequest& request) {
  const std::optional<OneDnn> library = TITAN_TRY(chooseLibrary(request));
  ThreadPool* pool = &request.pool;
  ChosenDevice chosen;
  chosen.device =
      TITAN_TRY(CpuDevice::create(request.program, request.kernels, *pool, library, request.place));
  if (const Communicator* communicator = request.place.communicator)
    chosen.traffic = [=] {
      const std::span<const Traffic> traffic = communicator->traffic();
      return std::vector(traffic.begin(), traffic.end());
    };
  if (library) {
    chosen.gemm = "onednn";
    chosen.gemmVersion = library->version();
  }
  chosen.outsideBytes = outsideBytes(request.program, pool->threads(), library.has_value()).gemm;
  chosen.measureProducts = [=](DType operands) {
    return measureGemmCeiling(library, *pool, operands);
  };
  chosen.measureLimits = [=](DType operands) { return measureCpuLimits(library, *pool, operands); };
  return chosen;
}

Result<size_t> chooseProgram(std::span<const Program> programs) {
  std::vector<std::string> kinds;
  for (size_t i = 0; i < programs.size(); ++i) {
    if (programs[i].target.kind == "cpu")
      return i;
    kinds.push_back(programs[i].target.kind);
  }
  return Error::environment("the job is compiled for {}, and runs on a CPU only so far: compile it "
                            "with --target=cpu",
                            kinds.empty() ? "nothing" : fmt::format("{}", fmt::join(kinds, ", ")));
}

Status checkMachine(const Program& program) {
  return enableCpuFeatures(program.target.features, program.target.cpu);
}

std::string machineName() { return cpuModelName(); }

ProductLibrary findProductLibrary() {
  const Result<OneDnn> library = OneDnn::load();
  if (!library.ok())
    return {false, {}, library.error().message()};
  return {true, library->version(), {}};
}

DType productType(const Program& program) {
  const bool readsBf16 = std::ranges::any_of(
      program.libraryCalls, [](const LibraryCall& call) { return call.gemm.a == DType::BF16; });
  return readsBf16 ? DType::BF16 : DType::F32;
}

OutsideBytes outsideBytes(const Program& program, int threads, bool library) {
  OutsideBytes outside;
  if (library && !program.libraryCalls.empty())
    outside.gemm = threads * OneDnn::outsideBytesPerThread;
  int64_t batch = 0;
  if (const Function* step = program.findFunction("step"))
    for (const Binding& binding : step->bindings)
      if (binding.role == Binding::Role::Input)
        batch += binding.bytes;
  outside.batches = PrefetchLoader::depthFor(batch) * batch;
  return outside;
}

} // namespace titan
