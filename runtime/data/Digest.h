// The digest of a data set: recorded in checkpoints, so that a resume on other data is noticed.
#pragma once

#include "runtime/program/DType.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace titan {

class DataDigest {
public:
  DataDigest();
  ~DataDigest();
  /// Adds a name, dtype and shape, and `bytes` as Dataset::digest() says.
  void add(std::string_view name, DType dtype, std::span<const int64_t> shape,
           std::span<const char> bytes);
  uint64_t value() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace titan
