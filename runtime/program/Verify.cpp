// What the executor relies on without looking: see verify() in Program.h.
#include "runtime/program/VerifyCollectives.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace titan {

namespace {

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

/// The elements of a batch of matrices [rows, columns], each row `leading` after the one before,
/// each matrix `stride` after the one before; nothing where these do not describe such a batch.
std::optional<int64_t> extentOf(int64_t rows, int64_t columns, int64_t leading, int64_t batch,
                                int64_t stride) {
  int64_t last, matrices, extent;
  if (rows < 1 || columns < 1 || leading < columns || batch < 1 || stride < 0 ||
      __builtin_mul_overflow(rows - 1, leading, &last) ||
      __builtin_mul_overflow(batch - 1, stride, &matrices) ||
      __builtin_add_overflow(last, matrices, &extent) ||
      __builtin_add_overflow(extent, columns, &extent))
    return std::nullopt;
  return extent;
}

/// One operand of a product: what it is, and the elements that it must hold.
struct ProductOperand {
  const char* name;
  std::optional<int64_t> elements;
  DType dtype;
  Access access;
};

/// One tensor of attention: the operand that it lies in, and the elements that this must hold.
struct AttentionOperand {
  const char* name;
  uint32_t operand;
  std::optional<int64_t> elements;
  DType dtype;
  Access access;
};

/// Elements of [batch, rows, heads, width]; nothing where the view is no such tensor.
std::optional<int64_t> extentOf(const AttentionView& view, int64_t batch, int64_t rows,
                                int64_t heads, int64_t width) {
  int64_t extent = width;
  const std::pair<int64_t, int64_t> dims[] = {
      {batch, view.batch}, {rows, view.row}, {heads, view.head}, {2, view.offset}};
  for (const auto& [count, stride] : dims) {
    int64_t last = 0;
    if (count < 1 || width < 1 || stride < 0 || __builtin_mul_overflow(count - 1, stride, &last) ||
        __builtin_add_overflow(extent, last, &extent))
      return std::nullopt;
  }
  return extent;
}

std::vector<AttentionOperand> operandsOf(const Attention& a) {
  const auto view = [&](const char* name, const AttentionView& at, bool ofKeys, int64_t width,
                        Access access) {
    return AttentionOperand{
        name, at.operand,
        extentOf(at, a.batch, ofKeys ? a.keys : a.queries, ofKeys ? a.keyHeads : a.heads, width),
        a.element, access};
  };
  const Access forward = a.backward ? Access::Read : Access::Write;
  const AttentionView statistics = {a.logSumExp, 0, a.heads * a.queries, 1, a.queries};
  std::vector<AttentionOperand> operands = {
      view("the query", a.query, false, a.width, Access::Read),
      view("the key", a.key, true, a.width, Access::Read),
      view("the value", a.value, true, a.valueWidth, Access::Read),
      view("the result", a.result, false, a.valueWidth, forward),
      view("the logarithms", statistics, false, 1, forward)};
  operands.back().dtype = DType::F32;
  if (a.backward) {
    operands.push_back(view("the result's adjoint", a.dresult, false, a.valueWidth, Access::Read));
    operands.push_back(view("the query's adjoint", a.dquery, false, a.width, Access::Write));
    operands.push_back(view("the key's adjoint", a.dkey, true, a.width, Access::Write));
    operands.push_back(view("the value's adjoint", a.dvalue, true, a.valueWidth, Access::Write));
  }
  return operands;
}

std::vector<ProductOperand> operandsOf(const Gemm& g) {
  std::vector<ProductOperand> operands = {
      {"A",
       extentOf(g.transposeA ? g.k : g.m, g.transposeA ? g.m : g.k, g.lda, g.batch, g.batchStrideA),
       g.a, Access::Read},
      {"B",
       extentOf(g.transposeB ? g.n : g.k, g.transposeB ? g.k : g.n, g.ldb, g.batch, g.batchStrideB),
       g.b, Access::Read},
      {"C", extentOf(g.m, g.n, g.ldc, g.batch, g.batchStrideC), g.c,
       g.accumulate ? Access::Both : Access::Write}};
  if (g.bias)
    operands.push_back({"the bias", g.n, g.c, Access::Read});
  return operands;
}

/// Gemm::units() of any extents; nothing on overflow.
std::optional<int64_t> unitsOf(const Gemm& gemm) {
  int64_t units;
  if (__builtin_mul_overflow(gemm.tilesM(), gemm.tilesN(), &units) ||
      __builtin_mul_overflow(units, gemm.batch, &units))
    return std::nullopt;
  return units;
}

/// A range of the arena that commands may not write to.
struct Protected {
  const char* what;
  std::string_view name;
  int64_t begin, end;
};

/// Ranges that are asked for the one that a write meets.
class ProtectedRanges {
public:
  template <typename Part> void add(const char* what, std::string_view name, const Part& part) {
    ranges_.push_back({what, name, part.offset, part.offset + part.bytes});
  }

