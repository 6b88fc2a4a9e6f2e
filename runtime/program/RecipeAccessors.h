// How each recipe key reaches its member: the accessors that the table of RecipeSchema.cpp names.
#pragma once

#include "runtime/program/RecipeCodec.h"

#include <algorithm>
#include <charconv>

namespace titan::recipe {

// --- Types of one key only ---

inline constexpr Member<InitRule> initRuleMembers[] = {
    member<&InitRule::match, InitRule>("match"), member<&InitRule::dist, InitRule>("dist"),
    member<&InitRule::mean, InitRule>("mean"),   member<&InitRule::std, InitRule>("std"),
    member<&InitRule::low, InitRule>("low"),     member<&InitRule::high, InitRule>("high"),
    member<&InitRule::value, InitRule>("value"),
};
template <> struct Codec<InitRule> {
  static Status read(const Json& value, const std::string& path, InitRule& out) {
    return readMembers(initRuleMembers, value, path, out);
  }
  static Json write(const InitRule& rule) { return writeMembers(initRuleMembers, rule); }
};

inline constexpr Member<OptimizerGroup> groupMembers[] = {
    member<&OptimizerGroup::match, OptimizerGroup>("match"),
    member<&OptimizerGroup::lrScale, OptimizerGroup>("lr_scale"),
    member<&OptimizerGroup::weightDecay, OptimizerGroup>("weight_decay"),
};
template <> struct Codec<OptimizerGroup> {
  static Status read(const Json& value, const std::string& path, OptimizerGroup& out) {
    return readMembers(groupMembers, value, path, out);
  }
  static Json write(const OptimizerGroup& group) { return writeMembers(groupMembers, group); }
};

inline constexpr Member<MeshAxis> axisMembers[] = {
    member<&MeshAxis::name, MeshAxis>("name"),
    member<&MeshAxis::ranks, MeshAxis>("ranks"),
};
template <> struct Codec<MeshAxis> {
  static Status read(const Json& value, const std::string& path, MeshAxis& out) {
    return readMembers(axisMembers, value, path, out);
  }
  static Json write(const MeshAxis& axis) { return writeMembers(axisMembers, axis); }
};

inline constexpr Member<EmaProfile> profileMembers[] = {
    member<&EmaProfile::decay, EmaProfile>("decay"),
    member<&EmaProfile::every, EmaProfile>("every"),
    member<&EmaProfile::warmup, EmaProfile>("warmup"),
};
/// A decay, or a table with one.
template <> struct Codec<EmaProfile> {
  static Status read(const Json& value, const std::string& path, EmaProfile& out) {
    if (!value.is_object())
      return Codec<double>::read(value, path, out.decay);
    if (!value.contains("decay"))
      return Error::badInput("{} needs decay, what an update leaves of the average", path);
    return readMembers(profileMembers, value, path, out);
  }
  static Json write(const EmaProfile& profile) {
    return profile == EmaProfile{.decay = profile.decay} ? Json(profile.decay)
                                                         : writeMembers(profileMembers, profile);
  }
};

// --- How a key reaches its value ---
// Each accessor has `type`, `set` and `get`; the table below names one for each key.

/// Member `pointer` of section `section`: a plain value.
template <auto section, auto pointer> struct Plain {
  using Value = std::remove_cvref_t<decltype(std::declval<Recipe>().*section.*pointer)>;
  static constexpr std::string_view type = Codec<Value>::type;
  static constexpr bool tables = false;
  static Status set(Recipe& recipe, const Json& value, const std::string& path) {
    return Codec<Value>::read(value, path, recipe.*section.*pointer);
  }
  static Json get(const Recipe& recipe) { return Codec<Value>::write(recipe.*section.*pointer); }
};

/// [[section.name]] tables.
template <auto section, auto pointer> struct Tables : Plain<section, pointer> {
  static constexpr bool tables = true;
};

/// Files: one string or a list of them.
template <auto pointer> struct Files : Plain<&Recipe::data, pointer> {
  static constexpr std::string_view type = "a string or a list of strings";
  static Status set(Recipe& recipe, const Json& value, const std::string& path) {
    if (!value.is_string() && !value.is_array())
      return wrongType(path, value, type);
    return Codec<std::vector<std::string>>::read(value.is_string() ? Json::array({value}) : value,
                                                 path, recipe.data.*pointer);
  }
};

struct WeightDecay : Plain<&Recipe::optimizer, &OptimizerRecipe::weightDecay> {
  static Status set(Recipe& recipe, const Json& value, const std::string& path) {
    TITAN_TRY(Plain::set(recipe, value, path));
    recipe.optimizer.weightDecayGiven.value = true;
    return {};
  }
};

struct Betas {
  static constexpr std::string_view type = "a list of two numbers";
  static constexpr bool tables = false;
  static Status set(Recipe& recipe, const Json& value, const std::string& path) {
    std::vector<double> betas;
    TITAN_TRY(Codec<std::vector<double>>::read(value, path, betas));
    if (betas.size() != 2)
      return wrongType(path, value, type);
    recipe.optimizer.beta1 = betas[0];
    recipe.optimizer.beta2 = betas[1];
    return {};
  }
  static Json get(const Recipe& recipe) {
    return Json::array({recipe.optimizer.beta1, recipe.optimizer.beta2});
  }
};

/// A list in the order of the mesh, or a table { replicate, shard, tensor }, which is in that
/// order.
struct Axes : Plain<&Recipe::mesh, &MeshRecipe::axes> {
  static constexpr std::string_view type = "a list of { name, ranks } or a table of integers";
  static Status set(Recipe& recipe, const Json& value, const std::string& path) {
    if (value.is_array())
      return Plain::set(recipe, value, path);
    if (!value.is_object())
      return wrongType(path, value, type);
    std::vector<MeshAxis> axes = MeshRecipe().axes;
    for (const auto& [name, ranks] : value.items()) {
      const auto found = std::ranges::find(axes, name, &MeshAxis::name);
      if (found == axes.end())
        return Error::badInput("unknown key '{}.{}'; did you mean '{}'?", path, name,
                               nearest(name, axes, &MeshAxis::name).name);
      TITAN_TRY(Codec<int64_t>::read(ranks, path + "." + name, found->ranks));
    }
    recipe.mesh.axes = std::move(axes);
    return {};
  }
};

/// A word for all parameters, or patterns of those that are not dropped.
struct Reshard : Plain<&Recipe::mesh, &MeshRecipe::reshard> {
  static constexpr std::string_view type = "\"always\", \"never\", \"step\" or a list of patterns";
  static Status set(Recipe& recipe, const Json& value, const std::string& path) {
    MeshRecipe& mesh = recipe.mesh;
    if (value.is_array()) {
      TITAN_TRY(Codec<std::vector<std::string>>::read(value, path, mesh.kept));
      mesh.reshard = MeshRecipe().reshard;
      return {};
    }
    if (!value.is_string() || !isChoice("always | never | step", value.get<std::string>()))
      return wrongType(path, value, type);
    mesh.reshard = value.get<std::string>();
    mesh.kept.clear();
    return {};
  }
  static Json get(const Recipe& recipe) {
    const MeshRecipe& mesh = recipe.mesh;
    return mesh.kept.empty() ? Json(mesh.reshard)
                             : Codec<std::vector<std::string>>::write(mesh.kept);
  }
};

/// One word for all axes, or a table of words by data axis.
struct Sync {
  using Words = Codec<std::map<std::string, std::string>>;
  static constexpr std::string_view type = "a string or a table of strings by axis";
  static constexpr bool tables = false;
  static Status set(Recipe& recipe, const Json& value, const std::string& path) {
    SyncRecipe& sync = recipe.mesh.sync;
    if (value.is_object()) {
      TITAN_TRY(Words::read(value, path, sync.byAxis));
      sync.all.clear();
      return {};
    }
    if (!value.is_string())
      return wrongType(path, value, type);
    sync = {value.get_ref<const std::string&>(), {}};
    return {};
  }
  static Json get(const Recipe& recipe) {
    const SyncRecipe& sync = recipe.mesh.sync;
    return sync.all.empty() ? Words::write(sync.byAxis) : Json(sync.all);
  }
};

/// Bytes: an integer, or a string such as "2.3GB" (decimal) or "512MiB" (binary).
struct ByteCount {
  static constexpr std::string_view type =
      "a number of bytes (an integer, \"2.3GB\" or \"512MiB\")";
  static Status read(const Json& value, const std::string& path, int64_t& out) {
    if (!value.is_string())
      return value.is_number_integer() ? Codec<int64_t>::read(value, path, out)
                                       : Status(wrongType(path, value, type));
    const std::optional<int64_t> bytes = parse(value.get_ref<const std::string&>());
    if (!bytes)
      return wrongType(path, value, type);
    out = *bytes;
    return {};
  }

private:
  static std::optional<int64_t> parse(std::string_view text) {
    double number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (status != std::errc())
      return std::nullopt;
    std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
    unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
    static constexpr std::pair<std::string_view, double> units[] = {
        {"", 1},         {"B", 1},        {"kB", 1e3},    {"KB", 1e3},
        {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},   {"KiB", 0x1p10},
        {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
    const auto* found = std::ranges::find(units, unit, &std::pair<std::string_view, double>::first);
    if (found == std::end(units) || !(number * found->second < 0x1p62) || number < 0)
      return std::nullopt;
    return std::llround(number * found->second);
  }
};

template <auto section, auto pointer> struct Bytes : Plain<section, pointer> {
  static constexpr std::string_view type = ByteCount::type;
  static Status set(Recipe& recipe, const Json& value, const std::string& path) {
    return ByteCount::read(value, path, recipe.*section.*pointer);
  }
};

/// A word, or bytes.
struct Staging {
  static constexpr std::string_view type =
      "\"auto\", \"full\", \"none\" or a number of bytes (an integer, \"512MB\" or \"512MiB\")";
  static constexpr bool tables = false;
  static Status set(Recipe& recipe, const Json& value, const std::string& path) {
    StagingRecipe staging;
    if (value.is_string() && isChoice("auto | full | none", value.get<std::string>()))
      staging.amount = value.get<std::string>();
    else if (staging.amount.clear(); !ByteCount::read(value, path, staging.bytes).ok())
      return wrongType(path, value, type);
    recipe.checkpoint.staging = staging;
    return {};
  }
  static Json get(const Recipe& recipe) {
    const StagingRecipe& staging = recipe.checkpoint.staging;
    return staging.amount.empty() ? Json(staging.bytes) : Json(staging.amount);
  }
};

} // namespace titan::recipe
