#include "runtime/data/TokenFields.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace titan {
namespace {

constexpr std::pair<const char*, TokenSource> sources[] = {{"tokens", TokenSource::Tokens},
                                                           {"next", TokenSource::Next},
                                                           {"positions", TokenSource::Positions},
                                                           {"ones", TokenSource::Ones},
                                                           {"zeros", TokenSource::Zeros}};

/// Inputs beside the tokens that exports of Hugging Face models have.
constexpr std::pair<const char*, TokenSource> conventions[] = {
    {"position_ids", TokenSource::Positions},
    {"attention_mask", TokenSource::Ones},
    {"token_type_ids", TokenSource::Zeros}};

template <size_t count>
std::optional<TokenSource> find(const std::pair<const char*, TokenSource> (&table)[count],
                                const std::string& name) {
  for (const auto& [key, source] : table)
    if (key == name)
      return source;
  return std::nullopt;
}

bool isInteger(DType dtype) { return dtype == DType::I64 || dtype == DType::I32; }

Result<std::optional<TokenSource>> chosen(const FieldSpec& field,
                                          const std::map<std::string, std::string>& mapping) {
  std::optional<TokenSource> source = find(conventions, field.name);
  if (field.target)
    source = TokenSource::Next;
  if (auto mapped = mapping.find(field.name); mapped != mapping.end()) {
    source = find(sources, mapped->second);
    if (!source)
      return Error::badInput("data.fields.{} = \"{}\": token files have tokens, next, positions, "
                             "ones and zeros",
                             field.name, mapped->second);
  }
  const bool any = source == TokenSource::Ones || source == TokenSource::Zeros;
  if (source && !any && !isInteger(field.dtype))
    return Error::badInput("field '{}' needs {}: token files hold integers", field.name,
                           name(field.dtype));
  return source;
}

} // namespace

Result<std::vector<TokenSource>> tokenSources(const std::vector<FieldSpec>& fields,
                                              const std::map<std::string, std::string>& mapping) {
  std::vector<std::optional<TokenSource>> found;
  for (const FieldSpec& field : fields)
    found.push_back(TITAN_TRY(chosen(field, mapping)));

  const FieldSpec* tokens = nullptr; // the one that nobody said anything about
  for (size_t i = 0; i < fields.size(); ++i) {
    if (found[i])
      continue;
    if (!isInteger(fields[i].dtype))
      return Error::badInput("field '{}' needs {}: token files hold integers", fields[i].name,
                             name(fields[i].dtype));
    if (tokens)
      return Error::badInput(
          "'{}' reads the tokens; what does '{}' read? say it with data.fields = "
          "{{ {} = \"tokens\" }} (or next, positions, ones, zeros)",
          tokens->name, fields[i].name, fields[i].name);
    tokens = &fields[i];
    found[i] = TokenSource::Tokens;
  }
  if (std::ranges::find(found, TokenSource::Tokens) == found.end())
    return Error::badInput("token files give an input, the model reads none");

  std::vector<TokenSource> result;
  for (const std::optional<TokenSource>& source : found)
    result.push_back(*source);
  return result;
}

void storeToken(DType dtype, int64_t value, char* destination) {
  if (dtype == DType::F32) {
    const auto real = static_cast<float>(value);
    std::memcpy(destination, &real, sizeof real);
  } else if (dtype == DType::BF16) {
    const uint16_t bits = toBFloat16(static_cast<float>(value));
    std::memcpy(destination, &bits, sizeof bits);
  } else if (dtype == DType::F64) {
    const auto real = static_cast<double>(value);
    std::memcpy(destination, &real, sizeof real);
  } else { // little-endian: the low bytes come first
    std::memcpy(destination, &value, static_cast<size_t>(byteSize(dtype)));
  }
}

} // namespace titan
