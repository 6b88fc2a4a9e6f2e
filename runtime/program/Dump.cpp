// The text form of a Program, for people: one command a line, indented by the repeats around it.
#include "runtime/program/Text.h"

#include <iterator>

namespace titan {

namespace {

using Text = std::back_insert_iterator<std::string>;

/// "4096 + 128*i0 + 64*r1": repeat counters, coordinates on the mesh.
std::string toText(const Affine& affine) {
  std::string text = std::to_string(affine.base);
  for (const auto [variable, stride] : affine.terms)
    text += variable < maxRepeatDepth ? fmt::format(" + {}*i{}", stride, variable)
                                      : fmt::format(" + {}*r{}", stride, variable - maxRepeatDepth);
  return text;
}

const char* toText(Access access) {
  switch (access) {
  case Access::Read:
    return "";
  case Access::Write:
    return "out ";
  case Access::Both:
    return "inout ";
  }
  return "";
}

/// "out 4096 + 128*i0 : 256": how it is used, where, how many bytes.
std::string toText(const Operand& operand) {
  return fmt::format("{}{} : {}", toText(operand.access), toText(operand.address), operand.bytes);
}

/// "F32 [1, 784]", of the whole tensor.
std::string toText(const CollectivePiece& piece) {
  return fmt::format("{} [{}, {}]", name(piece.dtype), piece.outer, piece.inner);
}

template <typename T> std::string toText(const std::vector<T>& list) {
  std::string text;
  for (const T& element : list)
    text += (text.empty() ? "" : ", ") + toText(element);
  return text;
}

const char* toText(Binding::Role role) {
  switch (role) {
  case Binding::Role::Input:
    return "input";
  case Binding::Role::Control:
    return "control";
  case Binding::Role::Metric:
    return "metric";
  case Binding::Role::Output:
    return "output";
  }
  return "";
}

/// " at 64", or with a file's name " 'w.bin' at 64"; several with a comma between them.
std::string toText(const std::vector<StoredRange>& stored) {
  std::string text;
  for (const StoredRange& range : stored)
    text += fmt::format("{}{} at {}", text.empty() ? "" : ",",
                        range.path.empty() ? "" : " '" + range.path + "'", range.offset);
  return text;
}

/// " from 'W' at [4, 0] from [0, 8, 0] extent [4, 3] dims [1, 2]".
std::string toText(const std::vector<TensorSource>& sources) {
  std::string text;
  for (const TensorSource& source : sources) {
    text += fmt::format("{} '{}'", text.empty() ? " from" : ",", source.initializer);
    const Piece& piece = source.piece;
    for (const auto& [name, values] : {std::pair("at", &piece.at),
                                       {"from", &piece.from},
                                       {"extent", &piece.extent},
                                       {"dims", &piece.dims}})
      if (!values->empty())
        text += fmt::format(" {} {}", name, toString(*values));
  }
  return text;
}

std::string toText(const Init& init) {
  switch (init.kind) {
  case Init::Kind::Payload:
    return "payload" + toText(init.stored);
  case Init::Kind::External:
    return "file" + toText(init.stored);
  case Init::Kind::Constant:
    return fmt::format("{}", init.a);
  case Init::Kind::Normal:
    return fmt::format("normal({}, {})", init.a, init.b);
  case Init::Kind::Uniform:
    return fmt::format("uniform({}, {})", init.a, init.b);
  }
  return "";
}

std::string toText(const Gemm& gemm) {
  return fmt::format("{}C[{}, {}] {} A{}[{}] * B{}[{}]{}{}, {}{}{}, tile {} x {}",
                     gemm.batch > 1 ? fmt::format("{} x ", gemm.batch) : "", gemm.m, gemm.n,
                     gemm.accumulate ? "+=" : "=", gemm.transposeA ? "^T" : "", gemm.k,
                     gemm.transposeB ? "^T" : "", gemm.k, gemm.bias ? " + bias" : "",
                     gemm.relu ? ", relu" : "", name(gemm.a), name(gemm.b), name(gemm.c),
                     gemm.tileM, gemm.tileN);
}

std::string toText(const Attention& a) {
  return fmt::format("attention{} [{}, {} / {}, {}, {}, {} / {}], {}{}",
                     a.backward ? " backward" : "", a.batch, a.heads, a.keyHeads, a.queries, a.keys,
                     a.width, a.valueWidth, name(a.element), a.causal ? ", causal" : "");
}

std::string toText(const LibraryCall& call) {
  return call.routine == LibraryRoutine::Gemm ? toText(call.gemm) : toText(call.attention);
}

std::string toText(const Collective& collective, std::span<const MeshAxis> mesh) {
  const bool sums = collective.kind != CollectiveKind::AllGather;
  std::string axes;
  for (uint8_t axis : collective.axes)
    axes += (axes.empty() ? "" : ", ") + mesh[axis].name;
  return fmt::format("{}{} over {} : {} : {}", toString(collective.kind),
                     !sums                                ? ""
                     : collective.order == SumOrder::Rank ? " by rank"
                                                          : " as a tree",
                     axes, toText(collective.pieces), collective.label);
}

/// Do grids say how kernels are launched?
bool isForCards(const Program& program) {
  return !program.kernels.empty() && !program.kernels[0].launches.empty();
}

/// What the command does, without its operands.
std::string head(const Program& program, const Command& command) {
  switch (command.kind) {
  case CommandKind::Kernel:
    return fmt::format("kernel {}", command.target < program.kernels.size()
                                        ? program.kernels[command.target].symbol
                                        : "?");
  case CommandKind::Library:
    return fmt::format("library #{}", command.target);
  case CommandKind::Copy:
    return "copy";
  case CommandKind::Zero:
    return "zero";
  case CommandKind::Repeat:
    return fmt::format("repeat {}", command.launch.units);
  case CommandKind::EndRepeat:
    return "end";
  case CommandKind::CollectiveStart:
    return fmt::format("start collective #{}", command.target);
  case CommandKind::CollectiveWait:
    return fmt::format("wait for collective #{}", command.target);
  }
  return "";
}

void dumpCommand(Text out, const Program& program, const Command& command, size_t index,
                 size_t depth) {
  fmt::format_to(out, "  {:4} {:8} {:{}}{}", index, nameOf(command.phase), "", 2 * depth,
                 head(program, command));
  if (!command.operands.empty())
    fmt::format_to(out, " ({})", toText(command.operands));
  if (!command.scalars.empty())
    fmt::format_to(out, " [{}]", toText(command.scalars));
  if (command.kind == CommandKind::Kernel || command.kind == CommandKind::Library) {
    if (isForCards(program))
      fmt::format_to(out, " flops {} bytes {}", command.flops, command.bytes);
    else
      fmt::format_to(out, " units {} grain {} flops {} bytes {}", command.launch.units,
                     command.launch.grain, command.flops, command.bytes);
  }
  fmt::format_to(out, "\n");
}

void dumpFunction(Text out, const Program& program, const Function& function) {
  fmt::format_to(out, "function {} model flops {}\n", function.name, function.modelFlops);
  for (const Binding& binding : function.bindings)
    fmt::format_to(out, "  {} {} : {} {} at {}, {} bytes\n", toText(binding.role), binding.name,
                   name(binding.dtype), toString(binding.shape), binding.offset, binding.bytes);
  for (const LiveRange& range : function.temporaries)
    fmt::format_to(out, "  temporary at {}, {} bytes, commands {} to {}\n", range.offset,
                   range.bytes, range.first, range.last);
  size_t depth = 0;
  for (size_t i = 0; i < function.commands.size(); ++i) {
    const Command& command = function.commands[i];
    if (command.kind == CommandKind::EndRepeat && depth > 0)
      --depth;
    dumpCommand(out, program, command, i, depth);
    if (command.kind == CommandKind::Repeat)
      ++depth;
  }
}

} // namespace

std::string dump(const Program& program) {
  std::string text;
  Text out(text);
  fmt::format_to(out,
                 "program {} target {}{}{} arena {} bytes (state {}, bindings {}, "
                 "temporaries {})\n",
                 program.model, program.target.kind, program.target.cpu.empty() ? "" : " cpu ",
                 program.target.cpu, program.arenaBytes, program.stateBytes, program.bindingBytes,
                 program.temporaryBytes);
  if (program.stagingBytes > 0)
    fmt::format_to(out, "staging at {}, {} bytes\n", program.stagingOffset, program.stagingBytes);
  for (const State& state : program.states)
    fmt::format_to(out, "{} {} : {} {} at {}, {} bytes{}, init {}{}\n", nameOf(state.kind),
                   state.name, name(state.dtype), toString(state.shape), state.offset, state.bytes,
                   state.trainable ? ", trainable" : "", toText(state.init), toText(state.sources));
  for (const Constant& constant : program.constants)
    fmt::format_to(out, "constant at {}, {} bytes, payload at {}\n", constant.offset,
                   constant.bytes, constant.payloadOffset);
  for (const Kernel& kernel : program.kernels) {
    fmt::format_to(out, "kernel {} : {}\n", kernel.symbol, kernel.label);
    for (const GridLaunch& launch : kernel.launches)
      fmt::format_to(out, "  launch {} blocks {} threads {} shared {}\n", launch.entry,
                     launch.blocks, launch.threads, launch.sharedBytes);
  }
  for (const Image& image : program.images)
    fmt::format_to(out, "image {} for {}, {} bytes, digest {}\n", nameOf(image.kind), image.arch,
                   image.bytes, image.digest);
  for (size_t i = 0; i < program.libraryCalls.size(); ++i)
    fmt::format_to(out, "library #{} {} : {}\n", i, toText(program.libraryCalls[i]),
                   program.libraryCalls[i].label);
  for (size_t i = 0; i < program.collectives.size(); ++i)
    fmt::format_to(out, "collective #{} {}\n", i, toText(program.collectives[i], program.mesh));
  for (const Function& function : program.functions)
    dumpFunction(out, program, function);
  return text;
}

} // namespace titan
