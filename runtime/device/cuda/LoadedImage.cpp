#include "runtime/device/cuda/LoadedImage.h"

#include "runtime/program/Text.h"

#include <array>
#include <map>

namespace titan::cuda {
namespace {

Result<std::string> bytesOf(const Image& image, std::string_view payload) {
  const uint64_t offset = static_cast<uint64_t>(image.offset);
  const uint64_t bytes = static_cast<uint64_t>(image.bytes);
  if (offset > payload.size() || bytes > payload.size() - offset)
    return Error::badInput("the job's payload of {} bytes ends before {}: compile the job again",
                           payload.size(), textOf(image));
  // PTX has to end with a zero, which std::string has.
  std::string found(payload.substr(offset, bytes));
  if (const std::string digest = digest128(found); digest != image.digest)
    return Error::badInput("{} in the job is damaged: its digest is {}, and was {}: compile the "
                           "job again",
                           textOf(image), digest, image.digest);
  return found;
}

/// Is it the image that the driver does not like? Then another one may do.
bool isRefusal(CUresult result) {
  return result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
         result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
         result == CUDA_ERROR_JIT_COMPILER_NOT_FOUND ||
         result == CUDA_ERROR_JIT_COMPILATION_DISABLED;
}

/// A module, or why the driver has refused the image.
struct Attempt {
  OwnedModule module;
  std::string refusal;
};

Result<Attempt> tryImage(const Driver& driver, const std::string& bytes, const std::string& what) {
  std::array<char, 4096> log{};
  std::array names = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, names.size()> values = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  CUmodule module = nullptr;
  const Answer answer =
      driver.cuModuleLoadDataEx(&module, bytes.c_str(), names.size(), names.data(), values.data());
  if (answer.ok())
    return Attempt{OwnedModule(driver, module), {}};
  if (!isRefusal(answer.result))
    return driver.error(answer, "loading " + what);
  const std::string_view text(log.data());
  const std::string_view line = text.substr(0, text.find('\n'));
  return Attempt{
      {}, fmt::format("{}: {}{}{}", what, driver.text(answer), line.empty() ? "" : ": ", line)};
}

Result<CUfunction> functionOf(const Driver& driver, CUmodule module, const Image& image,
                              const std::string& entry) {
  CUfunction function = nullptr;
  const Answer answer = driver.cuModuleGetFunction(&function, module, entry.c_str());
  if (answer.result == CUDA_ERROR_NOT_FOUND)
    return Error::internal("{} in the job has no entry point '{}'", textOf(image), entry);
  TITAN_TRY(driver.need(answer, fmt::format("looking up '{}'", entry)));
  return function;
}

} // namespace

Result<LoadedImage> LoadedImage::load(const Driver& driver, const Card& card,
                                      const Program& program, std::string_view payload) {
  LoadedImage loaded;
  std::string refusals;
  for (const Image* image : TITAN_TRY(imagesFor(card, program.images))) {
    const std::string bytes = TITAN_TRY(bytesOf(*image, payload));
    Attempt attempt = TITAN_TRY(tryImage(driver, bytes, textOf(*image)));
    if (attempt.refusal.empty()) {
      loaded.image_ = image;
      loaded.module_ = std::move(attempt.module);
      break;
    }
    refusals += (refusals.empty() ? "" : "; ") + attempt.refusal;
  }
  if (!loaded.image_)
    return Error::environment("the driver (CUDA {}) of {} takes none of the job's images: {}: "
                              "update the driver, or compile the job with --arch={}",
                              versionText(driver.version()), card.text(), refusals,
                              card.capability.arch());

  std::map<std::string, int64_t> largest; // dynamic shared memory, by entry
  for (const Kernel& kernel : program.kernels) {
    std::vector<PreparedLaunch>& launches = loaded.launches_.emplace_back();
    for (const GridLaunch& launch : kernel.launches) {
      if (launch.sharedBytes > card.sharedBytes)
        return Error::environment("'{}' needs {} bytes of shared memory a block, and {} has {}: "
                                  "take another card, or compile the job with --target=cpu",
                                  kernel.label, launch.sharedBytes, card.text(), card.sharedBytes);
      const CUfunction function =
          TITAN_TRY(functionOf(driver, loaded.module_.get(), *loaded.image_, launch.entry));
      launches.push_back({function, static_cast<unsigned>(launch.blocks),
                          static_cast<unsigned>(launch.threads),
                          static_cast<unsigned>(launch.sharedBytes)});
      // A block gets 48 KiB unasked, of which the image's own take an amount that is not known
      // here.
      int64_t& most = largest[launch.entry];
      if (launch.sharedBytes <= most)
        continue;
      most = launch.sharedBytes;
      TITAN_TRY(driver.need(
          driver.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    static_cast<int>(most)),
          fmt::format("asking for {} bytes of shared memory for '{}'", most, kernel.label)));
    }
  }
  return loaded;
}

} // namespace titan::cuda