  /// Before the first `find`.
  void order() {
    for (const Protected& range : ranges_)
      reach_.emplace_back(range.begin, range.end);
    std::ranges::sort(reach_);
    for (size_t i = 1; i < reach_.size(); ++i)
      reach_[i].second = std::max(reach_[i].second, reach_[i - 1].second);
  }

  /// The first that was added of those that share a byte with [begin, end), or null.
  const Protected* find(int64_t begin, int64_t end) const {
    const auto after =
        std::ranges::lower_bound(reach_, end, {}, &std::pair<int64_t, int64_t>::first);
    if (after == reach_.begin() || std::prev(after)->second <= begin)
      return nullptr;
    return &*std::ranges::find_if(
        ranges_, [&](const Protected& range) { return begin < range.end && range.begin < end; });
  }

private:
  std::vector<Protected> ranges_;
  /// By begin: the begins, and the last end of all ranges up to there.
  std::vector<std::pair<int64_t, int64_t>> reach_;
};

/// One walk over a function's commands, with the trip counts of the open repeats.
class CommandChecker {
public:
  CommandChecker(const Program& program, const Function& function, CollectiveChecker& collectives)
      : program_(program), function_(function), collectives_(collectives) {
    for (const MeshAxis& axis : program.mesh)
      ranks_.push_back(axis.ranks);
    for (const Constant& constant : program.constants)
      always_.add("constant", "", constant);
    for (const Binding& binding : function.bindings)
      if (binding.role == Binding::Role::Input || binding.role == Binding::Role::Control)
        always_.add(binding.role == Binding::Role::Input ? "input" : "control", binding.name,
                    binding);
    for (const State& state : program.states)
      states_.add("state", state.name, state);
    always_.order();
    states_.order();
  }

  Status check() {
    for (index_ = 0; index_ < function_.commands.size(); ++index_)
      TITAN_TRY(checkCommand(function_.commands[index_]));
    if (!trips_.empty())
      return fail("{} repeat without an end", trips_.size());
    return located(collectives_.endFunction());
  }

private:
  template <typename... Args> Error fail(fmt::format_string<Args...> format, Args&&... args) const {
    return Error::badInput("damaged program: function '{}', command {}: {}", function_.name, index_,
                           fmt::format(format, std::forward<Args>(args)...));
  }

  Status located(const Status& status) const {
    return status.ok() ? Status() : fail("{}", status.error().message());
  }

  /// A library's workspace, the last operand, is not compared.
  Status checkCompared(const Command& command, uint32_t kernel) const {
    if (program_.comparisons.empty())
      return {};
    const size_t compared = program_.comparisons[kernel].operands.size();
    return compared <= command.operands.size()
               ? Status()
               : fail("{} of {} operands are compared", compared, command.operands.size());
  }

