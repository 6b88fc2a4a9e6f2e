// A short text in shared memory that one thread writes and others may read at any time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace titan {

/// Up to 119 bytes in place; what is longer ends in "...".
class FixedText {
public:
  static constexpr size_t capacity = 120;

  FixedText() = default;
  FixedText(std::string_view text) {
    constexpr std::string_view ellipsis = "...";
    const size_t size = text.size() < capacity ? text.size() : capacity - 1;
    std::memcpy(bytes_.data(), text.data(), size);
    if (size < text.size())
      std::memcpy(bytes_.data() + size - ellipsis.size(), ellipsis.data(), ellipsis.size());
  }

  const char* data() const { return bytes_.data(); }
  char* data() { return bytes_.data(); }
  std::string_view view() const { return {bytes_.data(), strnlen(bytes_.data(), capacity - 1)}; }

private:
  std::array<char, capacity> bytes_{};
};

class SharedText {
public:
  void store(const FixedText& text) {
    const uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed); // odd: being written
    std::atomic_thread_fence(std::memory_order_release);
    for (size_t i = 0; i < words_.size(); ++i) {
      uint64_t word;
      std::memcpy(&word, text.data() + i * sizeof word, sizeof word);
      words_[i].store(word, std::memory_order_relaxed);
    }
    version_.store(version + 2, std::memory_order_release);
  }

  /// Of a writer that is too busy, or died while it wrote: what is there.
  std::string load() const {
    FixedText text;
    for (int attempt = 0; attempt < 100; ++attempt) {
      const uint64_t before = version_.load(std::memory_order_acquire);
      for (size_t i = 0; i < words_.size(); ++i) {
        const uint64_t word = words_[i].load(std::memory_order_relaxed);
        std::memcpy(text.data() + i * sizeof word, &word, sizeof word);
      }
      std::atomic_thread_fence(std::memory_order_acquire);
      if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before)
        break;
    }
    return std::string(text.view());
  }

private:
  std::atomic<uint64_t> version_{0};
  std::array<std::atomic<uint64_t>, FixedText::capacity / sizeof(uint64_t)> words_{};
};

} // namespace titan
