#include "runtime/job/Scalars.h"

#include <optional>

namespace titan {
namespace {

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

/// A control that changes from run to run of its function.
bool isOfItsUser(std::string_view name) { return name == "valid_rows" || name == "stop"; }

} // namespace

Result<Controls> Controls::create(StateAccess& access, std::string_view functionName,
                                  const Recipe& recipe, int64_t seed) {
  Controls controls;
  const Function* function = access.program().findFunction(functionName);
  if (!function)
    return Error::internal("the program has no function '{}'", functionName);
  for (const Binding& binding : function->bindings) {
    if (binding.role != Binding::Role::Control || isOfItsUser(binding.name))
      continue;
    std::optional<ScalarValue> value = valueOf(binding.name, recipe, seed);
    const Scalar scalar = TITAN_TRY(access.scalar(placeOf(binding)));
    if (!value || !scalar.write(*value))
      return Error::internal("the job's control '{}' of dtype {} is unknown to its runtime",
                             binding.name, name(binding.dtype));
    controls.controls_.push_back({scalar, *value});
  }
  return controls;
}

void Controls::write() const {
  for (const Control& control : controls_)
    control.scalar.write(control.value);
}

Result<Scalar> metric(StateAccess& access, std::string_view functionName, std::string_view name) {
  if (const Function* function = access.program().findFunction(functionName))
    for (const Binding& binding : function->bindings)
      if (binding.name == name && binding.role == Binding::Role::Metric)
        return access.scalar(placeOf(binding));
  return Scalar();
}

Result<Scalar> counter(StateAccess& access, std::string_view name) {
  const std::optional<Place> place = access.state(StateKind::Counter, {}, name);
  return place ? access.scalar(*place) : Scalar();
}

} // namespace titan