  Status checkCommand(const Command& command) {
    if (command.launch.units < 0 || command.launch.grain < 1)
      return fail("units = {}, grain = {}", command.launch.units, command.launch.grain);
    // From its first command on, phase update owns the states.
    isUpdating_ |= command.phase == Phase::Update;
    for (size_t i = 0; i < command.operands.size(); ++i)
      TITAN_TRY(checkOperand(command.operands[i], i));
    for (size_t i = 0; i < command.scalars.size(); ++i)
      TITAN_TRY(checkAffine(command.scalars[i], "scalar", i));
    TITAN_TRY(located(collectives_.command(command, trips_)));
    switch (command.kind) {
    case CommandKind::Kernel:
      TITAN_TRY(checkIndex("kernel", command.target, program_.kernels.size()));
      return checkCompared(command, command.target);
    case CommandKind::Library:
      TITAN_TRY(checkIndex("library call", command.target, program_.libraryCalls.size()));
      TITAN_TRY(checkCall(command, program_.libraryCalls[command.target]));
      return checkCompared(command, program_.libraryCalls[command.target].fallback);
    case CommandKind::Copy:
      TITAN_TRY(checkCount(command, 2));
      if (command.operands[0].bytes != command.operands[1].bytes)
        return fail("copies {} bytes to {}", command.operands[1].bytes, command.operands[0].bytes);
      return {};
    case CommandKind::Zero:
      return checkCount(command, 1);
    case CommandKind::Repeat:
      if (command.launch.units < 1 || trips_.size() == maxRepeatDepth)
        return fail("repeat of {} at depth {}: needs at least 1, depth below {}",
                    command.launch.units, trips_.size(), maxRepeatDepth);
      trips_.push_back(command.launch.units);
      return {};
    case CommandKind::EndRepeat:
      if (trips_.empty())
        return fail("end of a repeat that was not begun");
      trips_.pop_back();
      return {};
    case CommandKind::CollectiveStart:
    case CommandKind::CollectiveWait:
      return {};
    }
    return {};
  }

  /// One form, of variables that have a value here.
  Status checkAffine(const Affine& value, const char* what, size_t number) const {
    for (size_t i = 0; i < value.terms.size(); ++i) {
      const auto [variable, stride] = value.terms[i];
      if (stride == 0 || (i > 0 && variable <= value.terms[i - 1].variable))
        return fail("the terms of {} {} are out of order, or 0", what, number);
      if (variable < maxRepeatDepth ? variable >= trips_.size()
                                    : variable - maxRepeatDepth >= ranks_.size())
        return fail("{} {} varies with {} {}, of {}", what, number,
                    variable < maxRepeatDepth ? "repeat" : "mesh axis",
                    variable < maxRepeatDepth ? variable : variable - maxRepeatDepth,
                    variable < maxRepeatDepth ? trips_.size() : ranks_.size());
    }
    return {};
  }

  Status checkOperand(const Operand& operand, size_t number) const {
    TITAN_TRY(checkAffine(operand.address, "operand", number));
    const std::optional<Bounds> bounds = boundsOf(operand.address, trips_, ranks_);
    if (!bounds || !inside(bounds->low, operand.bytes, program_.arenaBytes) ||
        !inside(bounds->high, operand.bytes, program_.arenaBytes))
      return fail("operand {} at {}, {} bytes, leaves the arena of {} bytes", number,
                  operand.address.base, operand.bytes, program_.arenaBytes);
    if (operand.access == Access::Read)
      return {};
    const int64_t end = bounds->high + operand.bytes;
    if (const Protected* met = always_.find(bounds->low, end))
      return fail("operand {} writes to {} '{}'", number, met->what, met->name);
    const Protected* state = isUpdating_ ? nullptr : states_.find(bounds->low, end);
    return state ? fail("operand {} writes to {} '{}' before phase update", number, state->what,
                        state->name)
                 : Status();
  }

  Status checkIndex(const char* what, uint32_t index, size_t count) const {
    if (index >= count)
      return fail("{} {} of {}", what, index, count);
    return {};
  }

  Status checkCount(const Command& command, size_t operands) const {
    if (command.operands.size() != operands)
      return fail("{} operands, expected {}", command.operands.size(), operands);
    return {};
  }

  /// The library reads and writes inside of its operands.
  Status checkCall(const Command& command, const LibraryCall& call) const {
    return call.routine == LibraryRoutine::Gemm ? checkProduct(command, call)
                                                : checkAttention(command, call);
  }

