#include "frontend/nn/Models.h"
#include "runtime/program/Text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace titan::nn {

namespace {

constexpr std::string_view kPrefix = "nn:";

/// The parts of `text` between separators; none of an empty text.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    if (end + 1 == text.size())
      parts.emplace_back(); // what stands behind the last separator
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Result<const KnownModel*> findModel(std::string_view name) {
  std::vector<std::string_view> names;
  for (const KnownModel* model : knownModels()) {
    if (model->name == name)
      return model;
    names.push_back(model->name);
  }
  if (name.empty())
    return Error::usage("nn: names no model; there are: {}", fmt::join(names, ", "));
  return Error::usage("nn:{}: no model of this name; did you mean '{}'? There are: {}", name,
                      nearest(name, names), fmt::join(names, ", "));
}

/// All of `value` as a number; nothing: it is none.
template <typename Number> std::optional<Number> numberIn(std::string_view value) {
  Number number{};
  const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (failure != std::errc() || end != value.data() + value.size())
    return std::nullopt;
  return number;
}

Status checkNumber(const std::string& what, const Option& option, std::optional<double> number,
                   const char* wanted) {
  if (!number || !std::isfinite(*number))
    return Error::usage("{}: {} is expected", what, wanted);
  if (*number < option.least)
    return Error::badInput("{}: at least {} is expected", what, option.least);
  return {};
}

Status checkValue(const std::string& what, const Option& option, std::string_view value) {
  switch (option.kind) {
  case OptionKind::Integer: {
    const std::optional<int64_t> number = numberIn<int64_t>(value);
    TITAN_TRY(checkNumber(what, option,
                          number ? std::optional(static_cast<double>(*number)) : std::nullopt,
                          "an integer"));
    break;
  }
  case OptionKind::Real:
    TITAN_TRY(checkNumber(what, option, numberIn<double>(value), "a number"));
    break;
  case OptionKind::Flag:
    if (value != "true" && value != "false")
      return Error::usage("{}: true or false is expected", what);
    break;
  case OptionKind::Word:
    break;
  }
  const std::vector<std::string_view> words = split(option.words, '|');
  if (!words.empty() && std::find(words.begin(), words.end(), value) == words.end())
    return Error::badInput("{}: there are {}", what, fmt::join(words, ", "));
  return {};
}

} // namespace

int64_t OptionValues::integer(std::string_view name) const {
  return *numberIn<int64_t>(text(name));
}
double OptionValues::real(std::string_view name) const { return *numberIn<double>(text(name)); }

bool isModelRequest(std::string_view text) { return text.starts_with(kPrefix); }

Result<ModelRequest> parseModelRequest(std::string_view text) {
  std::string_view rest = text;
  if (isModelRequest(rest))
    rest.remove_prefix(kPrefix.size());
  const size_t question = std::min(rest.find('?'), rest.size());
  ModelRequest request;
  request.text = text;
  request.model = TITAN_TRY(findModel(rest.substr(0, question)));
  const std::string shown = fmt::format("nn:{}", request.model->name);
  rest.remove_prefix(std::min(question + 1, rest.size()));
  if (rest == "help") {
    request.help = true;
    return request;
  }
  std::map<std::string, std::string, std::less<>> values;
  for (std::string_view part : split(rest, ',')) {
    const size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    const auto& options = request.model->options;
    const auto option = std::find_if(options.begin(), options.end(),
                                     [&](const Option& known) { return known.name == name; });
    if (option == options.end())
      return Error::usage("{}: no option '{}'; did you mean '{}'? ({}?help lists them)", shown,
                          name, nearest(name, options, &Option::name).name, shown);
    if (equals == std::string_view::npos || equals + 1 == part.size())
      return Error::usage("{}: '{}' has no value: {}={}", shown, name, name, option->otherwise);
    const std::string_view value = part.substr(equals + 1);
    TITAN_TRY(checkValue(fmt::format("{}: {} = {}", shown, name, value), *option, value));
    if (!values.emplace(name, value).second)
      return Error::usage("{}: '{}' is given twice", shown, name);
  }
  for (const Option& option : request.model->options)
    values.emplace(option.name, option.otherwise);
  request.options = OptionValues(std::move(values));
  return request;
}

} // namespace titan::nn
