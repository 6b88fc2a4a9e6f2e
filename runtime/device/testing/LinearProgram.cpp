#include "runtime/device/testing/LinearProgram.h"

#include "runtime/program/Random.h"
#include "runtime/program/Recipe.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace titan::testing {
namespace {

using S = LinearShape;
constexpr int64_t weightElements = S::outputs * S::features;
constexpr int64_t gradientElements = weightElements + S::outputs;

float* floats(char* address) { return reinterpret_cast<float*>(address); }
int64_t& integer(char* address) { return *reinterpret_cast<int64_t*>(address); }

/// Stand-in for a product without epilogue: C[m, n] (+)= op(A) op(B), one unit a row of C.
template <int64_t m, int64_t n, int64_t k, bool transposeA, bool transposeB, bool accumulate,
          bool bias>
void product(char* const* operands, const int64_t*, int64_t begin, int64_t end) {
  const float *a = floats(operands[0]), *b = floats(operands[1]);
  float* c = floats(operands[2]);
  for (int64_t unit = begin; unit < end; ++unit)
    for (int64_t i = 2 * unit; i < std::min(m, 2 * unit + 2); ++i) // the grid's tiles have two rows
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t x = 0; x < k; ++x)
          sum += a[transposeA ? x * m + i : i * k + x] * b[transposeB ? j * k + x : x * n + j];
        if (bias)
          sum += floats(operands[3])[j];
        c[i * n + j] = accumulate ? c[i * n + j] + sum : sum;
      }
}

/// prediction, targets, dy, loss sum (one float): dy = 2 (prediction - target), loss sum += their
/// squares.
void difference(char* const* o, const int64_t*, int64_t, int64_t) {
  const float *prediction = floats(o[0]), *target = floats(o[1]);
  float *dy = floats(o[2]), *loss = floats(o[3]);
  for (int64_t i = 0; i < S::micro * S::outputs; ++i) {
    float difference = prediction[i] - target[i];
    dy[i] = 2 * difference;
    *loss += difference * difference;
  }
}

/// dy, db: column sums added, one unit a column.
void biasGradient(char* const* o, const int64_t*, int64_t begin, int64_t end) {
  for (int64_t j = begin; j < end; ++j)
    for (int64_t i = 0; i < S::micro; ++i)
      floats(o[1])[j] += floats(o[0])[i * S::outputs + j];
}

/// gradient (weight, then bias), loss sum, lr control, step; writes factor (1/count, NaN to skip)
/// and the metrics.
void finish(char* const* o, const int64_t*, int64_t, int64_t) {
  constexpr int64_t count = S::batch * S::outputs;
  float sum = 0;
  for (int64_t i = 0; i < gradientElements; ++i)
    sum += floats(o[0])[i] * floats(o[0])[i];
  float norm = std::sqrt(sum) / count, loss = *floats(o[1]) / count;
  *floats(o[3]) = std::isfinite(norm) && std::isfinite(loss) ? 1.0f / count : std::nanf("");
  *floats(o[4]) = loss;
  *floats(o[5]) = norm;
  *floats(o[6]) = *floats(o[2]);
  integer(o[7]) = count;
}

/// gradient, factor, lr, parameters, momentum: one unit an element.
void update(char* const* o, const int64_t*, int64_t begin, int64_t end) {
  const float factor = *floats(o[1]);
  if (std::isnan(factor))
    return;
  for (int64_t i = begin; i < end; ++i) {
    float& momentum = floats(o[4])[i];
    momentum = 0.9f * momentum + floats(o[0])[i] * factor;
    floats(o[3])[i] -= *floats(o[2]) * momentum;
  }
}

/// factor, step, t, samples, skipped
void countStep(char* const* o, const int64_t* scalars, int64_t, int64_t) {
  const bool skip = std::isnan(*floats(o[0]));
  ++integer(o[1]);
  integer(o[2]) += !skip;
  integer(o[3]) += scalars[0];
  integer(o[4]) += skip;
}

