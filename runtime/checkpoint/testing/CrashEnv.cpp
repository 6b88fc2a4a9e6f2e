#include "runtime/checkpoint/testing/CrashEnv.h"

#include "runtime/checkpoint/testing/Survivors.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace titan::checkpoint {
namespace {

using Node = CrashEnv::Node;
using NodePointer = CrashEnv::NodePointer;
using Names = CrashEnv::Names;

class MemoryWritableFile : public WritableFile {
public:
  MemoryWritableFile(CrashEnv& env, std::string path, NodePointer node)
      : env_(env), path_(std::move(path)), node_(std::move(node)) {}

  Status append(std::string_view bytes) override {
    if (bytes.empty())
      return {};
    const size_t first = node_->bytes->size() / pageBytes;
    node_->bytes.own() += bytes;
    for (size_t page = first; page * pageBytes < node_->bytes->size(); ++page)
      node_->dirty.insert(page);
    node_->isSizeDirty = true;
    node_->sizes.push_back(node_->bytes->size());
    return {};
  }

  Status reserve(int64_t bytes) override {
    return env_.reserve(*node_, static_cast<uint64_t>(bytes))
               ? Status()
               : Status(fileError("reserve room in", path_, EDQUOT));
  }

  Status sync() override {
    const auto fault = env_.enterSync(path_);
    if (fault == CrashEnv::SyncFault::LeftOut)
      return {};
    if (!fault) {
      std::string& durable = node_->durableBytes.own();
      if (node_->isSizeDirty) {
        durable.resize(node_->bytes->size(), '\0');
        node_->sizes.clear();
      }
      for (size_t page : node_->dirty)
        durable.replace(page * pageBytes, pageBytes,
                        pageOf(*node_->bytes, page, node_->bytes->size()));
      if (node_->durableBytes == node_->bytes)
        node_->durableBytes = node_->bytes;
    }
    node_->dirty.clear();
    node_->isSizeDirty = false;
    return fault == CrashEnv::SyncFault::Fails ? Status(fileError("sync", path_, EIO)) : Status();
  }