  Status checkWorkspace(const Command& command, const LibraryCall& call) const {
    if (call.workspace > 0 && command.operands.back().bytes < call.workspace)
      return fail("'{}' needs {} bytes of workspace, {} are there", call.label, call.workspace,
                  command.operands.back().bytes);
    return {};
  }

  /// Attention reads and writes inside of its operands.
  Status checkAttention(const Command& command, const LibraryCall& call) const {
    TITAN_TRY(checkCount(command, call.attention.operands + (call.workspace > 0)));
    TITAN_TRY(checkWorkspace(command, call));
    for (const AttentionOperand& used : operandsOf(call.attention)) {
      const Operand& operand = command.operands[used.operand];
      if (!used.elements || operand.bytes / byteSize(used.dtype) < *used.elements)
        return fail("'{}' needs {} elements of {}, {} bytes are there", call.label,
                    used.elements.value_or(-1), used.name, operand.bytes);
      if ((operand.access == Access::Read) != (used.access == Access::Read))
        return fail("'{}' does not use {} as the table says", call.label, used.name);
    }
    return {};
  }

  Status checkProduct(const Command& command, const LibraryCall& call) const {
    const std::vector<ProductOperand> expected = operandsOf(call.gemm);
    TITAN_TRY(checkCount(command, expected.size() + (call.workspace > 0)));
    for (size_t i = 0; i < expected.size(); ++i) {
      const Operand& operand = command.operands[i];
      const auto& [name, elements, dtype, access] = expected[i];
      if (!elements || operand.bytes / byteSize(dtype) < *elements)
        return fail("'{}' needs {} elements of {}, {} bytes are there", call.label,
                    elements.value_or(-1), name, operand.bytes);
      if (operand.access != access)
        return fail("'{}' does not use {} as the table says", call.label, name);
    }
    TITAN_TRY(checkWorkspace(command, call));
    const std::optional<int64_t> units = unitsOf(call.gemm);
    if (!units || command.launch.units != *units)
      return fail("'{}' has {} tiles, the command {} units", call.label, units.value_or(-1),
                  command.launch.units);
    return {};
  }

  const Program& program_;
  const Function& function_;
  CollectiveChecker& collectives_;
  size_t index_ = 0;
  ProtectedRanges always_, states_; ///< states until the update
  bool isUpdating_ = false;
  std::vector<int64_t> trips_; ///< of the open repeats, outermost first
  std::vector<int64_t> ranks_; ///< of the mesh's axes
};

Status checkAttentionCall(const LibraryCall& call, size_t kernels) {
  const Attention& a = call.attention;
  const std::vector<AttentionOperand> used = operandsOf(a);
  const bool named = std::ranges::all_of(
      used, [&](const AttentionOperand& operand) { return operand.operand < a.operands; });
  if (call.fallback < kernels && call.workspace >= 0 && named && a.keyHeads >= 1 &&
      a.heads % a.keyHeads == 0 && (a.element == DType::F32 || a.element == DType::BF16))
    return {};
  return Error::badInput("damaged program: library call '{}' has {} operands, {} heads with {} of "
                         "keys, {} bytes of workspace and fallback {} of {} kernels",
                         call.label, a.operands, a.heads, a.keyHeads, call.workspace, call.fallback,
                         kernels);
}

/// Tiles that exist, and a fallback. Extents are compared with operands where commands call it.
Status checkLibraryCall(const LibraryCall& call, size_t kernels) {
  if (call.routine == LibraryRoutine::Attention)
    return checkAttentionCall(call, kernels);
  const Gemm& gemm = call.gemm;
  if (call.fallback < kernels && gemm.tileM >= 1 && gemm.tileN >= 1 && call.workspace >= 0)
    return {};
  return Error::badInput("damaged program: library call '{}' has tiles of {} x {}, {} bytes of "
                         "workspace and fallback {} of {} kernels",
                         call.label, gemm.tileM, gemm.tileN, call.workspace, call.fallback,
                         kernels);
}

/// The bytes of a tensor; nothing for a negative extent or on overflow.
std::optional<int64_t> bytesOf(const Shape& shape, DType dtype) {
  int64_t bytes = byteSize(dtype);
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes))
      return std::nullopt;
  return bytes;
}

