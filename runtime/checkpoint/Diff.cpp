#include "runtime/checkpoint/Diff.h"

#include "runtime/program/Text.h"

#include <algorithm>

namespace titan::checkpoint {
namespace {

constexpr size_t maxLines = 20;

std::string describe(const Diff::Tensor& tensor) {
  return fmt::format("{} {}", name(tensor.dtype), toString(tensor.shape));
}

void append(std::string& text, const std::vector<std::string>& lines) {
  for (size_t i = 0; i < std::min(lines.size(), maxLines); ++i)
    text += "\n  " + lines[i];
  if (lines.size() > maxLines)
    text += fmt::format("\n  ... and {} more", lines.size() - maxLines);
}

} // namespace

std::string nearestName(std::string_view name, const std::vector<std::string>& candidates) {
  // A third of the name may differ: "fc1.wieght", "encoder.fc1.weight" for "fc1.weight" not.
  size_t best = std::max<size_t>(2, name.size() / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : candidates) {
    const size_t least =
        std::max(name.size(), candidate.size()) - std::min(name.size(), candidate.size());
    if (least >= best)
      continue;
    if (const size_t distance = editDistance(name, candidate); distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

void Diff::mismatch(const Tensor& wanted, const Tensor& found, std::string_view hint) {
  shapes_ += wanted.shape != found.shape;
  dtypes_ += wanted.dtype != found.dtype;
  mismatches_.push_back(fmt::format("! {} is {}, the program wants {}{}{}", wanted.name,
                                    describe(found), describe(wanted), hint.empty() ? "" : ": ",
                                    hint));
}

Error Diff::error(std::string_view subject, std::string_view advice) const {
  std::string counts;
  const auto count = [&](size_t number, std::string_view what) {
    if (number > 0)
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", number, what);
  };
  count(missing_.size(), "missing");
  count(unexpected_.size(), "unexpected");
  count(static_cast<size_t>(shapes_), "of another shape");
  count(static_cast<size_t>(dtypes_), "of another dtype");

  std::vector<std::string> candidates, missing, unexpected;
  for (const Tensor& tensor : unexpected_) {
    candidates.push_back(tensor.name);
    unexpected.push_back(fmt::format("+ {} {} is unexpected", tensor.name, describe(tensor)));
  }
  for (size_t i = 0; i < missing_.size(); ++i) {
    const Tensor& tensor = missing_[i];
    std::string line = fmt::format("- {} {} is missing", tensor.name, describe(tensor));
    // The search is quadratic, so only for the lines that are shown.
    if (i < maxLines)
      if (const std::string nearest = nearestName(tensor.name, candidates); !nearest.empty())
        line += fmt::format(": did you mean '{}'?", nearest);
    missing.push_back(std::move(line));
  }
  std::string text = fmt::format("{} does not fit this program: {}", subject, counts);
  append(text, missing);
  append(text, unexpected);
  append(text, mismatches_);
  if (!advice.empty())
    text += fmt::format("\n{}", advice);
  return {ErrorCode::BadInput, std::move(text)};
}

} // namespace titan::checkpoint
