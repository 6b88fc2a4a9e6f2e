// .npz files: a zip of .npy arrays, as numpy.savez writes them.
#pragma once

#include "runtime/data/Array.h"

#include <memory>
#include <span>
#include <string>

namespace titan {

/// One array of an archive to be written; `bytes` are row-major, little-endian.
struct NamedArray {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
  std::span<const char> bytes;
};

/// The bytes of an .npz with `arrays` in the order given: stored, not deflated, with a fixed time
/// stamp, so equal arrays give equal bytes. BF16 has no numpy type and is refused.
Result<std::string> encodeNpz(std::span<const NamedArray> arrays);
/// Writes `path` through a temporary beside it and a rename.
Status writeNpz(const std::string& path, std::span<const NamedArray> arrays);

} // namespace titan
