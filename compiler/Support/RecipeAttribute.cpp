// Recipe <-> DictionaryAttr, by way of the recipe's JSON form: the schema stays in one place.
#include "compiler/Support/RecipeAttribute.h"

#include "dialects/Titan/Titan.h"
#include "mlir/IR/Builders.h"

#include <nlohmann/json.hpp>

using namespace mlir;
using nlohmann::json;

namespace titan {

namespace {

Attribute toAttribute(Builder& builder, const json& value) {
  if (value.is_boolean())
    return builder.getBoolAttr(value.get<bool>());
  if (value.is_number_integer())
    return builder.getI64IntegerAttr(value.get<int64_t>());
  if (value.is_number())
    return builder.getF64FloatAttr(value.get<double>());
  if (value.is_string())
    return builder.getStringAttr(value.get<std::string>());
  if (value.is_array()) {
    SmallVector<Attribute> elements;
    for (const json& element : value)
      elements.push_back(toAttribute(builder, element));
    return builder.getArrayAttr(elements);
  }
  SmallVector<NamedAttribute> entries;
  for (const auto& [key, element] : value.items())
    if (!element.is_null())
      entries.push_back(builder.getNamedAttr(key, toAttribute(builder, element)));
  return builder.getDictionaryAttr(entries);
}

/// A null value where the attribute has no counterpart in a recipe.
json toJsonValue(Attribute attribute) {
  if (auto boolean = dyn_cast<BoolAttr>(attribute))
    return boolean.getValue();
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return integer.getValue().getSExtValue();
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  if (auto string = dyn_cast<StringAttr>(attribute))
    return string.getValue().str();
  if (auto array = dyn_cast<ArrayAttr>(attribute)) {
    json elements = json::array();
    for (Attribute element : array)
      elements.push_back(toJsonValue(element));
    return elements;
  }
  if (auto dictionary = dyn_cast<DictionaryAttr>(attribute)) {
    json entries = json::object();
    for (NamedAttribute entry : dictionary)
      entries[entry.getName().str()] = toJsonValue(entry.getValue());
    return entries;
  }
  return nullptr;
}

} // namespace

FailureOr<Recipe> getRecipe(ModuleOp module) {
  auto dictionary = module->getAttrOfType<DictionaryAttr>(ir::tag::recipe);
  if (!dictionary)
    return Recipe();
  Result<Recipe> recipe = parseRecipeJson(toJsonValue(dictionary).dump());
  if (!recipe.ok())
    return module.emitError() << ir::tag::recipe << ": " << recipe.error().message();
  if (Status status = validate(*recipe); !status.ok())
    return module.emitError() << ir::tag::recipe << ": " << status.error().message();
  return recipe.take();
}

void setRecipe(ModuleOp module, const Recipe& recipe) {
  Builder builder(module.getContext());
  module->setAttr(ir::tag::recipe, toAttribute(builder, json::parse(toJson(recipe))));
}

} // namespace titan
