// What tells kernels apart that compute one thing.
#pragma once

#include "dialects/Kernel/Kernel.h"

#include <cstring>

namespace titan {

/// A key of a map that lives as long as one context: words one behind the other.
class KeyBuilder {
public:
  /// Attributes, types, maps and names of ops exist once in their context: they are words, too.
  template <typename Word>
    requires(std::is_trivially_copyable_v<Word> && sizeof(Word) <= sizeof(uint64_t))
  void add(Word word) {
    uint64_t bits = 0;
    std::memcpy(&bits, &word, sizeof(word));
    words_.push_back(bits);
  }
  void addTypes(mlir::TypeRange types);
  /// Of an op whose name is in the key.
  void addAttributes(mlir::Operation* op);
  /// What the kernel computes, and nothing else: its space, maps, types of operands and body, in
  /// which values are numbered.
  void addKernel(kernel::FusedOp op);

  /// Its bytes.
  llvm::StringRef str() const {
    return {reinterpret_cast<const char*>(words_.data()), words_.size_in_bytes()};
  }

private:
  llvm::SmallVector<uint64_t, 128> words_;
};

} // namespace titan
