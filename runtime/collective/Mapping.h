// Memory that several processes, or the threads of one, read and write.
#pragma once

#include "runtime/program/Error.h"

#include <cstdint>
#include <span>

namespace titan {

class Mapping {
public:
  /// Zeros, shared with processes forked from here on. Environment where there is not so much.
  static Result<Mapping> anonymous(int64_t bytes);
  /// `bytes` of a file from `offset` on, a multiple of the page size. Environment, with the reason.
  static Result<Mapping> ofFile(int file, int64_t offset, int64_t bytes, bool writable);
  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  char* data() const { return data_; }
  std::span<char> bytes() const { return {data_, static_cast<size_t>(size_)}; }

private:
  Mapping(char* data, int64_t size) : data_(data), size_(size) {}

  char* data_ = nullptr;
  int64_t size_ = 0;
};

} // namespace titan
