#include "runtime/checkpoint/testing/CrashEnv.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

namespace titan::checkpoint {
namespace {

using Node = CrashEnv::Node;
using NodePointer = CrashEnv::NodePointer;
using Names = CrashEnv::Names;
using Loss = CrashEnv::Loss;

class MemoryWritableFile : public WritableFile {
public:
  explicit MemoryWritableFile(NodePointer node) : node_(std::move(node)) {}
  Status append(std::string_view bytes) override {
    node_->bytes += bytes;
    return {};
  }
  Status sync() override {
    node_->durableBytes = node_->bytes;
    return {};
  }
  Status close() override { return {}; }

private:
  NodePointer node_;
};

class MemoryReadableFile : public ReadableFile {
public:
  MemoryReadableFile(std::string path, NodePointer node)
      : path_(std::move(path)), node_(std::move(node)) {}
  int64_t size() const override { return static_cast<int64_t>(node_->bytes.size()); }
  Status read(int64_t offset, char* into, int64_t bytes) override {
    if (offset + bytes > size())
      return Error::badInput("'{}' ends at byte {}: {} more were expected", path_, size(),
                             offset + bytes - size());
    std::memcpy(into, node_->bytes.data() + offset, static_cast<size_t>(bytes));
    return {};
  }

private:
  std::string path_;
  NodePointer node_;
};

class MemoryLock : public FileLock {
public:
  explicit MemoryLock(std::shared_ptr<std::string> held) : held_(std::move(held)) {}

private:
  std::shared_ptr<std::string> held_;
};

/// What a machine finds after a crash, decided node by node.
class Survivors {
public:
  Survivors(Loss loss, uint64_t seed) : loss_(loss), random_(seed) {}

  NodePointer of(const NodePointer& node) {
    auto [found, isNew] = made_.try_emplace(node.get());
    if (!isNew)
      return found->second;
    auto survivor = std::make_shared<Node>();
    found->second = survivor;
    survivor->isDirectory = node->isDirectory;
    if (node->isDirectory) {
      for (const auto& [name, child] : namesOf(*node))
        survivor->names[name] = of(child);
      survivor->durableNames = survivor->names;
    } else {
      survivor->bytes = survivor->durableBytes = bytesOf(*node);
    }
    return survivor;
  }

private:
  Names namesOf(const Node& node) {
    if (loss_ == Loss::Nothing || loss_ == Loss::Data)
      return node.names;
    Names names = node.durableNames;
    if (loss_ == Loss::Everything)
      return names;
    for (const CrashEnv::Change& change : node.changes) {
      if (random_() % 2)
        continue;
      if (!change.removed.empty())
        names.erase(change.removed);
      if (!change.added.empty())
        names[change.added] = change.node;
    }
    return names;
  }

  std::string bytesOf(const Node& node) {
    if (loss_ == Loss::Nothing || node.bytes == node.durableBytes)
      return node.bytes;
    if (loss_ != Loss::Random)
      return node.durableBytes;
    // What was appended since the sync: a part of it, its size without its bytes, or all.
    const size_t synced = node.durableBytes.size();
    const size_t kept = synced + random_() % (node.bytes.size() - synced + 1);
    std::string bytes = node.bytes.substr(0, kept);
    if (random_() % 2)
      std::fill(bytes.begin() + static_cast<ptrdiff_t>(synced), bytes.end(), '\0');
    return bytes;
  }