  Status close() override { return {}; }

private:
  CrashEnv& env_;
  std::string path_;
  NodePointer node_;
};

class MemoryReadableFile : public ReadableFile {
public:
  MemoryReadableFile(std::string path, NodePointer node)
      : path_(std::move(path)), node_(std::move(node)) {}
  int64_t size() const override { return static_cast<int64_t>(node_->bytes->size()); }
  Status read(int64_t offset, char* into, int64_t bytes) override {
    if (offset + bytes > size())
      return Error::badInput("'{}' ends at byte {}: {} more were expected", path_, size(),
                             offset + bytes - size());
    std::memcpy(into, node_->bytes->data() + offset, static_cast<size_t>(bytes));
    return {};
  }

private:
  std::string path_;
  NodePointer node_;
};

class MemoryLock : public FileLock {
public:
  explicit MemoryLock(std::shared_ptr<std::string> held) : held_(std::move(held)) {}
  void rewrite(std::string_view self) override { *held_ = self; }

private:
  std::shared_ptr<std::string> held_;
};

NodePointer copyOf(const NodePointer& node, std::map<const Node*, NodePointer>& made) {
  auto [found, isNew] = made.try_emplace(node.get());
  if (!isNew)
    return found->second;
  auto copy = std::make_shared<Node>(*node);
  found->second = copy;
  copy->lock.reset();
  copy->sharedLock.reset();
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

std::unique_ptr<CrashEnv> CrashEnv::crashed(Loss loss) const {
  return withRoot(Survivors(loss).of(root_));
}

std::unique_ptr<CrashEnv> CrashEnv::crashed(Choices& choices) const {
  return withRoot(Survivors(choices).of(root_));
}

std::string CrashEnv::digestOfCrashed(Choices& choices, const SettledTrees& settled) const {
  return Survivors(choices).digestOf(*root_, settled);
}

SettledTrees CrashEnv::settled() const { return SettledTrees(*root_); }

void CrashEnv::Change::applyTo(Names& names) const {
  if (!removed.empty())
    names.erase(removed);
  if (!added.empty())
    names[added] = node;
}

void CrashEnv::faultAtSync(int64_t sync, SyncFault fault) {
  fault_ = fault;
  faultAt_ = sync;
  syncs_.clear();
}

std::optional<CrashEnv::SyncFault> CrashEnv::enterSync(const std::string& path) {
  syncs_.push_back(path);
  return static_cast<int64_t>(syncs_.size()) == faultAt_ + 1 ? fault_ : std::nullopt;
}

std::string CrashEnv::digest(const std::string& path) const { return digestOfTree(*find(path)); }

std::unique_ptr<CrashEnv> CrashEnv::clone() const {
  std::map<const Node*, NodePointer> made;
  auto copy = withRoot(copyOf(root_, made));
  copy->fault_ = fault_;
  copy->faultAt_ = faultAt_;
  copy->syncs_ = syncs_;
  return copy;
}

std::unique_ptr<CrashEnv> CrashEnv::withRoot(NodePointer root) const {
  auto env = std::make_unique<CrashEnv>();
  env->root_ = std::move(root);
  env->space_ = space_;
  env->unique_ = unique_;
  return env;
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
  parent->changes.push_back({"", name, std::move(node), {}});
  return {};
}

Result<std::unique_ptr<WritableFile>> CrashEnv::createFile(const std::string& path) {
  auto node = std::make_shared<Node>();
  TITAN_TRY(add("create", path, node));
  return std::unique_ptr<WritableFile>(new MemoryWritableFile(*this, path, std::move(node)));
}

Result<std::unique_ptr<ReadableFile>> CrashEnv::openFile(const std::string& path) {
  NodePointer node = find(path);
  if (!node || node->isDirectory)
    return fileError("open", path, node ? EISDIR : ENOENT);
  return std::unique_ptr<ReadableFile>(new MemoryReadableFile(path, std::move(node)));
}

void CrashEnv::dropCached(const std::string& path) {
  const NodePointer node = find(path);
  if (node && node->dirty.empty() && !node->isSizeDirty) {
    node->bytes = node->durableBytes;
    node->sizes.clear();
  }
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
  const auto fault = enterSync(path);
  if (fault == SyncFault::LeftOut)
    return {};
  for (Change& change : node->changes)
    if (change.state == Change::State::Pending)
      change.state = fault ? Change::State::Clean : Change::State::Durable;
  if (fault == SyncFault::Fails)
    return fileError("sync directory", path, EIO);
  // Behind a change that may be lost the order still matters.
  const auto behind =
      std::find_if(node->changes.begin(), node->changes.end(),
                   [](const Change& change) { return change.state != Change::State::Durable; });
  for (auto change = node->changes.begin(); change != behind; ++change)
    change->applyTo(node->durableNames);
  node->changes.erase(node->changes.begin(), behind);
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
  parent->changes.push_back({oldName, newName, node, {}});
  return {};
}

bool CrashEnv::reserve(Node& node, uint64_t bytes) {
  if (reserved_ + bytes > quota_)
    return false;
  reserved_ += bytes;
  node.reserved += bytes;
  return true;
}

Status CrashEnv::removeFile(const std::string& path) {
  const NodePointer parent = TITAN_TRY(parentOf("remove", path));
  const auto found = parent->names.find(baseName(path));
  if (found == parent->names.end() || found->second->isDirectory)
    return fileError("remove", path, found == parent->names.end() ? ENOENT : EISDIR);
  reserved_ -= found->second->reserved;
  parent->changes.push_back({found->first, "", nullptr, {}});
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
  parent->changes.push_back({found->first, "", nullptr, {}});
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

Result<std::unique_ptr<FileLock>> CrashEnv::tryLock(const std::string& path, LockKind kind) {
  const NodePointer node = find(path);
  if (!node)
    return std::make_unique<FileLock>();
  std::shared_ptr<std::string> readers = node->sharedLock.lock();
  const bool isShared = kind == LockKind::Shared;
  if (node->lock.lock() || (readers && !isShared))
    return std::unique_ptr<FileLock>();
  if (!readers)
    readers = std::make_shared<std::string>();
  (isShared ? node->sharedLock : node->lock) = readers;
  return std::unique_ptr<FileLock>(new MemoryLock(std::move(readers)));
}

Result<Space> CrashEnv::space(const std::string&) { return space_; }

} // namespace titan::checkpoint
