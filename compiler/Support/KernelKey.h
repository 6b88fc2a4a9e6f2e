// What tells kernels apart that compute one thing.
#pragma once

#include "dialects/Kernel/Kernel.h"
#include "llvm/ADT/SmallString.h"

namespace titan {

/// A key of a map that lives as long as one context: words one behind the other.
class KeyBuilder {
public:
  /// Attributes, types, maps and names of ops exist once in their context: they are words, too.
  template <typename Word>
    requires std::is_trivially_copyable_v<Word>
  void add(Word word) {
    const char* bytes = reinterpret_cast<const char*>(&word);
    key_.append(bytes, bytes + sizeof(word));
  }
  void addTypes(mlir::TypeRange types);
  /// What the kernel computes, and nothing else: its space, maps, types of operands and body, in
  /// which values are numbered.
  void addKernel(kernel::FusedOp op);

  llvm::StringRef str() const { return key_; }

private:
  llvm::SmallString<1024> key_;
};

} // namespace titan
