#include "runtime/device/cuda/testing/LinearPtx.h"

#include "runtime/device/testing/LinearProgram.h"
#include "runtime/program/Text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace titan::testing {
namespace {

using S = LinearShape;
constexpr int weightElements = S::outputs * S::features;
constexpr int gradientElements = weightElements + S::outputs;
constexpr int f = sizeof(float);

/// Lines of PTX.
class Lines {
public:
  template <typename... Args> void add(fmt::format_string<Args...> format, Args&&... args) {
    text_ += "  " + fmt::format(format, std::forward<Args>(args)...) + ";\n";
  }
  /// %d{into} = the address of `pointer` + index register * bytes.
  void address(int into, int pointer, const char* index, int bytes) {
    add("mul.wide.u32 %d{}, {}, {}", into, index, bytes);
    add("add.s64 %d{}, %d{}, %p{}", into, into, pointer);
  }
  void label(const char* name) { text_ += fmt::format("{}:\n", name); }
  const std::string& text() const { return text_; }

private:
  std::string text_;
};

std::string constant(float value) {
  return fmt::format("0f{:08X}", std::bit_cast<uint32_t>(value));
}

/// One thread an element of C[m, n] (+)= op(A) op(B) (+ bias).
std::string product(int m, int n, int k, bool transposeA, bool transposeB, bool accumulate,
                    bool bias) {
  Lines lines;
  lines.add("mov.u32 %r0, %tid.x");
  lines.add("div.u32 %r1, %r0, {}", n); // row
  lines.add("rem.u32 %r2, %r0, {}", n); // column
  lines.address(0, 0, "%r1", transposeA ? f : k * f);
  lines.address(1, 1, "%r2", transposeB ? k * f : f);
  lines.address(2, 2, "%r0", f);
  lines.add("mov.f32 %f0, {}", constant(0));
  for (int x = 0; x < k; ++x) {
    lines.add("ld.global.f32 %f1, [%d0+{}]", x * f * (transposeA ? m : 1));
    lines.add("ld.global.f32 %f2, [%d1+{}]", x * f * (transposeB ? 1 : n));
    lines.add("mul.rn.f32 %f3, %f1, %f2");
    lines.add("add.rn.f32 %f0, %f0, %f3");
  }
  if (bias) {
    lines.address(3, 3, "%r2", f);
    lines.add("ld.global.f32 %f1, [%d3]");
    lines.add("add.rn.f32 %f0, %f0, %f1");
  }
  if (accumulate) {
    lines.add("ld.global.f32 %f1, [%d2]");
    lines.add("add.rn.f32 %f0, %f1, %f0");
  }
  lines.add("st.global.f32 [%d2], %f0");
  return lines.text();
}

std::string difference() {
  Lines lines;
  lines.add("ld.global.f32 %f0, [%p3]");
  for (int i = 0; i < S::micro * S::outputs; ++i) {
    lines.add("ld.global.f32 %f1, [%p0+{}]", i * f);
    lines.add("ld.global.f32 %f2, [%p1+{}]", i * f);
    lines.add("sub.rn.f32 %f1, %f1, %f2");
    lines.add("add.rn.f32 %f2, %f1, %f1");
    lines.add("st.global.f32 [%p2+{}], %f2", i * f);
    lines.add("mul.rn.f32 %f1, %f1, %f1");
    lines.add("add.rn.f32 %f0, %f0, %f1");
  }
  lines.add("st.global.f32 [%p3], %f0");
  return lines.text();
}

/// Adds rows [first, first + 2): the kernel is two launches.
std::string biasGradient(int first) {
  Lines lines;
  lines.add("mov.u32 %r0, %tid.x");
  lines.address(0, 0, "%r0", f);
  lines.address(1, 1, "%r0", f);
  lines.add("ld.global.f32 %f0, [%d1]");
  for (int row = first; row < first + 2; ++row) {
    lines.add("ld.global.f32 %f1, [%d0+{}]", row * static_cast<int>(S::outputs) * f);
    lines.add("add.rn.f32 %f0, %f0, %f1");
  }
  lines.add("st.global.f32 [%d1], %f0");
  return lines.text();
}

std::string finish() {
  constexpr int count = S::batch * S::outputs;
  Lines lines;
  lines.add("mov.f32 %f0, {}", constant(0));
  for (int i = 0; i < gradientElements; ++i) {
    lines.add("ld.global.f32 %f1, [%p0+{}]", i * f);
    lines.add("mul.rn.f32 %f1, %f1, %f1");
    lines.add("add.rn.f32 %f0, %f0, %f1");
  }
  lines.add("sqrt.rn.f32 %f0, %f0");
  lines.add("div.rn.f32 %f0, %f0, {}", constant(count)); // norm
  lines.add("ld.global.f32 %f1, [%p1]");
  lines.add("div.rn.f32 %f1, %f1, {}", constant(count)); // loss
  lines.add("abs.f32 %f2, %f0");
  lines.add("abs.f32 %f3, %f1");
  lines.add("setp.lt.f32 %q0, %f2, 0f7F800000");
  lines.add("setp.lt.f32 %q1, %f3, 0f7F800000");
  lines.add("and.pred %q0, %q0, %q1");
  lines.add("selp.f32 %f2, {}, 0f7FC00000, %q0", constant(1.0f / count));
  lines.add("st.global.f32 [%p3], %f2");
  lines.add("st.global.f32 [%p4], %f1");
  lines.add("st.global.f32 [%p5], %f0");
  lines.add("ld.global.f32 %f3, [%p2]");
  lines.add("st.global.f32 [%p6], %f3");
  lines.add("mov.u64 %d0, {}", count);
  lines.add("st.global.u64 [%p7], %d0");
  return lines.text();
}

std::string update() {
  Lines lines;
  lines.add("mov.u32 %r0, %tid.x");
  lines.add("ld.global.f32 %f0, [%p1]");
  lines.add("setp.nan.f32 %q0, %f0, %f0");
  lines.add("@%q0 bra skip");
  lines.address(0, 0, "%r0", f);
  lines.address(1, 3, "%r0", f);
  lines.address(2, 4, "%r0", f);
  lines.add("ld.global.f32 %f1, [%d2]");
  lines.add("mul.rn.f32 %f1, %f1, {}", constant(0.9f));
  lines.add("ld.global.f32 %f2, [%d0]");
  lines.add("mul.rn.f32 %f2, %f2, %f0");
  lines.add("add.rn.f32 %f1, %f1, %f2");
  lines.add("st.global.f32 [%d2], %f1");
  lines.add("ld.global.f32 %f2, [%p2]");
  lines.add("mul.rn.f32 %f2, %f2, %f1");
  lines.add("ld.global.f32 %f3, [%d1]");
  lines.add("sub.rn.f32 %f3, %f3, %f2");
  lines.add("st.global.f32 [%d1], %f3");
  lines.label("skip");
  return lines.text();
}

std::string countStep() {
  Lines lines;
  lines.add("ld.global.f32 %f0, [%p0]");
  lines.add("setp.nan.f32 %q0, %f0, %f0");
  lines.add("mov.u64 %d4, 1");
  lines.add("selp.b64 %d5, 0, 1, %q0");
  lines.add("selp.b64 %d6, 1, 0, %q0");
  const std::pair<int, const char*> counters[] = {{1, "%d4"}, {2, "%d5"}, {3, "%p5"}, {4, "%d6"}};
  for (const auto& [counter, more] : counters) {
    lines.add("ld.global.u64 %d0, [%p{}]", counter);
    lines.add("add.s64 %d0, %d0, {}", more);
    lines.add("st.global.u64 [%p{}], %d0", counter);
  }
  return lines.text();
}

std::string evaluate() {
  Lines lines;
  lines.add("ld.global.u64 %d0, [%p2]");
  lines.add("mul.lo.s64 %d0, %d0, {}", static_cast<int>(S::outputs)); // elements
  lines.add("st.global.u64 [%p4], %d0");
  lines.add("mov.f32 %f0, {}", constant(0));
  lines.add("mov.u64 %d1, 0");
  lines.add("mov.u64 %d2, %p0");
  lines.add("mov.u64 %d3, %p1");
  lines.label("loop");
  lines.add("setp.ge.s64 %q0, %d1, %d0");
  lines.add("@%q0 bra done");
  lines.add("ld.global.f32 %f1, [%d2]");
  lines.add("ld.global.f32 %f2, [%d3]");
  lines.add("sub.rn.f32 %f1, %f1, %f2");
  lines.add("mul.rn.f32 %f1, %f1, %f1");
  lines.add("add.rn.f32 %f0, %f0, %f1");
  lines.add("add.s64 %d1, %d1, 1");
  lines.add("add.s64 %d2, %d2, {}", f);
  lines.add("add.s64 %d3, %d3, {}", f);
  lines.add("bra.uni loop");
  lines.label("done");
  lines.add("st.global.f32 [%p3], %f0");
  return lines.text();
}

std::string linearPtx() {
  std::string text = ptxHeader();
  const auto entry = [&](const char* name, const std::string& operands, int scalars, int threads,
                         const std::string& body) {
    text += ptxEntry(std::string("titan_kernel_") + name, operands, scalars, threads, body);
  };
  constexpr int micro = S::micro, outputs = S::outputs, features = S::features;
  entry("0", "read 128, read 96, write 48, read 12", 0, micro * outputs,
        product(micro, outputs, features, false, true, false, true));
  entry("1", "read 48, read 128, both 96", 0, weightElements,
        product(outputs, features, micro, true, false, true, false));
  entry("2", "read 48, read 48, write 48, both 4", 0, 1, difference());
  entry("3_0", "read 48, both 12", 0, outputs, biasGradient(0));
  entry("3_1", "read 48, both 12", 0, outputs, biasGradient(2));
  entry("4", "read 108, read 4, read 4, write 4, write 4, write 4, write 4, write 8", 0, 1,
        finish());
  entry("5", "read 108, read 4, read 4, both 108, both 108", 0, gradientElements, update());
  entry("6", "read 4, both 8, both 8, both 8, both 8", 1, 1, countStep());
  entry("7", "read 48, read 48, read 8, write 4, write 8", 0, 1, evaluate());
  return text;
}

} // namespace

