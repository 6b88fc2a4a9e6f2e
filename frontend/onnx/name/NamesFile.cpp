#include "frontend/onnx/name/Names.h"

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

/// A list of integers. `what` names it.
static Result<Shape> parseIntegers(const nlohmann::ordered_json& list, const std::string& what) {
  Shape values;
  bool isList = list.is_array();
  for (size_t i = 0; isList && i < list.size(); ++i) {
    isList = list[i].is_number_integer();
    if (isList)
      values.push_back(list[i].get<int64_t>());
  }
  if (!isList)
    return Error::badInput("{} must be a list of integers, as in [1, 0]", what);
  return values;
}

/// { state = "rnn.weight_ih_l0", at = [0, 0], from = [0, 0, 0], extent = [4, 3], dims = [1, 2] }
static Result<StatePiece> parsePiece(const nlohmann::ordered_json& item, const std::string& where) {
  static constexpr std::pair<std::string_view, Shape Piece::*> members[] = {
      {"at", &Piece::at},
      {"from", &Piece::from},
      {"extent", &Piece::extent},
      {"dims", &Piece::dims}};
  StatePiece piece;
  for (const auto& [field, value] : item.items()) {
    auto member = std::ranges::find(members, std::string_view(field),
                                    [](const auto& entry) { return entry.first; });
    if (field == "state" && value.is_string())
      piece.state = value.get<std::string>();
    else if (member != std::end(members))
      piece.piece.*member->second =
          TITAN_TRY(parseIntegers(value, fmt::format("{}: {} of a piece", where, field)));
    else
      return Error::badInput("{}: '{}': a piece has state (a string), at, from, extent and dims "
                             "(lists of integers)",
                             where, printable(field));
  }
  if (!isUsableName(piece.state))
    return Error::badInput("{}: a piece has no state: write which it is of", where);
  if (piece.piece.extent.empty())
    return Error::badInput("{}: the piece of '{}' has no extent: write how large it is", where,
                           printable(piece.state));
  return piece;
}

static Status parsePieces(const nlohmann::ordered_json& list, const std::string& where,
                          NameOverride& entry) {
  if (list.empty() || list.size() > mostPieces)
    return Error::badInput("{}: {} pieces: a tensor has 1 to {}", where, list.size(), mostPieces);
  for (const auto& item : list) {
    if (!item.is_object())
      return Error::badInput("{}: pieces must list tables, as in [{{ state = \"a\", extent = [4] "
                             "}}]",
                             where);
    entry.pieces.push_back(TITAN_TRY(parsePiece(item, where)));
  }
  return {};
}

Result<NameOverrides> parseNamesFile(std::string_view text, const std::string& source) {
  const nlohmann::ordered_json document = TITAN_TRY(recipe::parseToml(text, source));
  NameOverrides overrides;
  for (const auto& [initializer, table] : document.items()) {
    std::string where = fmt::format("{}: [\"{}\"]", source, printable(initializer));
    if (!table.is_object())
      return Error::badInput("{}: not a table: write [\"{}\"] and below it name, kind, layout, "
                             "padding_idx or pieces",
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
        entry.layout = TITAN_TRY(parseIntegers(value, where + ": layout"));
      } else if (field == "pieces" && value.is_array()) {
        TITAN_TRY(parsePieces(value, where, entry));
      } else if (field == "padding_idx" && value.is_number_integer()) {
        entry.paddingIndex = value.get<int64_t>();
      } else {
        return Error::badInput("{}: '{}': the keys are name (a string), kind (a string), layout "
                               "(a list of integers), padding_idx (an integer) and pieces (a list)",
                               where, printable(field));
      }
    }
    if (!entry.pieces.empty() && (entry.name || entry.layout || entry.paddingIndex))
      return Error::badInput("{}: pieces stand for name, layout and padding_idx: write one or the "
                             "other",
                             where);
  }
  return overrides;
}

Result<NameOverrides> readNamesFile(const std::string& path) {
  return parseNamesFile(TITAN_TRY(recipe::readText(path, "names file")), path);
}

} // namespace titan::frontend
