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

} // namespace titan
