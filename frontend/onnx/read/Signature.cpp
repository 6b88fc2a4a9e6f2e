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

Signature Signature::parse(const std::string& text) {
  Signature signature;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    size_t colon = line.find(": "), target = line.find(" target='");
    if (colon == std::string::npos || colon < 3 || line[1] != '_' || target == std::string::npos)
      continue;
    std::string_view kind = std::string_view(line).substr(colon + 2, target - colon - 2);
    size_t begin = target + 9, end = line.find('\'', begin);
    if ((kind != "PARAMETER" && kind != "BUFFER") || end == std::string::npos || end == begin)
      continue;
    std::string name = line.substr(begin, end - begin);
    if (!isText(name) || signature.byName(name))
      continue;
    bool persistent = line.find("persistent=False", end) == std::string::npos;
    signature.byMangled_.emplace(lowered(std::string_view(line).substr(2, colon - 2)),
                                 signature.tensors_.size());
    signature.byName_.emplace(name, signature.tensors_.size());
    signature.tensors_.push_back({std::move(name), kind == "PARAMETER", persistent});
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
