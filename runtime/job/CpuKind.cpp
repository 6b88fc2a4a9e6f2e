#include "runtime/job/DeviceKind.h"

#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/CpuFeatures.h"
#include "runtime/device/cpu/CpuLimits.h"
#include "runtime/device/cpu/GemmCeiling.h"

#include <nlohmann/json.hpp>

namespace titan {
namespace {

using Json = nlohmann::ordered_json;

/// The library for products, or nothing: they are generated.
Result<std::optional<OneDnn>> chooseLibrary(const DeviceRequest& request) {
  const bool asked = request.gemm != "auto";
  const std::string& wanted = asked ? request.gemm : request.saved.choices.library;
  // A card's table stands for the card: its kernels are compared, not a library.
  const bool reference = request.program.target.kind != cpuKind.name;
  if (request.program.libraryCalls.empty() || wanted == "generated" || reference)
    return std::optional<OneDnn>();
  Result<OneDnn> library = OneDnn::load();
  if (library.ok())
    return std::optional(library.take());
  if (asked)
    return library.takeError();
  return std::optional<OneDnn>();
}

Status check(const Program& program, int64_t) {
  return enableCpuFeatures(program.target.features, program.target.cpu);
}

Result<ChosenDevice> open(const DeviceRequest& request) {
  if (request.gemm == "cublaslt")
    return Error::environment("--gemm=cublaslt: cuBLASLt computes on cards, and this job runs on "
                              "the CPU");
  if (request.attention == "cudnn")
    return Error::environment("--attention=cudnn: cuDNN computes on cards, and this job runs on "
                              "the CPU");
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
  chosen.name =
      fmt::format("{} threads{}", pool->threads(), request.place.communicator ? " each" : "");
  if (request.program.target.kind != cpuKind.name)
    chosen.gemm = "reference";
  if (library) {
    chosen.gemm = "onednn";
    chosen.gemmVersion = library->version();
  }
  chosen.memoryBytes = request.program.arenaBytes +
                       outsideBytes(request.program, pool->threads(), library.has_value()).gemm;
  chosen.measureProducts = [=](DType operands) {
    return measureGemmCeiling(library, *pool, operands);
  };
  chosen.measureLimits = [=](DType operands) { return measureCpuLimits(library, *pool, operands); };
  return chosen;
}

Json describe(const Program& program, const DescribeRequest& request) {
  const ProductLibrary oneDnn = findProductLibrary();
  Json library = {{"found", oneDnn.found}};
  if (oneDnn.found)
    library["version"] = oneDnn.version;
  else
    library["reason"] = oneDnn.reason;
  const bool generated =
      request.gemm == "generated" || program.libraryCalls.empty() || !oneDnn.found;
  return {{"target",
           {{"device", program.target.kind},
            {"cpu", program.target.cpu},
            {"features", program.target.features}}},
          {"machine",
           {{"cpu", machineName()},
            {"threads", request.threads},
            {"runs_this_job", check(program, 0).ok()}}},
          {"libraries", {{"onednn", library}, {"gemm", generated ? "generated" : "onednn"}}}};
}

std::string describeText(const Json& info) {
  auto text = [](const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  std::string features;
  for (const Json& feature : info["target"]["features"])
    features += " " + text(feature);
  const Json& library = info["libraries"]["onednn"];
  return fmt::format("target       {} {}, needs{}\nmachine      {}, {} threads\n"
                     "oneDNN       {}\ngemm         {}\n",
                     text(info["target"]["device"]), text(info["target"]["cpu"]), features,
                     text(info["machine"]["cpu"]), text(info["machine"]["threads"]),
                     text(library.value("version", library.value("reason", Json()))),
                     text(info["libraries"]["gemm"]));
}

} // namespace

const DeviceKind cpuKind = {"cpu", check, open, describe, describeText, nullptr};

std::string machineName() { return cpuModelName(); }

ProductLibrary findProductLibrary() {
  const Result<OneDnn> library = OneDnn::load();
  if (!library.ok())
    return {false, {}, library.error().message()};
  return {true, library->version(), {}};
}

} // namespace titan
