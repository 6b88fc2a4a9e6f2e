#include "runtime/device/cuda/PreparedFunction.h"

namespace titan::cuda {

PreparedFunction::PreparedFunction(const Program& program, const Function& function,
                                   const LoadedImage& image, CUdeviceptr arena)
    : source_(&function),
      slots_(function, coordinatesOf(0, program.mesh), static_cast<int64_t>(arena)) {
  size_t parameters = 0;
  for (const Command& command : function.commands)
    parameters += command.operands.size() + command.scalars.size();
  parameters_.reserve(parameters); // commands point into it
  commands_.reserve(function.commands.size());

  const std::vector<int64_t> times = executionsOf(function);
  const std::vector<RepeatLink> links = linkRepeats(function);
  for (const Command& command : function.commands) {
    const size_t index = commands_.size();
    const CommandSlots::Command& slots = slots_.commands()[index];
    PreparedCommand& prepared = commands_.emplace_back();
    prepared.kind = command.kind;
    prepared.link = links[index];
    prepared.units = command.launch.units;
    prepared.operands = slots.operands;
    prepared.varying = slots.varying;
    prepared.parameters = parameters_.data() + parameters_.size();
    for (std::span<int64_t> list : {slots.operands, slots.scalars})
      for (int64_t& slot : list)
        parameters_.push_back(&slot);

    switch (command.kind) {
    case CommandKind::Kernel:
      prepared.launches = image.launches(command.target);
      nodes_ += times[index] * static_cast<int64_t>(prepared.launches.size());
      break;
    case CommandKind::Library:
      prepared.launches = image.launches(program.libraryCalls[command.target].fallback);
      nodes_ += times[index] * static_cast<int64_t>(prepared.launches.size());
      break;
    case CommandKind::Copy:
    case CommandKind::Zero:
      prepared.units = command.operands[0].bytes;
      nodes_ += times[index];
      break;
    case CommandKind::Repeat:
    case CommandKind::EndRepeat:
    case CommandKind::CollectiveStart: // a program for cards has none
    case CommandKind::CollectiveWait:
      break;
    }
  }
}

} // namespace titan::cuda
