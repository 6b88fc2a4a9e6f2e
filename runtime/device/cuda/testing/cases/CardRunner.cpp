#include "runtime/device/cuda/testing/cases/CardRunner.h"

#include <array>

namespace titan::cases {
namespace {

using namespace cuda;

constexpr int64_t guard = 256; ///< bytes; keeps the alignment of what lies between
constexpr char guardValue = '\xa5';

/// Can the card run the module's cubin?
bool hasCubin(const CaseModule& module, const Card& card) {
  const std::optional<Capability> arch = Capability::of(module.arch);
  return !module.cubin.empty() && arch && arch->major == card.capability.major &&
         arch->minor <= card.capability.minor;
}

} // namespace

Result<std::unique_ptr<CardRunner>> CardRunner::open() {
  std::unique_ptr<CardRunner> runner(new CardRunner());
  runner->driver_ = std::make_unique<const Driver>(TITAN_TRY(Driver::load()));
  const Driver& driver = *runner->driver_;
  runner->card_ = TITAN_TRY(chooseCard(driver, 0));
  CUcontext context = nullptr;
  TITAN_TRY(driver.need(driver.cuDevicePrimaryCtxRetain(&context, runner->card_.handle),
                        "opening " + runner->card_.text()));
  runner->context_ = OwnedContext(driver, runner->card_.handle);
  TITAN_TRY(driver.need(driver.cuCtxSetCurrent(context), "opening " + runner->card_.text()));
  CUstream stream = nullptr;
  TITAN_TRY(driver.need(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "a stream"));
  runner->stream_ = OwnedStream(driver, stream);
  return runner;
}

Result<CUmodule> CardRunner::load(const CaseFile& file, const KernelCase& kernel, bool onlyPtx) {
  const CaseModule& code = file.modules[kernel.module];
  const bool isCubin = !onlyPtx && hasCubin(code, card_);
  OwnedModule& loaded = modules_[{&code, isCubin}];
  if (loaded.get())
    return loaded.get();
  std::array<char, 4096> log{};
  std::array names = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, names.size()> values = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  CUmodule module = nullptr;
  const Answer answer =
      driver_->cuModuleLoadDataEx(&module, (isCubin ? code.cubin : code.ptx).c_str(), names.size(),
                                  names.data(), values.data());
  TITAN_TRY(
      driver_->need(answer, fmt::format("loading the {} of '{}' ({})", isCubin ? "cubin" : "PTX",
                                        kernel.name, std::string_view(log.data()))));
  loaded = OwnedModule(*driver_, module);
  ++(isCubin ? cubins_ : texts_);
  return module;
}

Status CardRunner::wait(const std::string& what) const {
  return driver_->need(driver_->cuStreamSynchronize(stream_.get()), what);
}

Result<CardRunner::Placed> CardRunner::place(const CaseRegion& region) const {
  const auto bytes = static_cast<int64_t>(region.before.size());
  const size_t all = region.before.size() + 2 * guard;
  CUdeviceptr address = 0;
  TITAN_TRY(driver_->need(driver_->cuMemAlloc_v2(&address, all), "allocating a region"));
  Placed placed{OwnedMemory(*driver_, address), bytes};
  TITAN_TRY(driver_->need(
      driver_->cuMemsetD8Async(address, static_cast<unsigned char>(guardValue), all, stream_.get()),
      "filling a region"));
  if (bytes > 0)
    TITAN_TRY(driver_->need(driver_->cuMemcpyHtoDAsync_v2(address + guard, region.before.data(),
                                                          region.before.size(), stream_.get()),
                            "filling a region"));
  TITAN_TRY(wait("filling a region"));
  return placed;
}

Result<std::string> CardRunner::fetch(const Placed& region) const {
  std::string bytes(static_cast<size_t>(region.bytes + 2 * guard), '\0');
  TITAN_TRY(driver_->need(
      driver_->cuMemcpyDtoHAsync_v2(bytes.data(), region.memory.get(), bytes.size(), stream_.get()),
      "reading a region"));
  TITAN_TRY(wait("reading a region"));
  return bytes;
}

Status CardRunner::launch(const KernelCase& kernel, CUmodule module,
                          const std::vector<Placed>& regions) const {
  std::vector<uint64_t> arguments;
  for (const CaseOperand& operand : kernel.operands)
    arguments.push_back(regions[operand.region].memory.get() +
                        static_cast<uint64_t>(guard + operand.offset));
  for (int64_t scalar : kernel.scalars)
    arguments.push_back(static_cast<uint64_t>(scalar));
  std::vector<void*> parameters;
  for (uint64_t& argument : arguments)
    parameters.push_back(&argument);
  for (const CaseLaunch& one : kernel.launches) {
    const std::string what = fmt::format("'{}' of '{}'", one.entry, kernel.name);
    CUfunction function = nullptr;
    TITAN_TRY(driver_->need(driver_->cuModuleGetFunction(&function, module, one.entry.c_str()),
                            "looking up " + what));
    if (one.sharedBytes > 0)
      TITAN_TRY(driver_->need(
          driver_->cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                      static_cast<int>(one.sharedBytes)),
          "asking for shared memory of " + what));
    TITAN_TRY(driver_->need(driver_->cuLaunchKernel(function, static_cast<unsigned>(one.blocks), 1,
                                                    1, static_cast<unsigned>(one.threads), 1, 1,
                                                    static_cast<unsigned>(one.sharedBytes),
                                                    stream_.get(), parameters.data(), nullptr),
                            "launching " + what));
    TITAN_TRY(wait("running " + what));
  }
  return {};
}

Result<std::vector<std::string>> CardRunner::run(const CaseFile& file, const KernelCase& kernel,
                                                 bool onlyPtx) {
  const CUmodule module = TITAN_TRY(load(file, kernel, onlyPtx));
  std::vector<Placed> regions;
  for (const CaseRegion& region : kernel.regions)
    regions.push_back(TITAN_TRY(place(region)));
  TITAN_TRY(launch(kernel, module, regions));
  std::vector<std::string> differences;
  for (size_t i = 0; i < regions.size(); ++i) {
    const std::string found = TITAN_TRY(fetch(regions[i]));
    const std::string fence(guard, guardValue);
    const size_t end = found.size() - guard;
    if (found.compare(0, guard, fence) != 0 || found.compare(end, guard, fence) != 0)
      differences.push_back(fmt::format("the memory beside region {} was written", i));
    for (std::string& line :
         compareRegion(kernel, i, std::string_view(found).substr(guard, found.size() - 2 * guard)))
      differences.push_back(std::move(line));
  }
  return differences;
}

} // namespace titan::cases
