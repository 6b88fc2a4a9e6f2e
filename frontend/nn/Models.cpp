#include "frontend/nn/Models.h"

#include <algorithm>

namespace titan::nn {

std::span<const KnownModel* const> knownModels() {
  static constexpr const KnownModel* models[] = {&gptModel, &llamaModel, &mlpModel, &resnetModel};
  return models;
}

static std::string_view kindOf(const Option& option) {
  switch (option.kind) {
  case OptionKind::Integer:
    return "integer";
  case OptionKind::Real:
    return "number";
  case OptionKind::Flag:
    return "true or false";
  case OptionKind::Word:
    break;
  }
  return "word";
}

std::string helpOf(const KnownModel& model) {
  std::string text = fmt::format("nn:{}: {}\n\n", model.name, model.summary);
  size_t names = 0, kinds = 0, defaults = 0;
  const auto kind = [](const Option& option) {
    return option.words.empty() ? kindOf(option) : option.words;
  };
  for (const Option& option : model.options) {
    names = std::max(names, option.name.size());
    kinds = std::max(kinds, kind(option).size());
    defaults = std::max(defaults, option.otherwise.size());
  }
  for (const Option& option : model.options)
    text += fmt::format("  {:{}}  {:{}}  {:{}}  {}\n", option.name, names, kind(option), kinds,
                        option.otherwise, defaults, option.meaning);
  return text + fmt::format("\nThe third column has the defaults: nn:{}?{}={}\n", model.name,
                            model.options.front().name, model.options.front().otherwise);
}

} // namespace titan::nn
