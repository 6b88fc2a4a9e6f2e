// What ranks send round when they load what they have saved themselves: from the program alone.
#include "runtime/checkpoint/LoadBlocks.h"
#include "runtime/checkpoint/WriteState.h"
#include "runtime/program/Collective.h"

#include <algorithm>
#include <map>

namespace titan::checkpoint {
namespace {

/// Where in the files of all ranks a box of a tensor is. Boxes are known by the rank that writes
/// them.
class Layout {
public:
  explicit Layout(const Program& program) : program_(program), states_(savedStates(program)) {}

  Status addFilesOf(int64_t rank);
  /// What each rank needs, in their order. Files have the numbers that a load gives them: in the
  /// order of states, and of the ranks that write these.
  std::vector<Need> needs();
  const std::vector<Catalog::File>& files() const { return files_; }

private:
  struct Place {
    size_t file = 0; ///< of those that are written
    int64_t begin = 0, bytes = 0;
  };

  std::vector<int64_t> coordinates(int64_t rank) const {
    return coordinatesOf(rank, program_.mesh);
  }
  int64_t writerOf(const State& state, int64_t rank) const;

  const Program& program_;
  std::vector<SavedState> states_;
  std::vector<Catalog::File> written_, files_;
  std::map<std::pair<size_t, int64_t>, Place> places_; ///< by state and rank
};

Status Layout::addFilesOf(int64_t rank) {
  const std::vector<TensorView> views = viewsOf(states_, program_.mesh, coordinates(rank));
  for (const FolderPlan& plan : TITAN_TRY(planFolders(views, rank))) {
    const auto header = static_cast<int64_t>(plan.header.size());
    for (size_t i = 0; i < plan.entries.size(); ++i)
      if (const auto state = static_cast<size_t>(plan.tensors[i] - views.data());
          states_[state].copyFor.empty()) // no load reads copies
        places_[{state, rank}] = {written_.size(), header + plan.entries[i].begin,
                                  plan.entries[i].bytes()};
    written_.push_back({plan.file, header + plan.dataBytes(), header, /*header=*/{},
                        /*chunks=*/"of a save to come", /*digest=*/{}});
  }
  return {};
}

/// Of ranks that have the same box, the one at coordinate 0 of all axes that do not cut it.
int64_t Layout::writerOf(const State& state, int64_t rank) const {
  const std::vector<int64_t> at = coordinates(rank);
  int64_t writer = 0;
  for (size_t axis = 0; axis < at.size(); ++axis) {
    const bool isCut =
        std::ranges::any_of(state.placement, [&](const Cut& cut) { return cut.axis == axis; });
    writer = writer * program_.mesh[axis].ranks + (isCut ? at[axis] : 0);
  }
  return writer;
}

std::vector<Need> Layout::needs() {
  std::map<size_t, size_t> numbers;
  for (const auto& [key, place] : places_)
    if (numbers.try_emplace(place.file, files_.size()).second)
      files_.push_back(written_[place.file]);
  std::vector<Need> needs;
  for (int64_t rank = 0; rank < rankCount(program_.mesh); ++rank)
    for (size_t i = 0; i < states_.size(); ++i)
      if (const auto found = places_.find({i, writerOf(*states_[i].state, rank)});
          found != places_.end() && found->second.bytes > 0)
        needs.push_back(
            {rank, numbers.at(found->second.file), found->second.begin, found->second.bytes});
  return needs;
}

} // namespace

Result<Traffic> ownLoadTraffic(const Program& program, int64_t rank) {
  Layout layout(program);
  const int64_t ranks = rankCount(program.mesh);
  for (int64_t each = 0; each < ranks; ++each)
    TITAN_TRY(layout.addFilesOf(each));
  const std::vector<Need> needs = layout.needs();
  return plannedTraffic(layout.files(), needs, ranks, rank);
}

} // namespace titan::checkpoint
