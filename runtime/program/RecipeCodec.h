// How each C++ type of a recipe key reads from and writes to JSON.
#pragma once

#include "runtime/program/RecipeSchema.h"
#include "runtime/program/Text.h"

#include <cmath>

namespace titan::recipe {

inline Error wrongType(const std::string& path, const Json& value, std::string_view type) {
  // JSON knows no infinity and no NaN.
  const std::string text = value.is_number_float()
                               ? fmt::format("{}", value.get<double>())
                               : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return Error::badInput("{} = {} is not {}", path, text, type);
}

/// Specialised below: `type` is what an error calls it, `read` leaves `out` alone when it fails.
template <typename T> struct Codec;

template <> struct Codec<int64_t> {
  static constexpr std::string_view type = "an integer";
  static Status read(const Json& value, const std::string& path, int64_t& out) {
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX}))
      return wrongType(path, value, type);
    out = value.get<int64_t>();
    return {};
  }
  static Json write(int64_t value) { return value; }
};

template <> struct Codec<double> {
  static constexpr std::string_view type = "a finite number";
  static Status read(const Json& value, const std::string& path, double& out) {
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      return wrongType(path, value, type);
    out = value.get<double>();
    return {};
  }
  static Json write(double value) { return value; }
};

template <> struct Codec<bool> {
  static constexpr std::string_view type = "true or false";
  static Status read(const Json& value, const std::string& path, bool& out) {
    if (!value.is_boolean())
      return wrongType(path, value, type);
    out = value.get<bool>();
    return {};
  }
  static Json write(bool value) { return value; }
};

template <> struct Codec<std::string> {
  static constexpr std::string_view type = "a string";
  static Status read(const Json& value, const std::string& path, std::string& out) {
    if (!value.is_string())
      return wrongType(path, value, type);
    out = value.get_ref<const std::string&>();
    return {};
  }
  static Json write(const std::string& value) { return value; }
};

template <typename T> struct Codec<std::optional<T>> {
  static constexpr std::string_view type = Codec<T>::type;
  static Status read(const Json& value, const std::string& path, std::optional<T>& out) {
    T inner{};
    TITAN_TRY(Codec<T>::read(value, path, inner));
    out = std::move(inner);
    return {};
  }
  static Json write(const std::optional<T>& value) {
    return value ? Codec<T>::write(*value) : Json();
  }
};

template <typename T> struct Codec<std::vector<T>> {
  static constexpr std::string_view type = std::is_same_v<T, std::string> ? "a list of strings"
                                           : std::is_same_v<T, double>    ? "a list of numbers"
                                                                          : "a list of tables";
  static Status read(const Json& value, const std::string& path, std::vector<T>& out) {
    if (!value.is_array())
      return wrongType(path, value, type);
    std::vector<T> list(value.size());
    for (size_t i = 0; i < value.size(); ++i)
      TITAN_TRY(Codec<T>::read(value[i], fmt::format("{}[{}]", path, i), list[i]));
    out = std::move(list);
    return {};
  }
  static Json write(const std::vector<T>& list) {
    Json value = Json::array();
    for (const T& element : list)
      value.push_back(Codec<T>::write(element));
    return value;
  }
};

template <typename T> struct Codec<std::map<std::string, T>> {
  static constexpr std::string_view type = std::is_same_v<T, std::string> ? "a table of strings"
                                           : std::is_same_v<T, int64_t>   ? "a table of integers"
                                                                          : "a table of tables";
  static Status read(const Json& value, const std::string& path, std::map<std::string, T>& out) {
    if (!value.is_object())
      return wrongType(path, value, type);
    std::map<std::string, T> table;
    for (const auto& [key, element] : value.items())
      TITAN_TRY(Codec<T>::read(element, path + "." + key, table[key]));
    out = std::move(table);
    return {};
  }
  static Json write(const std::map<std::string, T>& table) {
    Json value = Json::object();
    for (const auto& [key, element] : table)
      value[key] = Codec<T>::write(element);
    return value;
  }
};

/// A struct that is an element of a list of tables: its members by name, as a table of its own.
template <typename Struct> struct Member {
  std::string_view name;
  Status (*set)(Struct&, const Json&, const std::string& path);
  Json (*get)(const Struct&);
};

template <auto pointer, typename Struct> constexpr Member<Struct> member(std::string_view name) {
  return {name,
          [](Struct& object, const Json& value, const std::string& path) {
            return Codec<std::remove_reference_t<decltype(object.*pointer)>>::read(value, path,
                                                                                   object.*pointer);
          },
          [](const Struct& object) {
            return Codec<std::remove_cvref_t<decltype(object.*pointer)>>::write(object.*pointer);
          }};
}

template <typename Struct, size_t count>
Status readMembers(const Member<Struct> (&members)[count], const Json& value,
                   const std::string& path, Struct& out) {
  if (!value.is_object())
    return wrongType(path, value, "a table");
  for (const auto& [key, element] : value.items()) {
    const auto* found = std::find_if(
        members, members + count, [&](const Member<Struct>& member) { return member.name == key; });
    if (found == members + count)
      return Error::badInput("unknown key '{}.{}'; did you mean '{}'?", path, key,
                             nearest(key, members, &Member<Struct>::name).name);
    TITAN_TRY(found->set(out, element, path + "." + key));
  }
  return {};
}

template <typename Struct, size_t count>
Json writeMembers(const Member<Struct> (&members)[count], const Struct& object) {
  Json value = Json::object();
  for (const Member<Struct>& member : members)
    if (Json element = member.get(object); !element.is_null())
      value[std::string(member.name)] = std::move(element);
  return value;
}

} // namespace titan::recipe
