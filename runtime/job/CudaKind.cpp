#include "runtime/job/DeviceKind.h"

#include "runtime/device/StateAccess.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/program/CardProducts.h"
#include "runtime/program/HostStates.h"
#include "runtime/program/Recipe.h"
#include "runtime/program/Text.h"

#include <algorithm>
#include <limits>

namespace titan {
namespace {

using Json = nlohmann::ordered_json;

Result<cuda::Card> findCard(const Program& program, int64_t number) {
  const cuda::Driver driver = TITAN_TRY(cuda::Driver::load());
  cuda::Card card = TITAN_TRY(cuda::chooseCard(driver, number));
  TITAN_TRY(cuda::imagesFor(card, program.images));
  return card;
}

Status check(const Program& program, int64_t number) {
  TITAN_TRY(findCard(program, number));
  return {};
}

Result<cuda::ProductRequest> productRequest(const DeviceRequest& request) {
  using Mode = cuda::ProductRequest::Mode;
  cuda::ProductRequest products;
  const std::string& saved = request.saved.choices.library;
  if (request.tune)
    products.mode = Mode::Tune;
  else if (request.gemm == cuda::LtProducts::libraryName)
    products.mode = Mode::Library;
  else if (request.gemm == "auto" && saved != "generated")
    products.mode = Mode::IfThere;
  if (!saved.empty())
    products.saved = &request.saved.choices;
  products.savedStep = request.saved.step;
  if (request.tuned)
    products.tuned = &*request.tuned;
  if (TITAN_TRY(parseRecipeJson(request.program.recipe)).precision.matmul == "tf32")
    products.f32 = cuda::F32Products::MayUseTf32;
  return products;
}

cuda::AttentionRequest attentionRequest(const DeviceRequest& request) {
  using Mode = cuda::AttentionRequest::Mode;
  cuda::AttentionRequest attention;
  const LibraryChoices& saved = request.saved.attention;
  if (request.attention == cuda::CardAttention::libraryName)
    attention.mode = Mode::Library;
  else if (request.attention == "auto" && saved.library != LibraryChoices::generated)
    attention.mode = Mode::IfThere;
  if (!saved.library.empty())
    attention.saved = &saved;
  attention.savedStep = request.saved.step;
  if (request.attentionLibrary)
    attention.load = request.attentionLibrary;
  return attention;
}

/// Its kind, whatever its number.
std::string cardOf(const CudaDevice& device) {
  return fmt::format("{}, {}", device.card().name, device.card().capability.arch());
}

/// A driver that assembles PTX is a part of the code.
std::string imageOf(const CudaDevice& device) {
  const std::string image = cuda::textOf(device.image());
  return device.image().kind == Image::Kind::Ptx
             ? fmt::format("{} by the driver for CUDA {}", image,
                           cuda::versionText(device.driverVersion()))
             : image;
}

Result<ChosenDevice> open(const DeviceRequest& request) {
  if (request.gemm == "onednn")
    return Error::environment("--gemm=onednn: oneDNN computes on CPUs, and this job runs on cuda");
  const cuda::ProductRequest products = TITAN_TRY(productRequest(request));
  const cuda::AttentionRequest attention = attentionRequest(request);
  std::unique_ptr<CudaDevice> device = TITAN_TRY(
      CudaDevice::create(request.program, request.payload, request.number, products, attention));
  ChosenDevice chosen;
  if (const cuda::LtProducts& used = device->products(); used.isOpen()) {
    chosen.products = used.choices();
    chosen.gemm = used.choices().library;
    chosen.gemmVersion = used.choices().version;
    for (const cuda::TunedProduct& row : used.tuned())
      chosen.tuned.push_back({row.label, row.admitted, row.firstSeconds, row.bestSeconds});
  }
  if (cuda::hasAttentionCalls(request.program)) {
    chosen.attention = device->attention().choices();
    if (!device->attention().isOpen())
      chosen.attention.library = LibraryChoices::generated;
  }
  chosen.notes = device->products().notes();
  chosen.notes.insert(chosen.notes.end(), device->attention().notes().begin(),
                      device->attention().notes().end());
  if (products.f32 == cuda::F32Products::MayUseTf32 && !device->products().isOpen())
    chosen.notes.emplace_back("precision.matmul = \"tf32\" has no effect: generated products read "
                              "f32 whole");
  chosen.name = fmt::format("{}, {}", device->card().text(), cuda::textOf(device->image()));
  chosen.measureLimits = [card = device.get()](DType) -> Result<MachineLimits> {
    const double copied = TITAN_TRY(card->measureCopy());
    return MachineLimits{.copies = {{"memory", std::numeric_limits<int64_t>::max(), copied}}};
  };
  chosen.identity = {{"cuda.card", cardOf(*device)}, {"cuda.image", imageOf(*device)}};
  chosen.graphs = [card = device.get()] {
    std::vector<GraphFigures> graphs;
    for (const CudaDevice::Graph& graph : card->graphs())
      graphs.push_back({graph.function, graph.nodes, graph.seconds});
    return graphs;
  };
  chosen.memoryBytes = deviceBytes(request.program) + cuda::StagedInputs::bytesFor(request.program);
  chosen.device = std::move(device);
  return chosen;
}

DeviceMemory memory(const Program& program) {
  const OutsideBytes host = outsideBytes(program, /*threads=*/1, /*library=*/false);
  return {.arena = deviceBytes(program),
          .staging = cuda::StagedInputs::bytesFor(program),
          .driver = CudaDevice::outsideBytes,
          .pinned = StateAccess::ringBytesOf(program) + host.batches + hostBytes(program)};
}

/// [{"kind": "cubin", "arch": "sm_90", "bytes": 12345}]
Json imagesJson(const Program& program) {
  Json list = Json::array();
  for (const Image& image : program.images)
    list.push_back({{"kind", nameOf(image.kind)}, {"arch", image.arch}, {"bytes", image.bytes}});
  return list;
}

/// The library that products are offered to, if any.
Json libraryJson() {
  const Result<cuda::LtLibrary> library = cuda::LtLibrary::load();
  if (!library.ok())
    return {{"found", false}, {"reason", library.error().message()}};
  return {{"found", true}, {"version", library->version()}};
}

/// The library that attention is offered to, if any.
Json attentionLibraryJson() {
  const Result<std::string> version = cuda::findCudnn();
  if (!version.ok())
    return {{"found", false}, {"reason", version.error().message()}};
  return {{"found", true}, {"version", *version}};
}

/// Of the first card that the driver shows, or why there is none that runs the job.
Json describe(const Program& program, const DescribeRequest& request) {
  const Result<cuda::Card> card = findCard(program, 0);
  Json machine = {{"cpu", machineName()}, {"runs_this_job", card.ok()}};
  if (card.ok())
    machine["card"] = card->text();
  else
    machine["reason"] = card.error().message();
  const bool offered = std::ranges::any_of(
      program.libraryCalls, [](const LibraryCall& call) { return suitsCardLibrary(call); });
  const Json library = libraryJson();
  const bool computes = offered && request.gemm != "generated" && library["found"].get<bool>();
  const Json ofAttention = attentionLibraryJson();
  const bool attends = cuda::hasAttentionCalls(program) &&
                       request.attention != LibraryChoices::generated &&
                       ofAttention["found"].get<bool>();
  return {
      {"target", {{"device", program.target.kind}, {"images", imagesJson(program)}}},
      {"machine", machine},
      {"libraries",
       {{cuda::LtProducts::libraryName, library},
        {cuda::CardAttention::libraryName, ofAttention},
        {"gemm", computes ? cuda::LtProducts::libraryName : LibraryChoices::generated},
        {"attention", attends ? cuda::CardAttention::libraryName : LibraryChoices::generated}}}};
}

std::string describeText(const Json& info) {
  std::vector<std::string> images;
  for (const Json& image : info["target"]["images"])
    images.push_back(
        fmt::format("{} {}", image["kind"].get<std::string>(), image["arch"].get<std::string>()));
  const Json& machine = info["machine"];
  const Json& libraries = info["libraries"];
  const auto versionOf = [&](const char* name) {
    const Json& library = libraries[name];
    return library.value("version", library.value("reason", ""));
  };
  return fmt::format("target       {}: {}\ncard         {}\ncuBLASLt     {}\ngemm         {}\n"
                     "cuDNN        {}\nattention    {}\n",
                     info["target"]["device"].get<std::string>(), fmt::join(images, ", "),
                     machine.value("card", machine.value("reason", "")),
                     versionOf(cuda::LtProducts::libraryName), libraries["gemm"].get<std::string>(),
                     versionOf(cuda::CardAttention::libraryName),
                     libraries["attention"].get<std::string>());
}

} // namespace

const DeviceKind cudaKind = {"cuda", check, open, describe, describeText, memory};

} // namespace titan
