#include "frontend/onnx/Names.h"

#include "runtime/program/TomlDocument.h"

#include <algorithm>

namespace titan::frontend {

static Status parseKind(const std::string& text, const std::string& where, NameOverride& entry) {
  entry.causalMask = text == "causal_mask";
  if (entry.causalMask)
    entry.kind = TensorKind::Constant;
  for (TensorKind kind : {TensorKind::Parameter, TensorKind::Buffer, TensorKind::Constant})
    if (text == name(kind))
      entry.kind = kind;
  if (entry.kind)
    return {};
  return Error::badInput("{}: kind = '{}': use parameter, buffer, constant or causal_mask", where,
                         printable(text));
}

/// Names are printed and are keys of files: every control character would break one of them.
static bool isUsableName(const std::string& name) {
  return !name.empty() &&
         std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

Result<NameOverrides> parseNamesFile(std::string_view text, const std::string& source) {
  const nlohmann::ordered_json document = TITAN_TRY(recipe::parseToml(text, source));
  NameOverrides overrides;
  for (const auto& [initializer, table] : document.items()) {
    std::string where = fmt::format("{}: [\"{}\"]", source, printable(initializer));
    if (!table.is_object())
      return Error::badInput("{}: not a table: write [\"{}\"] and below it name, kind, layout or "
                             "padding_idx",
                             where, printable(initializer));
    NameOverride& entry = overrides[initializer];
    for (const auto& [field, value] : table.items()) {
      if (field == "name" && value.is_string()) {
        entry.name = value.get<std::string>();
        if (!isUsableName(*entry.name))
          return Error::badInput(
              "{}: name = '{}': a name has at least one character and no control "
              "characters",
              where, printable(*entry.name));
      } else if (field == "kind" && value.is_string()) {
        TITAN_TRY(parseKind(value.get<std::string>(), where, entry));
      } else if (field == "layout" && value.is_array()) {
        entry.layout.emplace();
        for (const auto& dim : value) {
          if (!dim.is_number_integer())
            return Error::badInput("{}: layout must list dimensions, as in [1, 0]", where);
          entry.layout->push_back(dim.get<int64_t>());
        }
      } else if (field == "padding_idx" && value.is_number_integer()) {
        entry.paddingIndex = value.get<int64_t>();
      } else {
        return Error::badInput("{}: '{}': the keys are name (a string), kind (a string), layout "
                               "(a list of integers) and padding_idx (an integer)",
                               where, printable(field));
      }
    }
  }
  return overrides;
}

Result<NameOverrides> readNamesFile(const std::string& path) {
  return parseNamesFile(TITAN_TRY(recipe::readText(path, "names file")), path);
}

} // namespace titan::frontend
