#include "frontend/onnx/Names.h"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <fstream>
#include <sstream>

namespace titan::frontend {

static Result<TensorKind> parseKind(const std::string& text, const std::string& where) {
  for (TensorKind kind : {TensorKind::Parameter, TensorKind::Buffer, TensorKind::Constant})
    if (text == name(kind))
      return kind;
  return Error::badInput("{}: kind = '{}': use parameter, buffer or constant", where,
                         printable(text));
}

Result<NameOverrides> parseNamesFile(std::string_view text, const std::string& source) {
  toml::parse_result parsed = toml::parse(text, source);
  if (!parsed)
    return Error::badInput("{}:{}: {}", source, parsed.error().source().begin.line,
                           parsed.error().description());
  NameOverrides overrides;
  for (const auto& [key, node] : parsed.table()) {
    std::string initializer(key.str());
    std::string where = fmt::format("{}: [\"{}\"]", source, printable(initializer));
    const toml::table* table = node.as_table();
    if (!table)
      return Error::badInput("{}: not a table: write [\"{}\"] and below it name, kind or layout",
                             where, printable(initializer));
    NameOverride& entry = overrides[initializer];
    for (const auto& [field, value] : *table) {
      if (field == "name" && value.is_string() && !value.as_string()->get().empty()) {
        entry.name = value.as_string()->get();
      } else if (field == "kind" && value.is_string()) {
        entry.kind = TITAN_TRY(parseKind(value.as_string()->get(), where));
      } else if (field == "layout" && value.is_array()) {
        entry.layout.emplace();
        for (const toml::node& dim : *value.as_array()) {
          if (!dim.is_integer())
            return Error::badInput("{}: layout must list dimensions, as in [1, 0]", where);
          entry.layout->push_back(dim.as_integer()->get());
        }
      } else {
        return Error::badInput("{}: '{}': the keys are name (a string), kind (a string) and layout "
                               "(a list of integers)",
                               where, printable(field.str()));
      }
    }
  }
  return overrides;
}

Result<NameOverrides> readNamesFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Error::badInput("cannot open the names file '{}'", path);
  std::ostringstream text;
  text << file.rdbuf();
  return parseNamesFile(text.str(), path);
}

} // namespace titan::frontend
