#include "runtime/program/Program.h"

namespace titan {

std::vector<int64_t> executionsOf(const Function& function) {
  std::vector<int64_t> executions;
  std::vector<int64_t> open = {1}; // iterations of the repeats around a command
  for (const Command& command : function.commands) {
    if (command.kind == CommandKind::EndRepeat)
      open.pop_back();
    executions.push_back(open.back());
    if (command.kind == CommandKind::Repeat)
      open.push_back(open.back() * command.launch.units);
  }
  return executions;
}

const Function* Program::findFunction(std::string_view name) const {
  for (const Function& function : functions)
    if (function.name == name)
      return &function;
  return nullptr;
}

const State* Program::findState(std::string_view name) const {
  for (const State& state : states)
    if (state.kind != StateKind::Ema && state.name == name)
      return &state;
  return nullptr;
}

int64_t launchesOf(const Program& program, const Function& function) {
  const std::vector<int64_t> times = executionsOf(function);
  int64_t launches = 0;
  for (size_t i = 0; i < function.commands.size(); ++i) {
    const Command& command = function.commands[i];
    const auto ofKernel = [&](uint32_t kernel) {
      return times[i] * static_cast<int64_t>(program.kernels[kernel].launches.size());
    };
    switch (command.kind) {
    case CommandKind::Kernel:
      launches += ofKernel(command.target);
      break;
    case CommandKind::Library:
      launches += ofKernel(program.libraryCalls[command.target].fallback);
      break;
    case CommandKind::Copy:
    case CommandKind::Zero:
      launches += times[i];
      break;
    case CommandKind::Repeat:
    case CommandKind::EndRepeat:
    case CommandKind::CollectiveStart:
    case CommandKind::CollectiveWait:
      break;
    }
  }
  return launches;
}

} // namespace titan
