// Modules and launches of the fake driver.
#include "runtime/device/cuda/Results.h"
#include "runtime/device/cuda/testing/FakeDriver.h"

#include <charconv>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace titan::cuda::testing {
namespace {

constexpr std::string_view elfMagic = "\177ELF";

/// The word behind `directive` in a PTX text.
std::string_view wordBehind(std::string_view text, std::string_view directive) {
  size_t at = text.find(directive);
  if (at == text.npos)
    return {};
  at = text.find_first_not_of(" \t", at + directive.size());
  return at == text.npos ? std::string_view()
                         : text.substr(at, text.find_first_of(" \t\r\n,", at) - at);
}

/// The newest PTX that a driver of that CUDA version reads, 10 major + minor. The vendor's table:
/// PTX ISA, "Release Notes".
int newestPtx(int driverVersion) {
  struct Row {
    int driver, ptx;
  };
  constexpr Row rows[] = {{13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12050, 85},
                          {12040, 84}, {12030, 83}, {12020, 82}, {12010, 81}};
  for (const Row& row : rows)
    if (driverVersion >= row.driver)
      return row.ptx;
  return 80;
}

/// "8.0" as 80; 0 for what is no version.
int ptxVersion(std::string_view text) {
  int major = 0, minor = 0;
  const char* end = text.data() + text.size();
  const auto [point, error] = std::from_chars(text.data(), end, major);
  if (error != std::errc() || point == end ||
      std::from_chars(point + 1, end, minor).ec != std::errc())
    return 0;
  return 10 * major + minor;
}

/// What a card would answer for what the interpreter says. Where a card would notice nothing (bytes
/// beyond an operand, or never written), the launch fails all the same.
CUresult resultOf(const std::string& message) {
  if (message.find("is not a multiple of") != message.npos)
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  if (message.find("in no allocation") != message.npos)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  return CUDA_ERROR_LAUNCH_FAILED;
}

} // namespace

CUresult FakeDriver::moduleLoad(CUmodule* module, const char* image, std::string& log) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enterUncaptured(context));
  std::string text;
  if (std::string_view(image, elfMagic.size()) == elfMagic) {
    std::ifstream file(settings_.ptx);
    if (settings_.ptx.empty() || !file)
      return CUDA_ERROR_NO_BINARY_FOR_GPU;
    text = (std::ostringstream() << file.rdbuf()).str();
  } else {
    text = image;
    const std::string_view target = wordBehind(text, ".target");
    const int version = ptxVersion(wordBehind(text, ".version"));
    const std::optional<Capability> capability = Capability::of(target);
    if (version == 0 || !capability) {
      log = "no .version and .target";
      return CUDA_ERROR_INVALID_PTX;
    }
    if (version > newestPtx(settings_.driverVersion))
      return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    if (*capability > settings_.capability)
      return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  Result<std::shared_ptr<const ptx::Module>> code = ptx::parse(text);
  if (!code.ok()) {
    log = code.error().message();
    std::fprintf(stderr, "fake CUDA driver: %s\n", log.c_str());
    return CUDA_ERROR_INVALID_PTX;
  }
  context->modules.push_back(std::make_unique<CUmod_st>(CUmod_st{context, code.take(), {}}));
  *module = context->modules.back().get();
  return CUDA_SUCCESS;
}

CUresult FakeDriver::moduleUnload(CUmodule module) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enterUncaptured(context));
  if (!holds(context->modules, module))
    return CUDA_ERROR_INVALID_HANDLE;
  context->queues.finishAll();
  release(context->modules, module);
  return context->error;
}

CUresult FakeDriver::moduleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enter(context));
  if (!holds(context->modules, module))
    return CUDA_ERROR_INVALID_HANDLE;
  const std::optional<ptx::EntryInfo> info = ptx::info(*module->code, name);
  if (!info)
    return CUDA_ERROR_NOT_FOUND;
  std::unique_ptr<CUfunc_st>& held = module->functions[name];
  if (!held)
    held = std::make_unique<CUfunc_st>(CUfunc_st{module, name, *info});
  *function = held.get();
  return CUDA_SUCCESS;
}

