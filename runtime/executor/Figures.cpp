#include "runtime/executor/Figures.h"

#include <algorithm>

namespace titan {
namespace {

void add(Figures& figures, const Command& command, int64_t times) {
  switch (command.kind) {
  case CommandKind::Kernel:
    figures.kernels += times;
    break;
  case CommandKind::Library:
    figures.gemms += times;
    break;
  case CommandKind::Copy:
    figures.copies += times;
    break;
  case CommandKind::Zero:
    figures.zeros += times;
    break;
  case CommandKind::Repeat:
  case CommandKind::EndRepeat:
  case CommandKind::CollectiveStart:
  case CommandKind::CollectiveWait:
    return;
  }
  figures.flops += times * command.flops;
  figures.bytes += times * command.bytes;
}

} // namespace

Figures plannedFigures(const Function& function) {
  Figures figures;
  const std::vector<int64_t> times = executionsOf(function);
  for (size_t i = 0; i < times.size(); ++i)
    add(figures, function.commands[i], times[i]);
  figures.maxLiveBytes = function.maxLiveBytes;
  return figures;
}

void Recorder::after(const Function& function, uint32_t index) {
  add(figures_, function.commands[index], 1);
  int64_t live = 0;
  for (const LiveRange& range : function.temporaries)
    if (range.first <= index && index <= range.last)
      live += range.bytes;
  figures_.maxLiveBytes = std::max(figures_.maxLiveBytes, live);
}

} // namespace titan
