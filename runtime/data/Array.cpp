#include "runtime/data/Array.h"

#include "runtime/checkpoint/Safetensors.h"

#include <filesystem>

namespace titan {

Result<std::vector<Array>> parseSafetensors(std::span<const char> bytes,
                                            std::shared_ptr<const void> storage) {
  const checkpoint::SafetensorsHeader header = TITAN_TRY(checkpoint::parseSafetensorsHeader(
      {bytes.data(), bytes.size()}, static_cast<int64_t>(bytes.size())));
  std::vector<Array> arrays;
  for (const checkpoint::SafetensorsEntry& entry : header.entries)
    arrays.push_back({entry.name, entry.dtype, entry.shape,
                      bytes.subspan(static_cast<size_t>(header.dataStart + entry.begin),
                                    static_cast<size_t>(entry.end - entry.begin)),
                      storage});
  return arrays;
}

Result<std::vector<Array>> readArrays(std::shared_ptr<const MappedFile> file) {
  const std::filesystem::path parsed(file->path());
  const auto read = [&]() -> Result<std::vector<Array>> {
    if (parsed.extension() == ".npz")
      return parseNpz(file->bytes(), file);
    if (parsed.extension() == ".safetensors")
      return parseSafetensors(file->bytes(), file);
    std::vector<Array> arrays;
    arrays.push_back(TITAN_TRY(parseNpy(file->bytes(), parsed.stem().string(), file)));
    return arrays;
  };
  Result<std::vector<Array>> arrays = read();
  if (!arrays.ok())
    return arrays.takeError().withContext(file->path());
  return arrays;
}

Result<std::vector<Array>> readArrays(const std::string& path) {
  return readArrays(TITAN_TRY(MappedFile::open(path)));
}

} // namespace titan