  Loss loss_;
  std::mt19937_64 random_;
  std::map<const Node*, NodePointer> made_;
};

NodePointer copyOf(const NodePointer& node, std::map<const Node*, NodePointer>& made) {
  auto [found, isNew] = made.try_emplace(node.get());
  if (!isNew)
    return found->second;
  auto copy = std::make_shared<Node>(*node);
  found->second = copy;
  copy->lock.reset();
  for (Names* names : {&copy->names, &copy->durableNames})
    for (auto& [name, child] : *names)
      child = copyOf(child, made);
  for (CrashEnv::Change& change : copy->changes)
    if (change.node)
      change.node = copyOf(change.node, made);
  return copy;
}

} // namespace

CrashEnv::CrashEnv() : root_(std::make_shared<Node>()) { root_->isDirectory = true; }

void CrashEnv::crash(Loss loss, uint64_t seed) { root_ = Survivors(loss, seed).of(root_); }

std::unique_ptr<CrashEnv> CrashEnv::clone() const {
  auto copy = std::make_unique<CrashEnv>();
  std::map<const Node*, NodePointer> made;
  copy->root_ = copyOf(root_, made);
  copy->space_ = space_;
  copy->unique_ = unique_;
  return copy;
}

NodePointer CrashEnv::find(const std::string& path) const {
  NodePointer node = root_;
  for (size_t start = 0; start < path.size() && node;) {
    size_t end = std::min(path.find('/', start), path.size());
    const std::string part = path.substr(start, end - start);
    start = end + 1;
    if (part.empty() || part == ".")
      continue;
    const auto child = node->names.find(part);
    node = child == node->names.end() ? nullptr : child->second;
  }
  return node;
}

Result<NodePointer> CrashEnv::parentOf(std::string_view verb, const std::string& path) const {
  NodePointer parent = find(parentPath(path));
  if (!parent || !parent->isDirectory)
    return fileError(verb, path, ENOENT);
  return parent;
}

Status CrashEnv::add(std::string_view verb, const std::string& path, NodePointer node) {
  NodePointer parent = TITAN_TRY(parentOf(verb, path));
  const std::string name = baseName(path);
  if (!parent->names.try_emplace(name, node).second)
    return fileError(verb, path, EEXIST);
  parent->changes.push_back({"", name, std::move(node)});
  return {};
}

Result<std::unique_ptr<WritableFile>> CrashEnv::createFile(const std::string& path) {
  auto node = std::make_shared<Node>();
  TITAN_TRY(add("create", path, node));
  return std::unique_ptr<WritableFile>(new MemoryWritableFile(std::move(node)));
}

Result<std::unique_ptr<ReadableFile>> CrashEnv::openFile(const std::string& path) {
  NodePointer node = find(path);
  if (!node || node->isDirectory)
    return fileError("open", path, node ? EISDIR : ENOENT);
  return std::unique_ptr<ReadableFile>(new MemoryReadableFile(path, std::move(node)));
}

Result<FileKind> CrashEnv::kindOf(const std::string& path) {
  const NodePointer node = find(path);
  if (!node)
    return FileKind::Missing;
  return node->isDirectory ? FileKind::Directory : FileKind::File;
}

Result<std::vector<DirectoryEntry>> CrashEnv::readDirectory(const std::string& path) {
  const NodePointer node = find(path);
  if (!node || !node->isDirectory)
    return fileError("open", path, ENOENT);
  std::vector<DirectoryEntry> entries;
  for (const auto& [name, child] : node->names)
    entries.push_back({name, child->isDirectory ? FileKind::Directory : FileKind::File});
  return entries;
}

Status CrashEnv::makeDirectory(const std::string& path) {
  auto node = std::make_shared<Node>();
  node->isDirectory = true;
  return add("make directory", path, std::move(node));
}

Status CrashEnv::syncDirectory(const std::string& path) {
  const NodePointer node = find(path);
  if (!node || !node->isDirectory)
    return fileError("sync directory", path, ENOENT);
  node->durableNames = node->names;
  node->changes.clear();
  return {};
}

Status CrashEnv::syncAncestor(const std::string& path) { return syncDirectory(path); }

Status CrashEnv::rename(const std::string& from, const std::string& to) {
  const NodePointer parent = TITAN_TRY(parentOf("rename", from));
  const NodePointer target = TITAN_TRY(parentOf("rename", to));
  const std::string oldName = baseName(from), newName = baseName(to);
  const auto found = parent->names.find(oldName);
  if (found == parent->names.end())
    return fileError("rename", from, ENOENT);
  // Between directories a rename is two changes, which this model would not keep atomic.
  if (parent != target)
    return fileError("rename", from, EXDEV);
  if (parent->names.contains(newName))
    return fileError("rename", to, EEXIST);
  const NodePointer node = found->second;
  parent->names.erase(found);
  parent->names[newName] = node;
  parent->changes.push_back({oldName, newName, node});
  return {};
}

Status CrashEnv::removeFile(const std::string& path) {
  const NodePointer parent = TITAN_TRY(parentOf("remove", path));
  const auto found = parent->names.find(baseName(path));
  if (found == parent->names.end() || found->second->isDirectory)
    return fileError("remove", path, found == parent->names.end() ? ENOENT : EISDIR);
  parent->changes.push_back({found->first, "", nullptr});
  parent->names.erase(found);
  return {};
}

Status CrashEnv::removeDirectory(const std::string& path) {
  const NodePointer parent = TITAN_TRY(parentOf("remove directory", path));
  const auto found = parent->names.find(baseName(path));
  if (found == parent->names.end() || !found->second->isDirectory)
    return fileError("remove directory", path, ENOENT);
  if (!found->second->names.empty())
    return fileError("remove directory", path, ENOTEMPTY);
  parent->changes.push_back({found->first, "", nullptr});
  parent->names.erase(found);
  return {};
}

Result<LockAttempt> CrashEnv::lockFile(const std::string& path, std::string_view self) {
  NodePointer node = find(path);
  if (!node) {
    node = std::make_shared<Node>();
    TITAN_TRY(add("lock", path, node));
  }
  if (const auto held = node->lock.lock())
    return LockAttempt{nullptr, *held};
  auto held = std::make_shared<std::string>(self);
  node->lock = held;
  return LockAttempt{std::make_unique<MemoryLock>(std::move(held)), {}};
}

Result<Space> CrashEnv::space(const std::string&) { return space_; }

} // namespace titan::checkpoint
