#include "runtime/job/Scalars.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace titan {
namespace {

template <typename T> void store(char* address, ScalarValue value) {
  const T converted = std::visit([](auto v) { return static_cast<T>(v); }, value);
  std::memcpy(address, &converted, sizeof converted);
}

template <typename T> T load(const char* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

std::optional<ScalarValue> valueOf(std::string_view key, const Recipe& recipe, int64_t seed) {
  if (key == "optimizer.lr")
    return recipe.optimizer.lr;
  if (key == "optimizer.weight_decay")
    return recipe.optimizer.weightDecay;
  if (key == "schedule.warmup_steps")
    return recipe.schedule.warmupSteps;
  if (key == "schedule.steps")
    return recipe.schedule.steps;
  if (key == "schedule.min_lr_ratio")
    return recipe.schedule.minLrRatio;
  if (key == "train.seed")
    return seed;
  return std::nullopt;
}

} // namespace

bool writeScalar(DType dtype, char* address, ScalarValue value) {
  switch (dtype) {
  case DType::F64:
    store<double>(address, value);
    return true;
  case DType::F32:
    store<float>(address, value);
    return true;
  case DType::I64:
    store<int64_t>(address, value);
    return true;
  case DType::I32:
    store<int32_t>(address, value);
    return true;
  case DType::Bool:
    store<bool>(address, value);
    return true;
  default:
    return false;
  }
}

double readScalar(DType dtype, const char* address) {
  switch (dtype) {
  case DType::F64:
    return load<double>(address);
  case DType::F32:
    return load<float>(address);
  case DType::BF16:
    return fromBFloat16(load<uint16_t>(address));
  case DType::I64:
    return static_cast<double>(load<int64_t>(address));
  case DType::I32:
    return load<int32_t>(address);
  case DType::Bool:
    return *address != 0;
  default:
    return std::numeric_limits<double>::quiet_NaN();
  }
}

Result<Controls> Controls::create(const Executor& executor, std::string_view functionName,
                                  const Recipe& recipe, int64_t seed) {
  Controls controls;
  const Function* function = executor.program().findFunction(functionName);
  if (!function)
    return Error::internal("the program has no function '{}'", functionName);
  for (const Binding& binding : function->bindings) {
    if (binding.role != Binding::Role::Control || binding.name == "valid_rows")
      continue;
    std::optional<ScalarValue> value = valueOf(binding.name, recipe, seed);
    char* address = executor.arena() + binding.offset;
    if (!value || !writeScalar(binding.dtype, address, *value))
      return Error::internal("the job's control '{}' of dtype {} is unknown to its runtime",
                             binding.name, name(binding.dtype));
    controls.controls_.push_back({binding.dtype, address, *value});
  }
  return controls;
}

void Controls::write() const {
  for (const Control& control : controls_)
    writeScalar(control.dtype, control.address, control.value);
}

ScalarReader ScalarReader::metric(const Executor& executor, std::string_view function,
                                  std::string_view name) {
  const Binding* binding = executor.findBinding(function, name);
  if (!binding || binding->role != Binding::Role::Metric)
    return {};
  return {binding->dtype, executor.arena() + binding->offset};
}

ScalarReader ScalarReader::counter(const Executor& executor, std::string_view name) {
  const State* state = executor.program().findState(name);
  if (!state)
    return {};
  return {state->dtype, executor.arena() + state->offset};
}

} // namespace titan
