#include "runtime/device/cuda/PreparedFunction.h"

namespace titan::cuda {

PreparedFunction::PreparedFunction(const Program& program, size_t index, const LoadedImage& image,
                                   const CardMemory& memory)
    : source_(&program.functions[index]), nodes_(launchesOf(program, *source_)),
      firstUpdate_(firstUpdateOf(*source_)),
      slots_(*source_, coordinatesOf(0, program.mesh),
             [&](uint32_t command, const Operand& operand) {
               return static_cast<int64_t>(memory.originOf(index, command, operand));
             }) {
  const Function& function = *source_;
  size_t parameters = 0;
  for (const Command& command : function.commands)
    parameters += command.operands.size() + command.scalars.size();
  parameters_.reserve(parameters); // commands point into it
  commands_.reserve(function.commands.size());

  const std::vector<RepeatLink> links = linkRepeats(function);
  for (const Command& command : function.commands) {
    const size_t at = commands_.size();
    const CommandSlots::Command& slots = slots_.commands()[at];
    PreparedCommand& prepared = commands_.emplace_back();
    prepared.kind = command.kind;
    prepared.link = links[at];
    prepared.units = command.launch.units;
    prepared.operands = slots.operands;
    prepared.varying = slots.varying;
    prepared.parameters = parameters_.data() + parameters_.size();
    // The generated product has no parameter for the library's workspace.
    const bool hasWorkspace =
        command.kind == CommandKind::Library && program.libraryCalls[command.target].workspace > 0;
    for (std::span<int64_t> list :
         {slots.operands.first(slots.operands.size() - hasWorkspace), slots.scalars})
      for (int64_t& slot : list)
        parameters_.push_back(&slot);

    switch (command.kind) {
    case CommandKind::Kernel:
      prepared.launches = image.launches(command.target);
      break;
    case CommandKind::Library:
      prepared.call = command.target;
      prepared.launches = image.launches(program.libraryCalls[command.target].fallback);
      break;
    case CommandKind::Copy:
    case CommandKind::Zero:
      prepared.units = command.operands[0].bytes;
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
