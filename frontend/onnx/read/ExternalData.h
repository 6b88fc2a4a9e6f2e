// External data of an ONNX model, contained: a model file from anywhere must not be able to read a
// file that does not belong to it. A location is a relative path below the model's directory (or
// --weights-dir); no component may be `..` or a symbolic link; the file must be a regular file with
// one name (a second hard link may lead out of the directory); offset and length must lie within
// it, which is checked before anything is allocated.
#pragma once

#include "frontend/onnx/read/Tensor.h"
#include "runtime/program/File.h"

#include <map>
#include <span>
#include <string>

namespace titan::frontend {

/// An open regular file. Reads are positional: a file that shrinks under us is an error, not a
/// signal.
class DataFile {
public:
  DataFile(Descriptor descriptor, uint64_t size, std::string path)
      : descriptor_(std::move(descriptor)), size_(size), path_(std::move(path)) {}

  uint64_t size() const { return size_; }
  Result<std::string> read(uint64_t offset, uint64_t bytes) const;
  /// Fills `out` with the bytes from `offset` on.
  Status readInto(uint64_t offset, std::span<char> out) const;

private:
  Status checkRange(uint64_t offset, uint64_t bytes) const;

  Descriptor descriptor_;
  uint64_t size_;
  std::string path_;
};

class ExternalData {
public:
  explicit ExternalData(std::string directory) : directory_(std::move(directory)) {}

  /// Resolves the external data of `proto` for `tensor`. A file that is absent is not an error (the
  /// model can be trained from scratch): `tensor.missing` says so. Everything else that is wrong
  /// is.
  Status attach(const ::onnx::TensorProto& proto, Tensor& tensor, const std::string& what);

private:
  /// Null when there is no such file.
  Result<std::shared_ptr<DataFile>> open(const std::string& location);

  std::string directory_;
  std::map<std::string, std::shared_ptr<DataFile>> open_;
};

} // namespace titan::frontend
