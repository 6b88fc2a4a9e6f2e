#include "runtime/checkpoint/SavePlan.h"

#include <algorithm>

namespace titan::checkpoint {

SavePlan::SavePlan(std::vector<TensorView> tensors, const Counters& counters,
                   const Manifest& manifest)
    : tensors_(std::move(tensors)), counters_(counters), fingerprint_(manifest.program.fingerprint),
      manifest_(manifest) {}

Result<SavePlan> SavePlan::of(const SaveRequest& request, int64_t rank) {
  TITAN_TRY(checkRequest(request));
  SavePlan plan(request.tensors, request.counters, manifestOf(request));
  plan.folders_ = TITAN_TRY(planFolders(plan.tensors_, rank));
  plan.gatherPieces();
  return plan;
}

void SavePlan::gatherPieces() {
  for (FolderPlan& folder : folders_) {
    folder.pieces.assign(1, std::span<const char>(folder.header));
    for (const TensorView* tensor : folder.tensors)
      folder.pieces.push_back(tensor->source);
  }
}

Status SavePlan::readFrom(const std::vector<TensorView>& tensors) {
  const auto isSame = [](const TensorView& planned, const TensorView& given) {
    return planned.name == given.name && planned.kind == given.kind &&
           planned.profile == given.profile && planned.dtype == given.dtype &&
           planned.shape == given.shape && planned.box == given.box &&
           planned.isWritten == given.isWritten;
  };
  if (!std::ranges::equal(tensors_, tensors, isSame))
    return Error::internal("a save of other tensors than were planned");
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors_[i].source = tensors[i].source;
    tensors_[i].isBorrowed = tensors[i].isBorrowed;
  }
  gatherPieces();
  return {};
}

Status SavePlan::checkCounters(const Counters& counters) const {
  const auto name = [](const auto& counter) -> const std::string& { return counter.first; };
  if (!std::ranges::equal(counters_, counters, {}, name, name))
    return Error::internal("a save of other counters than were planned");
  return {};
}

int64_t SavePlan::tensorBytes() const {
  int64_t bytes = 0;
  for (const TensorView& tensor : tensors_)
    bytes += elementCount(tensor.shape) * byteSize(tensor.dtype);
  return bytes;
}

int64_t SavePlan::borrowed() const {
  return std::ranges::count_if(
      tensors_, [](const TensorView& tensor) { return tensor.isBorrowed && tensor.isWritten; });
}

} // namespace titan::checkpoint
