#include "runtime/host/testing/Allocations.h"

#include <atomic>

namespace {
std::atomic<int64_t> count{0};
} // namespace

#if __has_feature(thread_sanitizer)
// It has an operator new of its own, and a hook.
#include <sanitizer/allocator_interface.h>

namespace {
[[maybe_unused]] const int hooked = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t) { ++count; }, [](const volatile void*) {});
} // namespace

#else
#include <cstdlib>
#include <new>

void* operator new(size_t bytes) {
  ++count;
  if (void* memory = std::malloc(bytes))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif

namespace titan::testing {

int64_t allocations() { return count; }

} // namespace titan::testing