std::string ptxHeader(const char* version, const char* target) {
  return fmt::format(".version {}\n.target {}\n.address_size 64\n\n", version, target);
}

std::string ptxEntry(const std::string& name, const std::string& operands, int scalars, int threads,
                     const std::string& body) {
  const auto buffers =
      operands.empty() ? 0 : static_cast<int>(std::ranges::count(operands, ',')) + 1;
  std::string parameters, loads;
  for (int i = 0; i < buffers + scalars; ++i) {
    parameters += fmt::format("{}  .param .u64 {}_param_{}", i ? ",\n" : "", name, i);
    loads += fmt::format("  ld.param.u64 %p{}, [{}_param_{}];\n", i, name, i);
  }
  return fmt::format("// titan: {0} operands({1}) scalars({2})\n"
                     ".visible .entry {0}(\n{3}\n)\n.reqntid {4}, 1, 1\n{{\n"
                     "  .reg .pred %q<64>;\n  .reg .f32 %f<64>;\n  .reg .b32 %r<64>;\n"
                     "  .reg .b64 %d<64>;\n  .reg .b64 %p<16>;\n{5}{6}  ret;\n}}\n\n",
                     name, operands, scalars, parameters, threads, loads, body);
}

Image ptxImage(const std::string& ptx, int64_t offset) {
  return {Image::Kind::Ptx, "sm_80", offset, static_cast<int64_t>(ptx.size()), digest128(ptx)};
}

