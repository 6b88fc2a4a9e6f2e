// What a machine of a CrashEnv finds after a crash, decided node by node.
#pragma once

#include "runtime/checkpoint/testing/CrashEnv.h"

namespace titan::checkpoint {

/// What is kept or lost at once: bytes [page * pageBytes, ...) of a file of `size` bytes, zeros
/// where `bytes` has none.
constexpr size_t pageBytes = 4096;
std::string pageOf(const std::string& bytes, size_t page, size_t size);

/// Of all names and bytes at and below a node.
std::string digestOfTree(const CrashEnv::Node& node);

/// The trees of a machine, which may not change meanwhile, of which a power loss takes nothing.
class SettledTrees {
public:
  explicit SettledTrees(const CrashEnv::Node& root) { add(root); }
  /// digestOfTree(node), or null if something of it may be lost.
  const std::string* digestOf(const CrashEnv::Node& node) const;

private:
  bool add(const CrashEnv::Node& node);
  std::map<const CrashEnv::Node*, std::optional<std::string>> digests_;
};

class Survivors {
public:
  explicit Survivors(CrashEnv::Loss loss) : loss_(loss) {}
  explicit Survivors(Choices& choices) : choices_(&choices) {}

  CrashEnv::NodePointer of(const CrashEnv::NodePointer& node);
  /// digestOfTree(*of(node)), which asks the same and makes nothing.
  std::string digestOf(const CrashEnv::Node& node, const SettledTrees& settled);

private:
  CrashEnv::Names namesOf(const CrashEnv::Node& node);
  SharedBytes bytesOf(const CrashEnv::Node& node);
  std::string survivingPage(const std::string& before, const std::string& now, bool isLast);

  CrashEnv::Loss loss_ = CrashEnv::Loss::Everything;
  Choices* choices_ = nullptr; ///< null: `loss_` decides
  std::map<const CrashEnv::Node*, CrashEnv::NodePointer> made_;
  std::map<const CrashEnv::Node*, std::string> digests_;
};

} // namespace titan::checkpoint
