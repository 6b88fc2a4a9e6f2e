#include "runtime/collective/Blame.h"

#include <fmt/ranges.h>

#include <map>
#include <vector>

namespace titan {

std::string whoIs(const ControlBlock& block, int64_t rank) {
  const int32_t pid = block.slot(rank).pid;
  const std::string host = block.slot(rank).host.load();
  return pid == 0
             ? fmt::format("rank {}", rank)
             : fmt::format("rank {} (pid {}{}{})", rank, pid, host.empty() ? "" : " on ", host);
}

std::string inStep(const ControlBlock& block, int64_t rank) {
  const int64_t step = block.slot(rank).step;
  return step < 0 ? "" : fmt::format(" in step {}", step);
}

std::string whoWaits(const ControlBlock& block, int64_t lost) {
  std::map<std::string, std::vector<int64_t>> waiting;
  for (int64_t rank = 0; rank < block.ranks(); ++rank)
    if (rank != lost && block.slot(rank).waiting)
      waiting[block.slot(rank).waitName.load()].push_back(rank);
  std::vector<std::string> texts;
  for (const auto& [name, ranks] : waiting)
    texts.push_back(fmt::format("rank{} {} waited at '{}'", ranks.size() == 1 ? "" : "s",
                                fmt::join(ranks, ", "), name));
  return fmt::format("{}", fmt::join(texts, "; "));
}

} // namespace titan
