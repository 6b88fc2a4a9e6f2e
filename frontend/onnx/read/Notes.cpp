#include "frontend/onnx/read/Notes.h"

#include <fmt/format.h>

namespace titan::frontend {

Notes::Group& Notes::groupOf(const NoteCause& cause, const std::string& text) {
  auto [it, fresh] =
      byCause_.try_emplace(text.empty() ? std::string(cause.one) : text, groups_.size());
  if (fresh)
    groups_.push_back({cause, text, {}, {}});
  return groups_[it->second];
}

void Notes::add(std::string text) { groupOf({}, text); }

void Notes::add(const NoteCause& cause, std::string about) {
  Group& group = groupOf(cause, "");
  if (group.known.insert(about).second)
    group.about.push_back(std::move(about));
}

void Notes::append(const Notes& others) {
  for (const Group& group : others.groups_) {
    if (!group.text.empty())
      add(group.text);
    for (const std::string& about : group.about)
      add(group.cause, about);
  }
}

std::vector<std::string> Notes::lines() const {
  std::vector<std::string> lines;
  for (const auto& [cause, text, about, known] : groups_)
    lines.push_back(about.empty()       ? text
                    : about.size() == 1 ? fmt::format(fmt::runtime(cause.one), about.front())
                                        : fmt::format(fmt::runtime(cause.several), about.size(),
                                                      fmt::join(about, ", ")));
  return lines;
}

} // namespace titan::frontend