Program linearCudaProgram(const std::string& recipe) {
  Program program = linearProgram(recipe);
  program.target = {"cuda", "", {}};
  // Blocks of each entry point: one.
  const std::vector<std::vector<std::pair<const char*, int64_t>>> launches = {
      {{"0", S::micro * S::outputs}},
      {{"1", weightElements}},
      {{"2", 1}},
      {{"3_0", S::outputs}, {"3_1", S::outputs}},
      {{"4", 1}},
      {{"5", gradientElements}},
      {{"6", 1}},
      {{"7", 1}}};
  for (size_t i = 0; i < launches.size(); ++i)
    for (const auto& [entry, threads] : launches[i])
      program.kernels[i].launches.push_back({std::string("titan_kernel_") + entry, 1, threads, 0});
  program.images = {ptxImage(linearPtx(), static_cast<int64_t>(linearPayload().size()))};
  return program;
}

std::string linearCudaPayload() { return linearPayload() + linearPtx(); }

Program withWorkspace(Program program, int64_t bytes) {
  constexpr int64_t alignment = 256;
  const int64_t offset = (program.arenaBytes + alignment - 1) / alignment * alignment;
  program.arenaBytes = offset + bytes;
  for (LibraryCall& call : program.libraryCalls)
    call.workspace = bytes;
  for (Function& function : program.functions) {
    for (Command& command : function.commands)
      if (command.kind == CommandKind::Library)
        command.operands.push_back({{offset}, bytes, Access::Write});
    function.temporaries.push_back(
        {offset, bytes, 0, static_cast<uint32_t>(function.commands.size() - 1)});
  }
  return program;
}