Status checkMesh(std::span<const MeshAxis> mesh) {
  int64_t ranks = 1;
  for (const MeshAxis& axis : mesh)
    if (axis.ranks < 1 || __builtin_mul_overflow(ranks, axis.ranks, &ranks))
      return Error::badInput("damaged program: mesh axis '{}' has {} ranks", axis.name, axis.ranks);
  return {};
}

/// Whole pages of the arena.
Status checkStaging(const Program& program) {
  const int64_t offset = program.stagingOffset, bytes = program.stagingBytes;
  if (inside(offset, bytes, program.arenaBytes) && offset % stagingAlignment == 0 &&
      bytes % stagingAlignment == 0 && (bytes > 0 || offset == 0))
    return {};
  return Error::badInput("damaged program: staging of {} bytes at {} of an arena of {}", bytes,
                         offset, program.arenaBytes);
}

/// What a state starts from: stored tensors that its sources cut to it, or a rule.
Status checkInit(const State& state) {
  const bool isStored =
      state.init.kind == Init::Kind::Payload || state.init.kind == Init::Kind::External;
  std::vector<Shape> shapes;
  for (const StoredRange& range : state.init.stored) {
    if (range.offset < 0 || range.bytes != bytesOf(range.shape, state.dtype))
      return Error::badInput("damaged program: state '{}' is stored as {} in {} bytes at {}",
                             state.name, toString(range.shape), range.bytes, range.offset);
    shapes.push_back(range.shape);
  }
  if (isStored == shapes.empty())
    return Error::badInput("damaged program: state '{}' starts from {} stored tensors", state.name,
                           shapes.size());
  if (isStored && state.sources.empty() && (shapes.size() > 1 || shapes.front() != state.shape))
    return Error::badInput("damaged program: state '{}' of {} is stored as {}", state.name,
                           toString(state.shape), toString(shapes.front()));
  if (state.sources.empty())
    return {};
  if (const Status status = checkSources(state.sources, state.shape, shapes); !status.ok())
    return Error::badInput("damaged program: the sources of state '{}' {}", state.name,
                           status.error().message());
  return {};
}

/// States lie in the arena, have the local shape of their placement, and names of their own.
Status checkStates(const Program& program) {
  std::set<std::tuple<StateKind, std::string_view, std::string_view>> names;
  for (const State& state : program.states) {
    TITAN_TRY(checkRange("state", state.name, state.offset, state.bytes, program.arenaBytes));
    if (!bytesOf(state.shape, state.dtype) ||
        state.local != localShape(state.shape, state.placement, program.mesh) ||
        state.bytes != bytesOf(state.local, state.dtype))
      return Error::badInput("damaged program: state '{}' of {} has {} bytes as {} on a rank",
                             state.name, toString(state.shape), state.bytes, toString(state.local));
    TITAN_TRY(checkInit(state));
    if (state.profile.empty() == (state.kind == StateKind::Ema))
      return Error::badInput("damaged program: state '{}' has profile '{}', as averages do",
                             state.name, state.profile);
    if (!names.emplace(state.kind, state.profile, state.name).second)
      return Error::badInput("damaged program: two states '{}' of one kind and profile",
                             state.name);
  }
  return {};
}

/// Grids that a card can launch; all kernels have them, or none.
Status checkLaunches(std::span<const Kernel> kernels) {
  for (const Kernel& kernel : kernels) {
    if (kernel.launches.empty() != kernels[0].launches.empty())
      return Error::badInput("damaged program: kernels '{}' and '{}' are for two kinds of device",
                             kernels[0].symbol, kernel.symbol);
    for (const GridLaunch& launch : kernel.launches)
      if (launch.entry.empty() || launch.blocks < 1 || launch.blocks > GridLaunch::mostBlocks ||
          launch.threads < 1 || launch.threads > GridLaunch::mostThreads ||
          launch.sharedBytes < 0 || launch.sharedBytes > GridLaunch::mostSharedBytes)
        return Error::badInput("damaged program: kernel '{}' launches '{}' on {} blocks of {} "
                               "threads and {} bytes",
                               kernel.symbol, launch.entry, launch.blocks, launch.threads,
                               launch.sharedBytes);
  }
  return {};
}

