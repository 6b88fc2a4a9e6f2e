#include "runtime/data/Dataset.h"

#include "runtime/data/ArrayDataset.h"
#include "runtime/data/TokenDataset.h"

#include <algorithm>
#include <filesystem>

namespace titan {

namespace {

enum class FileKind { Array, Token };

Result<FileKind> kindOf(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".npy" || extension == ".npz" || extension == ".safetensors")
    return FileKind::Array;
  if (extension == ".bin" || extension == ".txt")
    return FileKind::Token;
  return Error::badInput("'{}' has extension '{}': data files are .npy, .npz, .safetensors, .bin "
                         "or .txt",
                         path, extension);
}

} // namespace

int64_t Dataset::sampleBytes(size_t field) const {
  return elementCount(fields_[field].shape) * byteSize(fields_[field].dtype);
}

Status Dataset::checkFiles() const {
  for (const auto& file : files_)
    TITAN_TRY(file->check());
  return {};
}

Result<std::unique_ptr<Dataset>> openDataset(std::span<const std::string> files,
                                             const DataRecipe& recipe,
                                             std::vector<FieldSpec> fields) {
  if (files.empty())
    return Error::badInput("no data files: set data.train or data.eval, or give --data");
  const FileKind kind = TITAN_TRY(kindOf(files[0]));
  for (const std::string& file : files)
    if (TITAN_TRY(kindOf(file)) != kind)
      return Error::badInput("'{}' and '{}' mix arrays and tokens", files[0], file);
  if (kind == FileKind::Token)
    return TokenDataset::open(files, recipe, std::move(fields));
  return ArrayDataset::open(files, recipe, std::move(fields));
}

} // namespace titan