/// prediction, targets, valid rows, loss sum, count
void evaluate(char* const* o, const int64_t*, int64_t, int64_t) {
  const int64_t elements = integer(o[2]) * S::outputs;
  float loss = 0;
  for (int64_t i = 0; i < elements; ++i)
    loss += (floats(o[0])[i] - floats(o[1])[i]) * (floats(o[0])[i] - floats(o[1])[i]);
  *floats(o[3]) = loss;
  integer(o[4]) = elements;
}

enum : uint32_t {
  Forward,
  WeightGradient,
  Difference,
  BiasGradient,
  Finish,
  Update,
  CountStep,
  Evaluate
};

constexpr KernelFunction kernels[] = {
    product<S::micro, S::outputs, S::features, false, true, false, true>,
    product<S::outputs, S::features, S::micro, true, false, true, false>,
    difference,
    biasGradient,
    finish,
    update,
    countStep,
    evaluate};

/// Hands out places in the arena, a gap between any two.
class Layout {
public:
  explicit Layout(Program& program) : program_(&program) {}

  int64_t place(int64_t bytes) {
    int64_t offset = (program_->arenaBytes + 63) / 64 * 64;
    program_->arenaBytes = offset + bytes;
    return offset;
  }
  int64_t state(std::string name, StateKind kind, DType dtype, Shape shape, Init init = {}) {
    State state;
    state.name = std::move(name), state.kind = kind, state.dtype = dtype,
    state.shape = state.local = std::move(shape);
    state.trainable = kind == StateKind::Param, state.init = std::move(init);
    state.bytes = elementCount(state.shape) * byteSize(dtype);
    // Weight and bias (and their slots) are updated as one run of elements: no gap after the
    // weight.
    const bool joins = state.name.starts_with("linear.bias");
    state.offset = joins ? program_->arenaBytes : place(0);
    program_->arenaBytes = state.offset + state.bytes;
    program_->stateBytes += state.bytes;
    program_->states.push_back(state);
    return state.offset;
  }
  int64_t binding(Function& function, Binding::Role role, std::string name, DType dtype,
                  Shape shape) {
    Binding binding{role, std::move(name), dtype, shape, shape};
    binding.bytes = elementCount(binding.shape) * byteSize(dtype);
    binding.offset = place(binding.bytes);
    program_->bindingBytes += binding.bytes;
    function.bindings.push_back(binding);
    return binding.offset;
  }
  int64_t temporary(Function& function, int64_t bytes, uint32_t first, uint32_t last) {
    int64_t offset = place(bytes);
    function.temporaries.push_back({offset, bytes, first, last});
    program_->temporaryBytes += bytes;
    return offset;
  }

private:
  Program* program_;
};

Operand in(Affine address, int64_t bytes) { return {std::move(address), bytes, Access::Read}; }
Operand out(Affine address, int64_t bytes) { return {std::move(address), bytes, Access::Write}; }
Operand inout(Affine address, int64_t bytes) { return {std::move(address), bytes, Access::Both}; }

Command command(CommandKind kind, uint32_t target, std::vector<Operand> operands, int64_t units = 1,
                std::vector<Affine> scalars = {}) {
  Command c;
  c.kind = kind, c.target = target, c.operands = std::move(operands), c.launch.units = units,
  c.scalars = std::move(scalars);
  c.bytes = 100,
  c.flops = kind == CommandKind::Library ? 2 * S::micro * S::outputs * S::features : 10;
  return c;
}

/// The same in phase update.
Command updating(Command command) {
  command.phase = Phase::Update;
  return command;
}

LibraryCall forwardGemm() {
  Gemm g;
  g.m = S::micro, g.n = S::outputs, g.k = S::features;
  g.lda = S::features, g.ldb = S::features, g.ldc = S::outputs;
  g.transposeB = true, g.bias = true, g.tileM = 2, g.tileN = S::outputs;
  return {LibraryRoutine::Gemm, g, {}, "forward product of linear", Forward};
}

LibraryCall weightGradientGemm() {
  Gemm g;
  g.m = S::outputs, g.n = S::features, g.k = S::micro;
  g.lda = S::outputs, g.ldb = S::features, g.ldc = S::features;
  g.transposeA = true, g.accumulate = true, g.tileM = 2, g.tileN = S::features;
  return {LibraryRoutine::Gemm, g, {}, "weight gradient of linear", WeightGradient};
}