Status checkComparisons(const Program& program) {
  if (!program.comparisons.empty() && program.comparisons.size() != program.kernels.size())
    return Error::badInput("damaged program: {} comparisons of {} kernels",
                           program.comparisons.size(), program.kernels.size());
  for (const Comparison& comparison : program.comparisons) {
    const bool isBounded =
        std::ranges::any_of(comparison.operands, [](const ComparedOperand& operand) {
          return operand.tolerance == Tolerance::Bounded;
        });
    if (isBounded != (comparison.boundUnits > 0) || comparison.boundUnits < 0)
      return Error::badInput("damaged program: a comparison has {} units of bounds",
                             comparison.boundUnits);
  }
  return {};
}

Status checkImage(const Image& image) {
  const bool isDigest = image.digest.size() == 32 &&
                        image.digest.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (image.offset >= 0 && image.bytes >= 0 && isDigest)
    return {};
  return Error::badInput("damaged program: an image for '{}' of {} bytes at {} of the payload, "
                         "digest '{}'",
                         image.arch, image.bytes, image.offset, image.digest);
}

/// What all programs of a job have in common of a state.
State commonPart(State state) {
  state.local.clear();
  state.placement.clear();
  state.offset = state.bytes = 0;
  return state;
}

/// What keeps the programs from sharing checkpoints; empty: nothing.
std::string differenceOf(const Program& a, const Program& b) {
  if (a.optimizer != b.optimizer)
    return fmt::format("optimizers '{}' and '{}'", a.optimizer, b.optimizer);
  if (a.recipe != b.recipe)
    return "two recipes";
  for (size_t i = 0; i < std::max(a.states.size(), b.states.size()); ++i)
    if (i >= a.states.size() || i >= b.states.size() ||
        commonPart(a.states[i]) != commonPart(b.states[i]))
      return fmt::format("different states: '{}' and '{}'",
                         i < a.states.size() ? a.states[i].name : "",
                         i < b.states.size() ? b.states[i].name : "");
  return {};
}

} // namespace

Status verifyJob(std::span<const Program> programs) {
  for (size_t i = 0; i < programs.size(); ++i) {
    TITAN_TRY(verify(programs[i]));
    if (const std::string difference = differenceOf(programs[0], programs[i]); !difference.empty())
      return Error::badInput("damaged job: its programs for {} and {} have {}",
                             programs[0].target.kind, programs[i].target.kind, difference);
  }
  return {};
}

Status verify(const Program& program) {
  const int64_t arena = program.arenaBytes;
  if (arena < 0)
    return Error::badInput("damaged program: an arena of {} bytes", arena);
  TITAN_TRY(checkMesh(program.mesh));
  TITAN_TRY(checkStaging(program));
  TITAN_TRY(checkStates(program));
  for (const Constant& constant : program.constants) {
    TITAN_TRY(checkRange("constant", "", constant.offset, constant.bytes, arena));
    if (constant.payloadOffset < 0)
      return Error::badInput("damaged program: a constant at {} of the payload",
                             constant.payloadOffset);
  }
  TITAN_TRY(checkLaunches(program.kernels));
  TITAN_TRY(checkComparisons(program));
  for (const Image& image : program.images)
    TITAN_TRY(checkImage(image));
  for (const LibraryCall& call : program.libraryCalls)
    TITAN_TRY(checkLibraryCall(call, program.kernels.size()));
  CollectiveChecker collectives(program);
  TITAN_TRY(collectives.checkTable());
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
    if (function.modelFlops < 0)
      return Error::badInput("damaged program: function '{}' asks for {} FLOP", function.name,
                             function.modelFlops);
    TITAN_TRY(CommandChecker(program, function, collectives).check());
  }
  return collectives.endProgram();
}

} // namespace titan
