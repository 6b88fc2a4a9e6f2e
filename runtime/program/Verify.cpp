// What the executor relies on without looking: see verify() in Program.h.
#include "runtime/program/Program.h"

namespace titan {

namespace {

constexpr size_t maxDepth = std::tuple_size_v<decltype(Affine::stride)>;

/// Does [offset, offset + bytes) lie in [0, limit)? Empty ranges may stand at the limit.
bool inside(int64_t offset, int64_t bytes, int64_t limit) {
  return offset >= 0 && bytes >= 0 && bytes <= limit && offset <= limit - bytes;
}

Status checkRange(const char* what, std::string_view name, int64_t offset, int64_t bytes,
                  int64_t arena) {
  if (!inside(offset, bytes, arena))
    return Error::badInput("damaged program: {} '{}' at {}, {} bytes, leaves the arena of {} bytes",
                           what, name, offset, bytes, arena);
  return {};
}

/// The smallest and largest value of `affine` where counter d runs over [0, trips[d]); false on
/// overflow.
bool bounds(const Affine& affine, const std::vector<int64_t>& trips, int64_t& low, int64_t& high) {
  low = high = affine.base;
  for (size_t depth = 0; depth < maxDepth; ++depth) {
    const int64_t lastTrip = depth < trips.size() ? trips[depth] - 1 : 0;
    int64_t span;
    if (__builtin_mul_overflow(affine.stride[depth], lastTrip, &span) ||
        __builtin_add_overflow(span < 0 ? low : high, span, span < 0 ? &low : &high))
      return false;
  }
  return true;
}

/// One walk over a function's commands, with the trip counts of the open repeats.
class CommandChecker {
public:
  CommandChecker(const Program& program, const Function& function)
      : program_(program), function_(function) {}

  Status check() {
    for (index_ = 0; index_ < function_.commands.size(); ++index_)
      TITAN_TRY(checkCommand(function_.commands[index_]));
    if (!trips_.empty())
      return fail("{} repeat without an end", trips_.size());
    return {};
  }

private:
  template <typename... Args> Error fail(fmt::format_string<Args...> format, Args&&... args) const {
    return Error::badInput("damaged program: function '{}', command {}: {}", function_.name, index_,
                           fmt::format(format, std::forward<Args>(args)...));
  }

  Status checkCommand(const Command& command) {
    if (command.units < 0 || command.grain < 1)
      return fail("units = {}, grain = {}", command.units, command.grain);
    for (const Affine& operand : command.operands) {
      int64_t low, high;
      if (!bounds(operand, trips_, low, high) || !inside(low, 0, program_.arenaBytes) ||
          !inside(high, 0, program_.arenaBytes))
        return fail("an operand at {} leaves the arena of {} bytes", operand.base,
                    program_.arenaBytes);
    }
    switch (command.kind) {
    case CommandKind::Kernel:
      return checkIndex("kernel", command.target, program_.kernels.size());
    case CommandKind::Gemm:
      TITAN_TRY(checkIndex("gemm", command.target, program_.gemms.size()));
      return checkOperands(command, program_.gemms[command.target].gemm.bias ? 4 : 3, 0);
    case CommandKind::Copy:
      return checkOperands(command, 2, 1);
    case CommandKind::Zero:
      return checkOperands(command, 1, 1);
    case CommandKind::Repeat:
      if (command.units < 1 || trips_.size() == maxDepth)
        return fail("repeat of {} at depth {}: needs at least 1, depth below {}", command.units,
                    trips_.size(), maxDepth);
      trips_.push_back(command.units);
      return {};
    case CommandKind::EndRepeat:
      if (trips_.empty())
        return fail("end of a repeat that was not begun");
      trips_.pop_back();
      return {};
    }
    return {};
  }

  Status checkIndex(const char* what, uint32_t index, size_t count) const {
    if (index >= count)
      return fail("{} {} of {}", what, index, count);
    return {};
  }

  /// The number of operands and scalars; what a Copy or Zero touches stays inside the arena.
  Status checkOperands(const Command& command, size_t operands, size_t scalars) const {
    if (command.operands.size() != operands || command.scalars.size() < scalars)
      return fail("{} operands and {} scalars, expected {} and {}", command.operands.size(),
                  command.scalars.size(), operands, scalars);
    if (scalars == 0)
      return {};
    int64_t least, most;
    if (!bounds(command.scalars[0], trips_, least, most) || least < 0)
      return fail("size {} is negative", command.scalars[0].base);
    for (const Affine& operand : command.operands) {
      int64_t low, high;
      if (!bounds(operand, trips_, low, high) || !inside(high, most, program_.arenaBytes))
        return fail("{} bytes at {} leave the arena of {} bytes", most, operand.base,
                    program_.arenaBytes);
    }
    return {};
  }

  const Program& program_;
  const Function& function_;
  size_t index_ = 0;
  std::vector<int64_t> trips_; ///< of the open repeats, outermost first
};

} // namespace

Status verify(const Program& program) {
  const int64_t arena = program.arenaBytes;
  if (arena < 0)
    return Error::badInput("damaged program: an arena of {} bytes", arena);
  for (const State& state : program.states)
    TITAN_TRY(checkRange("state", state.name, state.offset, state.bytes, arena));
  for (const Constant& constant : program.constants) {
    TITAN_TRY(checkRange("constant", "", constant.offset, constant.bytes, arena));
    if (constant.payloadOffset < 0)
      return Error::badInput("damaged program: a constant at {} of the payload",
                             constant.payloadOffset);
  }
  for (const GemmCall& call : program.gemms)
    if (call.fallback >= program.kernels.size() || call.gemm.tileM < 1 || call.gemm.tileN < 1)
      return Error::badInput("damaged program: gemm '{}' has tiles of {} x {} and fallback {} of "
                             "{} kernels",
                             call.label, call.gemm.tileM, call.gemm.tileN, call.fallback,
                             program.kernels.size());
  for (const Function& function : program.functions) {
    for (const Binding& binding : function.bindings)
      TITAN_TRY(checkRange("binding", binding.name, binding.offset, binding.bytes, arena));
    for (const LiveRange& range : function.temporaries) {
      TITAN_TRY(checkRange("temporary of", function.name, range.offset, range.bytes, arena));
      if (range.first > range.last || range.last >= function.commands.size())
        return Error::badInput("damaged program: a temporary of '{}' lives in commands [{}, {}] of "
                               "{}",
                               function.name, range.first, range.last, function.commands.size());
    }
    TITAN_TRY(CommandChecker(program, function).check());
  }
  return {};
}

} // namespace titan
