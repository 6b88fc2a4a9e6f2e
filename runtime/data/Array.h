// Arrays as they lie in .npy, .npz and .safetensors files. Headers are hostile: every count and
// offset is checked against the bytes that are there before it is used.
#pragma once

#include "runtime/data/MappedFile.h"
#include "runtime/program/DType.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace titan {

/// A row-major, little-endian array; `bytes` point into the file's mapping or into `storage`.
struct Array {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
  std::span<const char> bytes;
  std::shared_ptr<const void> storage; ///< keeps `bytes` alive
};

/// The arrays of a .npy (one, named by the file's stem), .npz or .safetensors file, by the
/// extension. Stored data is mapped, and `file` is its storage; deflated members of an .npz are
/// inflated into memory.
Result<std::vector<Array>> readArrays(std::shared_ptr<const MappedFile> file);
Result<std::vector<Array>> readArrays(const std::string& path);

/// The same over bytes in memory (what the fuzz target calls). `storage` is handed on to the
/// arrays.
Result<Array> parseNpy(std::span<const char> bytes, std::string name,
                       std::shared_ptr<const void> storage = nullptr);
Result<std::vector<Array>> parseNpz(std::span<const char> bytes,
                                    std::shared_ptr<const void> storage = nullptr);
Result<std::vector<Array>> parseSafetensors(std::span<const char> bytes,
                                            std::shared_ptr<const void> storage = nullptr);

} // namespace titan