Program withAttention(Program program, std::string& payload, int64_t workspace) {
  constexpr int64_t line = 256;
  Attention a;
  a.batch = a.heads = a.keyHeads = 2;
  a.queries = a.keys = 4;
  a.width = a.valueWidth = 8;
  const int64_t elements = a.batch * a.heads * a.queries * a.width;
  const auto view = [&](uint32_t operand) {
    return AttentionView{operand, 0, a.queries * a.heads * a.width, a.heads * a.width, a.width};
  };
  a.query = view(0), a.key = view(1), a.value = view(2), a.result = view(3);
  a.logSumExp = 4, a.operands = 5;

  // 4 bytes of the value a thread, and a statistic where there is one.
  const std::string entry = "titan_attention";
  const std::string code = ptxEntry(
      entry, "read 256, read 256, read 256, write 256, write 64", 0, 64,
      "  mov.u32 %r0, %tid.x;\n  mul.wide.u32 %d0, %r0, 4;\n  add.s64 %d1, %p2, %d0;\n"
      "  add.s64 %d2, %p3, %d0;\n  ld.global.b32 %r1, [%d1];\n  st.global.b32 [%d2], %r1;\n"
      "  setp.lt.u32 %q0, %r0, 16;\n  @!%q0 bra DONE;\n  add.s64 %d3, %p4, %d0;\n"
      "  mov.b32 %r2, 0x3f3f3f3f;\n  st.global.b32 [%d3], %r2;\nDONE:\n");
  payload += code;
  Image& image = program.images.front();
  image.bytes += static_cast<int64_t>(code.size());
  image.digest = digest128(std::string_view(payload).substr(static_cast<size_t>(image.offset)));
  program.kernels.push_back({entry, "attention forward", {{entry, 1, 64, 0}}});

  Command command;
  command.kind = CommandKind::Library;
  command.target = static_cast<uint32_t>(program.libraryCalls.size());
  int64_t offset = (program.arenaBytes + line - 1) / line * line;
  std::vector<LiveRange> ranges;
  const auto add = [&](int64_t bytes, Access access) {
    if (bytes == 0)
      return;
    command.operands.push_back({{offset}, bytes, access});
    ranges.push_back({offset, bytes, 0, 0});
    offset += (bytes + line - 1) / line * line;
  };
  for (int i = 0; i < 3; ++i)
    add(2 * elements, Access::Read);
  add(2 * elements, Access::Write);
  add(4 * a.batch * a.heads * a.queries, Access::Write);
  add(workspace, Access::Write);
  program.arenaBytes = offset;
  LibraryCall call;
  call.routine = LibraryRoutine::Attention;
  call.attention = a;
  call.label = "attention forward";
  call.fallback = static_cast<uint32_t>(program.kernels.size() - 1);
  call.workspace = workspace;
  program.libraryCalls.push_back(call);

  Function& function = program.functions.front();
  for (LiveRange& range : function.temporaries)
    ++range.first, ++range.last;
  function.commands.insert(function.commands.begin(), command);
  function.temporaries.insert(function.temporaries.end(), ranges.begin(), ranges.end());
  return program;
}

Program ptxProgram(const std::string& ptx, std::vector<std::string> entries) {
  Program program;
  program.target = {"cuda", "", {}};
  program.arenaBytes = 4096;
  for (const std::string& entry : entries)
    program.kernels.push_back({entry, entry, {{entry, 1, 1, 0}}});
  program.images = {ptxImage(ptx)};
  Function step;
  step.name = "step";
  program.functions = {step};
  return program;
}

} // namespace titan::testing
