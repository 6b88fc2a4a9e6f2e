#include "frontend/onnx/read/Signature.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace titan::frontend {

static std::string lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// What `line` has between quotes from `begin` on; empty: no quote ends it.
static std::string quotedAt(const std::string& line, size_t begin) {
  const size_t end = line.find('\'', begin);
  return end == std::string::npos ? std::string() : line.substr(begin, end - begin);
}

Signature Signature::parse(const std::string& text) {
  Signature signature;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view mutation = ": BUFFER_MUTATION target='";
    if (size_t at = line.find(mutation); at != std::string::npos) {
      auto buffer = signature.byName_.find(quotedAt(line, at + mutation.size()));
      if (buffer != signature.byName_.end())
        signature.tensors_[buffer->second].written = true;
      continue;
    }
    size_t colon = line.find(": "), target = line.find(" target='");
    if (colon == std::string::npos || colon < 3 || line[1] != '_' || target == std::string::npos)
      continue;
    std::string_view kind = std::string_view(line).substr(colon + 2, target - colon - 2);
    std::string name = quotedAt(line, target + 9);
    if ((kind != "PARAMETER" && kind != "BUFFER") || name.empty())
      continue;
    const size_t end = target + 9 + name.size();
    if (!isText(name) || signature.byName(name))
      continue;
    bool persistent = line.find("persistent=False", end) == std::string::npos;
    std::string mangled = lowered(std::string_view(line).substr(2, colon - 2));
    signature.byMangled_.emplace(mangled, signature.tensors_.size());
    signature.byName_.emplace(name, signature.tensors_.size());
    signature.tensors_.push_back(
        {std::move(name), std::move(mangled), kind == "PARAMETER", persistent});
  }
  return signature;
}

const SourceTensor* Signature::byName(std::string_view name) const {
  size_t at = position(name);
  return at < tensors_.size() ? &tensors_[at] : nullptr;
}

const SourceTensor* Signature::byMangled(const std::string& mangled) const {
  auto it = byMangled_.find(mangled);
  return it == byMangled_.end() ? nullptr : &tensors_[it->second];
}

size_t Signature::position(std::string_view name) const {
  auto it = byName_.find(name);
  return it == byName_.end() ? tensors_.size() : it->second;
}

} // namespace titan::frontend
