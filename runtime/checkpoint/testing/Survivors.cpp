#include "runtime/checkpoint/testing/Survivors.h"

#include <algorithm>

namespace titan::checkpoint {
namespace {

using Node = CrashEnv::Node;
using NodePointer = CrashEnv::NodePointer;
using Names = CrashEnv::Names;
using Loss = CrashEnv::Loss;

constexpr size_t sectorBytes = 512;

/// `digestOf` gives that of a child.
template <typename DigestOf>
std::string digestOfDirectory(const Names& names, const DigestOf& digestOfChild) {
  std::string text = "directory";
  for (const auto& [name, child] : names)
    text.append("/").append(name).append("/").append(digestOfChild(*child));
  return digestOf(text);
}

} // namespace

std::string pageOf(const std::string& bytes, size_t page, size_t size) {
  const size_t begin = page * pageBytes, wanted = std::min(pageBytes, size - begin);
  std::string found = begin < bytes.size() ? bytes.substr(begin, wanted) : std::string();
  found.resize(wanted, '\0');
  return found;
}

std::string digestOfTree(const Node& node) {
  return node.isDirectory ? digestOfDirectory(node.names, digestOfTree) : node.bytes.digest();
}

bool SettledTrees::add(const Node& node) {
  if (const auto found = digests_.find(&node); found != digests_.end())
    return found->second.has_value();
  bool isSettled = node.isDirectory ? node.changes.empty() : node.bytes == node.durableBytes;
  for (const Names* names : {&node.names, &node.durableNames})
    for (const auto& [name, child] : *names)
      isSettled = add(*child) && isSettled;
  for (const CrashEnv::Change& change : node.changes)
    if (change.node)
      add(*change.node);
  digests_[&node] = isSettled ? std::optional(digestOfTree(node)) : std::nullopt;
  return isSettled;
}

const std::string* SettledTrees::digestOf(const Node& node) const {
  const auto found = digests_.find(&node);
  return found != digests_.end() && found->second ? &*found->second : nullptr;
}

NodePointer Survivors::of(const NodePointer& node) {
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

std::string Survivors::digestOf(const Node& node, const SettledTrees& settled) {
  if (const std::string* known = settled.digestOf(node))
    return *known;
  if (const auto found = digests_.find(&node); found != digests_.end())
    return found->second;
  const auto ofChild = [&](const Node& child) { return digestOf(child, settled); };
  return digests_[&node] =
             node.isDirectory ? digestOfDirectory(namesOf(node), ofChild) : bytesOf(node).digest();
}

Names Survivors::namesOf(const Node& node) {
  if (!choices_ && loss_ != Loss::Everything)
    return node.names;
  Names names = node.durableNames;
  for (const CrashEnv::Change& change : node.changes)
    if (change.state == CrashEnv::Change::State::Durable || (choices_ && choices_->keepsName()))
      change.applyTo(names);
  return names;
}

SharedBytes Survivors::bytesOf(const Node& node) {
  if (!choices_)
    return loss_ == Loss::Nothing ? node.bytes : node.durableBytes;
  if (node.bytes == node.durableBytes)
    return node.bytes;
  const size_t way = choices_->chooseSize(node.sizes.size() + 1);
  const size_t size = way == 0 ? node.durableBytes->size() : node.sizes[way - 1];
  std::string bytes;
  for (size_t page = 0; page * pageBytes < size; ++page)
    bytes += survivingPage(pageOf(*node.durableBytes, page, size), pageOf(*node.bytes, page, size),
                           (page + 1) * pageBytes >= size);
  return bytes;
}

/// A page that was `before`, and is `now` in memory.
std::string Survivors::survivingPage(const std::string& before, const std::string& now,
                                     bool isLast) {
  if (before == now)
    return now;
  const std::string zeros(now.size(), '\0');
  const size_t tears = isLast ? (now.size() - 1) / sectorBytes : 0;
  const size_t way = choices_->choose(2 + (before != zeros) + tears);
  if (way == 0)
    return now;
  if (way == 1)
    return before;
  if (way == 2 + tears)
    return zeros;
  const size_t written = (way - 1) * sectorBytes;
  return now.substr(0, written) + before.substr(written);
}

} // namespace titan::checkpoint
