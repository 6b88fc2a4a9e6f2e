#include "runtime/host/testing/Allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> count{0};
} // namespace

void* operator new(size_t bytes) {
  ++count;
  if (void* memory = std::malloc(bytes))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace titan::testing {

int64_t allocations() { return count; }

} // namespace titan::testing