int64_t largestLive(const Function& function) {
  int64_t largest = 0;
  for (uint32_t i = 0; i < function.commands.size(); ++i) {
    int64_t live = 0;
    for (const LiveRange& range : function.temporaries)
      live += range.first <= i && i <= range.last ? range.bytes : 0;
    largest = std::max(largest, live);
  }
  return largest;
}

} // namespace

std::span<const KernelFunction> linearKernels() { return kernels; }

std::string linearPayload() {
  std::string payload(weightElements * sizeof(float), '\0');
  for (int64_t i = 0; i < weightElements; ++i)
    floats(payload.data())[i] = 0.1f * normalDraw(42, 0, i);
  return payload;
}

Program linearProgram(const std::string& recipeText) {
  Program program;
  program.model = "linear", program.target = {"cpu", "x86-64", {}},
  program.compilerVersion = "test";
  program.optimizer = "sgd";
  Recipe recipe = parseRecipe(recipeText).take();
  recipe.optimizer.kind = "sgd", recipe.loss.kind = "mse";
  recipe.batch.micro = S::micro, recipe.batch.global = S::batch;
  program.recipe = toJson(recipe);
  for (const char* label : {"forward", "weight gradient", "difference", "bias gradient", "finish",
                            "update", "count step", "evaluate"})
    program.kernels.push_back({std::string("titan_") + label, label});
  program.libraryCalls = {forwardGemm(), weightGradientGemm()};

  Layout layout(program);
  const Shape weightShape = {S::outputs, S::features}, biasShape = {S::outputs};
  const std::string payload = linearPayload();
  Init fromPayload;
  fromPayload.kind = Init::Kind::Payload;
  fromPayload.stored = {{"", 0, static_cast<int64_t>(payload.size()),
                         XXH3_64bits(payload.data(), payload.size()), weightShape}};
  const int64_t weight =
      layout.state("linear.weight", StateKind::Param, DType::F32, weightShape, fromPayload);
  const int64_t bias = layout.state("linear.bias", StateKind::Param, DType::F32, biasShape);
  const int64_t momentum =
      layout.state("linear.weight.momentum_buffer", StateKind::Slot, DType::F32, weightShape);
  layout.state("linear.bias.momentum_buffer", StateKind::Slot, DType::F32, biasShape);
  int64_t counters[4];
  for (int i = 0; i < 4; ++i)
    counters[i] = layout.state((const char*[]){"step", "optimizer.t", "samples", "skipped"}[i],
                               StateKind::Counter, DType::I64, {});

  using Role = Binding::Role;
  using enum CommandKind;
  constexpr int64_t f = sizeof(float), i = sizeof(int64_t), rows = S::micro * S::outputs;
  Function step;
  step.name = "step";
  const int64_t x =
      layout.binding(step, Role::Input, "x", DType::F32, {S::microbatches, S::micro, S::features});
  const int64_t y = layout.binding(step, Role::Input, "targets", DType::F32,
                                   {S::microbatches, S::micro, S::outputs});
  const int64_t lr = layout.binding(step, Role::Control, "optimizer.lr", DType::F32, {});
  layout.binding(step, Role::Control, "train.seed", DType::I64, {});
  const int64_t loss = layout.binding(step, Role::Metric, "loss", DType::F32, {});
  const int64_t norm = layout.binding(step, Role::Metric, "grad_norm", DType::F32, {});
  const int64_t lrOut = layout.binding(step, Role::Metric, "lr", DType::F32, {});
  const int64_t count = layout.binding(step, Role::Metric, "count", DType::I64, {});
  const int64_t gradient = layout.temporary(step, gradientElements * f, 0, 9);
  const int64_t lossSum = layout.temporary(step, f, 1, 8);
  const int64_t prediction = layout.temporary(step, rows * f, 3, 4);
  const int64_t dy = layout.temporary(step, rows * f, 4, 6);
  const int64_t factor = layout.temporary(step, f, 8, 10);
  const int64_t biasGradientAt = gradient + weightElements * f;
  constexpr int64_t xBytes = S::micro * S::features * f, yBytes = rows * f;
  const Affine xMicro = {x, {{0, xBytes}}}, yMicro = {y, {{0, yBytes}}};
  constexpr int64_t weightBytes = weightElements * f, biasBytes = S::outputs * f,
                    gradientBytes = gradientElements * f;
  step.commands = {
      command(Zero, 0, {out({gradient}, gradientBytes)}),
      command(Zero, 0, {out({lossSum}, f)}),
      command(Repeat, 0, {}, S::microbatches),
      command(Library, 0,
              {in(xMicro, xBytes), in({weight}, weightBytes), out({prediction}, yBytes),
               in({bias}, biasBytes)},
              program.libraryCalls[0].gemm.units()),
      command(
          Kernel, Difference,
          {in({prediction}, yBytes), in(yMicro, yBytes), out({dy}, yBytes), inout({lossSum}, f)}),
      command(Library, 1, {in({dy}, yBytes), in(xMicro, xBytes), inout({gradient}, weightBytes)},
              program.libraryCalls[1].gemm.units()),
      command(Kernel, BiasGradient, {in({dy}, yBytes), inout({biasGradientAt}, biasBytes)},
              S::outputs),
      command(EndRepeat, 0, {}),
      updating(
          command(Kernel, Finish,
                  {in({gradient}, gradientBytes), in({lossSum}, f), in({lr}, f), out({factor}, f),
                   out({loss}, f), out({norm}, f), out({lrOut}, f), out({count}, i)})),
      updating(command(Kernel, Update,
                       {in({gradient}, gradientBytes), in({factor}, f), in({lr}, f),
                        inout({weight}, gradientBytes), inout({momentum}, gradientBytes)},
                       gradientElements)),
      updating(command(Kernel, CountStep,
                       {in({factor}, f), inout({counters[0]}, i), inout({counters[1]}, i),
                        inout({counters[2]}, i), inout({counters[3]}, i)},
                       1, {{S::batch}})),
  };
  step.maxLiveBytes = largestLive(step);
  // y = x W^T and dW = dy^T x, in each microbatch.
  step.modelFlops = S::microbatches * 2 * 2 * S::micro * S::outputs * S::features;

  Function eval;
  eval.name = "eval";
  const int64_t evalX = layout.binding(eval, Role::Input, "x", DType::F32, {S::micro, S::features});
  const int64_t evalY =
      layout.binding(eval, Role::Input, "targets", DType::F32, {S::micro, S::outputs});
  const int64_t valid = layout.binding(eval, Role::Control, "valid_rows", DType::I64, {});
  const int64_t evalLoss = layout.binding(eval, Role::Metric, "loss_sum", DType::F32, {});
  const int64_t evalCount = layout.binding(eval, Role::Metric, "count", DType::I64, {});
  const int64_t evalPrediction = layout.temporary(eval, rows * f, 0, 1);
  eval.commands = {
      command(Library, 0,
              {in({evalX}, xBytes), in({weight}, weightBytes), out({evalPrediction}, yBytes),
               in({bias}, biasBytes)},
              program.libraryCalls[0].gemm.units()),
      command(Kernel, Evaluate,
              {in({evalPrediction}, yBytes), in({evalY}, yBytes), in({valid}, i),
               out({evalLoss}, f), out({evalCount}, i)}),
  };
  eval.maxLiveBytes = largestLive(eval);

  Function predict;
  predict.name = "predict";
  const int64_t predictX =
      layout.binding(predict, Role::Input, "x", DType::F32, {S::micro, S::features});
  const int64_t output =
      layout.binding(predict, Role::Output, "prediction", DType::F32, {S::micro, S::outputs});
  predict.commands = {command(Library, 0,
                              {in({predictX}, xBytes), in({weight}, weightBytes),
                               out({output}, yBytes), in({bias}, biasBytes)},
                              program.libraryCalls[0].gemm.units())};

  program.functions = {step, eval, predict};
  return program;
}

} // namespace titan::testing