CUresult FakeDriver::funcSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                      int value) {
  CUcontext context = nullptr;
  TITAN_FAKE_TRY(enter(context));
  const bool fits = value >= 0 && value + function->info.sharedBytes <= settings_.sharedBytes;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || !fits)
    return CUDA_ERROR_INVALID_VALUE;
  function->mostDynamicShared = static_cast<uint32_t>(value);
  return CUDA_SUCCESS;
}

CUresult FakeDriver::launchKernel(CUfunction function, unsigned blocks, unsigned threads,
                                  unsigned sharedBytes, CUstream stream, void** parameters) {
  CUcontext context = nullptr;
  FakeQueue* queue = nullptr;
  TITAN_FAKE_TRY(enter(context));
  TITAN_FAKE_TRY(find(context, stream, queue));
  const ptx::EntryInfo& info = function->info;
  // Unasked, dynamic shared memory and the entry's own are so much together.
  constexpr uint32_t sharedUnasked = 48 << 10;
  const uint32_t most = std::max(function->mostDynamicShared,
                                 sharedUnasked - std::min(info.sharedBytes, sharedUnasked));
  if (blocks == 0 || threads == 0 || threads > 1024 || sharedBytes > most ||
      (info.maxThreads && threads > info.maxThreads) ||
      (info.threadsRequired && threads != info.maxThreads))
    return CUDA_ERROR_INVALID_VALUE;
  if (!function->loaded) // lazily, which a capture does not allow
    TITAN_FAKE_TRY(findUncaptured(context, stream, queue));
  function->loaded = true;
  ptx::Launch launch;
  launch.entry = function->name;
  launch.grid[0] = blocks;
  launch.block[0] = threads;
  launch.sharedBytes = sharedBytes;
  // Parameters are read now, whenever the launch is.
  for (int64_t i = 0; i < info.parameters; ++i)
    launch.arguments.push_back(*static_cast<const uint64_t*>(parameters[i]));
  launch.order = settings_.order;
  launch.seed = settings_.seed;
  return add(context, stream,
             [this, context, launch = std::move(launch), code = function->module->code] {
               execute(context, launch, *code);
             });
}

void FakeDriver::execute(CUcontext context, const ptx::Launch& launch, const ptx::Module& code) {
  if (context->error != CUDA_SUCCESS)
    return;
  const Result<ptx::Counters> counters = ptx::run(code, launch, context->memory);
  if (!counters.ok())
    return fail(context, launch.entry, counters.error());
  record(fmt::format("# {} ran: {} instructions of lanes, {} bytes read, {} bytes written",
                     launch.entry, counters->laneInstructions(), counters->globalLoads.bytes,
                     counters->globalStores.bytes));
}

void FakeDriver::fail(CUcontext context, const std::string& name, const Error& error) {
  context->error = resultOf(error.message());
  std::fprintf(stderr, "fake CUDA driver: %s\n", error.message().c_str());
  record(fmt::format("# {} failed: {}", name, error.message()));
}

CUresult FakeDriver::enqueue(CUstream stream, const FakeWork& work) {
  CUcontext context = nullptr;
  FakeQueue* queue = nullptr;
  TITAN_FAKE_TRY(enter(context));
  TITAN_FAKE_TRY(find(context, stream, queue));
  if (work.loads)
    TITAN_FAKE_TRY(findUncaptured(context, stream, queue));
  return add(context, stream, [this, context, work] {
    if (context->error != CUDA_SUCCESS)
      return;
    if (const Status status = work.run(context->memory); !status.ok())
      return fail(context, work.name, status.error());
    record(fmt::format("# {} ran", work.name));
  });
}

} // namespace titan::cuda::testing
