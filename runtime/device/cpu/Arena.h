// The one block of memory of a job: state, inputs, results, constants and temporaries lie in it at
// the offsets that the compiler planned.
#pragma once

#include "runtime/host/ThreadPool.h"

#include <cstddef>
#include <span>

namespace titan {

class Arena {
public:
  /// `bytes` of zeros between two inaccessible pages, in huge pages where the system has them,
  /// every page touched by `pool` so that no step pays for a page fault. Environment when there is
  /// not so much memory.
  static Result<Arena> create(int64_t bytes, ThreadPool& pool);
  Arena() = default;
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  char* data() const { return data_; }
  int64_t size() const { return size_; }
  /// Bytes usable before the inaccessible page: size() rounded up to a page.
  int64_t capacity() const { return capacity_; }

private:
  void release();

  char* mapping_ = nullptr;
  size_t mappingBytes_ = 0;
  char* data_ = nullptr;
  int64_t size_ = 0, capacity_ = 0;
};

} // namespace titan
