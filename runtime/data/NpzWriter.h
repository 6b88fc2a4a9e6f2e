// .npz files: a zip of .npy arrays, as numpy.savez writes them.
#pragma once

#include "runtime/data/Zip.h"
#include "runtime/program/DType.h"
#include "runtime/program/File.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace titan {

/// An array to be written.
struct ArrayHead {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
};

/// Writes an .npz through a temporary beside it and a rename: stored, not deflated, with a fixed
/// time stamp, so equal arrays give equal bytes. Holds no contents in memory.
class NpzWriter {
public:
  /// Reserves the archive's whole size on the disk. Environment: it does not fit, or `path` cannot
  /// be written; BadInput: BF16, which numpy does not have.
  static Result<std::unique_ptr<NpzWriter>> create(const std::string& path,
                                                   std::span<const ArrayHead> arrays);
  /// Removes what is not finished.
  ~NpzWriter();
  NpzWriter(const NpzWriter&) = delete;
  NpzWriter& operator=(const NpzWriter&) = delete;

  /// The next bytes of array `index`: row-major, little-endian. Arrays may take turns.
  Status append(size_t index, std::span<const char> bytes);
  /// Puts the file into its place. Internal when an array is not whole.
  Status finish();

private:
  explicit NpzWriter(std::string path);
  Status layOut(std::span<const ArrayHead> arrays);
  Status reserve();
  Error cannotWrite() const;

  struct Contents {
    uint64_t at, end; ///< of what is still to be written
    uint32_t crc;     ///< of what was
  };
  std::string path_, temporary_;
  Descriptor file_;
  ZipLayout layout_;
  std::vector<Contents> contents_; ///< by array
};

/// An array with its contents.
struct NamedArray {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
  std::span<const char> bytes;
};

/// An archive whose arrays are all at hand.
Status writeNpz(const std::string& path, std::span<const NamedArray> arrays);

} // namespace titan
