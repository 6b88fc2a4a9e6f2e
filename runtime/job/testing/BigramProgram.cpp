#include "runtime/job/testing/BigramProgram.h"

#include "runtime/program/Recipe.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

namespace titan::testing {
namespace {

using S = BigramShape;
constexpr int64_t rows = S::micro * S::window;

int64_t* integers(char* address) { return reinterpret_cast<int64_t*>(address); }
float* floats(char* address) { return reinterpret_cast<float*>(address); }

/// ids, table, logits; scalar: vocabulary. One unit a token.
void lookUp(char* const* o, const int64_t* scalars, int64_t begin, int64_t end) {
  const int64_t vocabulary = scalars[0];
  for (int64_t i = begin; i < end; ++i)
    std::memcpy(floats(o[2]) + i * vocabulary, floats(o[1]) + integers(o[0])[i] * vocabulary,
                static_cast<size_t>(vocabulary) * sizeof(float));
}

/// ids, targets, loss, grad_norm, lr, step, samples; scalar: vocabulary
void step(char* const* o, const int64_t* scalars, int64_t, int64_t) {
  int64_t wrong = 0;
  for (int64_t i = 0; i < rows; ++i)
    wrong += integers(o[1])[i] != (integers(o[0])[i] + 1) % scalars[0];
  *floats(o[2]) = static_cast<float>(wrong) / rows;
  *floats(o[3]) = *floats(o[4]) = 0;
  ++*integers(o[5]);
  *integers(o[6]) += S::micro;
}

enum : uint32_t { LookUp, Step };
constexpr KernelFunction kernels[] = {lookUp, step};

class Builder {
public:
  explicit Builder(Program& program) : program_(&program) {}

  Operand place(int64_t bytes) {
    const int64_t offset = (program_->arenaBytes + 63) / 64 * 64;
    program_->arenaBytes = offset + bytes;
    return {{offset}, bytes};
  }
  Operand state(std::string name, StateKind kind, DType dtype, Shape shape, Init init = {}) {
    State state;
    state.name = std::move(name), state.kind = kind, state.dtype = dtype;
    state.shape = state.local = std::move(shape), state.init = std::move(init);
    state.trainable = kind == StateKind::Param;
    state.bytes = elementCount(state.shape) * byteSize(dtype);
    const Operand at = place(state.bytes);
    state.offset = at.address.base;
    program_->stateBytes += state.bytes;
    program_->states.push_back(std::move(state));
    return at;
  }
  Operand binding(Function& function, Binding::Role role, std::string name, DType dtype,
                  Shape shape, int64_t classes = 0) {
    Binding binding{role, std::move(name), dtype, shape, shape};
    binding.bytes = elementCount(binding.shape) * byteSize(dtype);
    binding.classes = classes;
    const Operand at = place(binding.bytes);
    binding.offset = at.address.base;
    program_->bindingBytes += binding.bytes;
    function.bindings.push_back(std::move(binding));
    return at;
  }

private:
  Program* program_;
};

Operand written(Operand operand, Access access = Access::Write) {
  operand.access = access;
  return operand;
}

Command kernel(uint32_t target, std::vector<Operand> operands, int64_t units, int64_t vocabulary) {
  Command command;
  command.phase = Phase::Update;
  command.target = target, command.operands = std::move(operands), command.launch.units = units;
  command.scalars = {Affine{vocabulary, {}}};
  command.bytes = command.flops = 100;
  return command;
}

} // namespace

uint64_t digestOf(const std::string& payload) {
  return XXH3_64bits(payload.data(), payload.size());
}

std::span<const KernelFunction> bigramKernels() { return kernels; }

std::string bigramPayload(int64_t vocabulary) {
  std::vector<float> table(static_cast<size_t>(vocabulary * vocabulary), -100.0f);
  for (int64_t v = 0; v < vocabulary; ++v) {
    table[static_cast<size_t>(v * vocabulary + (v + 2) % vocabulary)] = 0.5f;
    table[static_cast<size_t>(v * vocabulary + (v + 1) % vocabulary)] = 1.0f;
  }
  return {reinterpret_cast<const char*>(table.data()), table.size() * sizeof(float)};
}

Program bigramProgram(int64_t vocabulary, const std::string& recipeText) {
  Program program;
  program.model = "bigram", program.target = {"cpu", "x86-64", {}};
  program.compilerVersion = "test", program.optimizer = "sgd";
  Recipe recipe = parseRecipe(recipeText).take();
  recipe.optimizer.kind = "sgd";
  recipe.batch.micro = recipe.batch.global = S::micro;
  program.recipe = toJson(recipe);
  program.kernels = {{"titan_look_up", "embedding [16] : table"}, {"titan_step", "step"}};

  Builder b(program);
  Init init;
  init.kind = Init::Kind::Payload;
  const std::string payload = bigramPayload(vocabulary);
  init.stored = {
      {"", 0, static_cast<int64_t>(payload.size()), digestOf(payload), {vocabulary, vocabulary}}};
  using Role = Binding::Role;
  const Operand table =
      b.state("table", StateKind::Param, DType::F32, {vocabulary, vocabulary}, std::move(init));
  const Operand stepCounter = b.state("step", StateKind::Counter, DType::I64, {});
  const Operand samples = b.state("samples", StateKind::Counter, DType::I64, {});
  b.state("skipped", StateKind::Counter, DType::I64, {});
  b.state("optimizer.t", StateKind::Counter, DType::I64, {});

  Function train;
  train.name = "step";
  const Shape batch = {1, S::micro, S::window};
  const Operand trainIds = b.binding(train, Role::Input, "ids", DType::I64, batch, vocabulary);
  const Operand targets = b.binding(train, Role::Input, "targets", DType::I64, batch, vocabulary);
  const Operand loss = b.binding(train, Role::Metric, "loss", DType::F32, {});
  const Operand norm = b.binding(train, Role::Metric, "grad_norm", DType::F32, {});
  const Operand lr = b.binding(train, Role::Metric, "lr", DType::F32, {});
  train.commands = {kernel(Step,
                           {trainIds, targets, written(loss), written(norm), written(lr),
                            written(stepCounter, Access::Both), written(samples, Access::Both)},
                           1, vocabulary)};

  Function predict;
  predict.name = "predict";
  const Operand ids =
      b.binding(predict, Role::Input, "ids", DType::I64, {S::micro, S::window}, vocabulary);
  const Operand logits =
      b.binding(predict, Role::Output, "logits", DType::F32, {S::micro, S::window, vocabulary});
  predict.commands = {kernel(LookUp, {ids, table, written(logits)}, rows, vocabulary)};
  program.functions = {train, predict};
  return program;
}

} // namespace titan::testing
