#include "runtime/checkpoint/MatchNames.h"

#include "runtime/checkpoint/Convert.h"
#include "runtime/program/Element.h"
#include "runtime/program/Names.h"
#include "runtime/program/Recipe.h"

#include <algorithm>
#include <set>

namespace titan::checkpoint {
namespace {

/// `name` under a rename from -> to, where a `*` in both stands for the same text; empty if it does
/// not apply.
std::string renamed(const std::string& name, std::string_view from, std::string_view to) {
  const size_t star = from.find('*');
  if (star == std::string_view::npos)
    return name == from ? std::string(to) : std::string();
  const std::string_view head = from.substr(0, star), tail = from.substr(star + 1);
  if (name.size() < head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail))
    return {};
  const std::string middle = name.substr(head.size(), name.size() - head.size() - tail.size());
  std::string result(to);
  if (const size_t target = result.find('*'); target != std::string::npos)
    result.replace(target, 1, middle);
  return result;
}

class Matcher {
public:
  Matcher(const MatchRequest& request, Diff& diff) : request_(request), diff_(diff) {
    for (const Destination* destination : request.destinations)
      canonical_[destination->entry.name] = destination;
    for (const Destination* destination : request.destinations)
      for (const std::string& alias : destination->entry.aliases)
        aliases_.try_emplace(alias, destination);
  }

  Result<Matching> run(const StoredTensors& stored) {
    TITAN_TRY(checkFresh());
    for (const auto& [name, tensor] : stored.tensors())
      TITAN_TRY(place(name, tensor));
    TITAN_TRY(checkRenames());
    TITAN_TRY(checkIgnored());
    for (const Destination* destination : request_.destinations) {
      const TableEntry& entry = destination->entry;
      if (isFresh(entry.name))
        matching_.fresh.push_back(entry.name);
      else if (const auto left = leftOut_.find(destination);
               left != leftOut_.end() && !placed_.contains(destination))
        return Error::badInput("--ignore leaves '{}' out, which this program needs as '{}': use a "
                               "narrower glob",
                               shown(left->second), shown(entry.name));
      else if (const auto found = placed_.find(destination); found == placed_.end())
        diff_.missing({shown(entry.name), entry.dtype, entry.shape});
      else
        compare(entry, *destination, *found->second);
    }
    summarizeStripped();
    summarize(matching_.ignored, "of the file were ignored: --ignore");
    for (const auto& [types, names] : exact_)
      summarize(names, fmt::format("of {} became {}: no value changed", name(types.first),
                                   name(types.second)));
    for (const auto& [types, names] : rounded_) {
      summarize(names, fmt::format("of {} were rounded to {}: --cast", name(types.first),
                                   name(types.second)));
      matching_.rounded.insert(matching_.rounded.end(), names.begin(), names.end());
    }
    return std::move(matching_);
  }

private:
  std::string shown(std::string_view name) const { return request_.folder.shown(name); }

  static bool matchesAny(const std::vector<std::string>& globs, const std::string& name) {
    return std::any_of(globs.begin(), globs.end(),
                       [&](const std::string& glob) { return matchesGlob(glob, name); });
  }

  bool isFresh(const std::string& name) const { return matchesAny(request_.fresh, name); }

  Status checkFresh() const {
    for (const std::string& glob : request_.fresh)
      if (std::none_of(canonical_.begin(), canonical_.end(),
                       [&](const auto& item) { return matchesGlob(glob, item.first); }))
        return Error::badInput("--fresh '{}' matches no parameter or buffer of this program", glob);
    return {};
  }

  Status checkRenames() const {
    for (const auto& [from, to] : request_.renames)
      if (!usedRenames_.contains(from))
        return Error::badInput("--map '{}={}' matches no tensor of the file", from, to);
    return {};
  }

  Status checkIgnored() const {
    for (const std::string& glob : request_.ignored)
      if (std::none_of(matching_.ignored.begin(), matching_.ignored.end(),
                       [&](const std::string& name) { return matchesGlob(glob, name); }))
        return Error::badInput("--ignore '{}' matches no tensor of the file", glob);
    return {};
  }

  const Destination* find(const std::string& name) {
    if (const auto found = canonical_.find(name); found != canonical_.end())
      return found->second;
    if (const auto found = aliases_.find(name); found != aliases_.end()) {
      matching_.notes.push_back(fmt::format("'{}' is tied to '{}': loaded there", shown(name),
                                            shown(found->second->entry.name)));
      return found->second;
    }
    return nullptr;
  }

  std::string applyRenames(const std::string& name) {
    for (const auto& [from, to] : request_.renames)
      if (std::string result = renamed(name, from, to); !result.empty()) {
        usedRenames_.insert(from);
        return result;
      }
    return name;
  }

  const Destination* resolve(const std::string& storedName) {
    const std::string name = applyRenames(storedName);
    if (const Destination* destination = find(name))
      return destination;
    for (ModuleWraps wraps : {ModuleWraps::InFront, ModuleWraps::Anywhere}) {
      const std::string stripped = stripWrapperSegments(name, wraps);
      const Destination* destination = stripped == name ? nullptr : find(stripped);
      if (destination && stripped_++ == 0)
        strippedExample_ = fmt::format("'{}' is '{}'", shown(name), shown(stripped));
      if (destination)
        return destination;
    }
    return nullptr;
  }

  Status place(const std::string& name, const StoredTensors::Tensor& tensor) {
    if (matchesAny(request_.ignored, name)) {
      matching_.ignored.push_back(name);
      if (const Destination* destination = wantedBy(name))
        leftOut_.try_emplace(destination, name);
      return {};
    }
    const Destination* destination = resolve(name);
    if (destination ? isFresh(destination->entry.name) : isFresh(name)) {
      matching_.notes.push_back(fmt::format("'{}' was not loaded: --fresh", name));
      return {};
    }
    if (!destination) {
      diff_.unexpected({shown(name), tensor.dtype, tensor.shape});
      return {};
    }
    const auto [found, isNew] = placed_.try_emplace(destination, &tensor);
    if (!isNew && !TITAN_TRY(found->second->sameAs(tensor)))
      return Error::badInput("'{}' and '{}' both hold '{}', with different values",
                             shown(found->second->name), shown(name),
                             shown(destination->entry.name));
    return {};
  }

  void compare(const TableEntry& entry, const Destination& destination,
               const StoredTensors::Tensor& tensor) {
    const bool isSame = entry.dtype == tensor.dtype, exact = isExact(tensor.dtype, entry.dtype);
    const bool rounds = !exact && isFloat(tensor.dtype) && isFloat(entry.dtype);
    const bool fits = isSame || (exact && request_.conversions != Conversions::None) ||
                      (rounds && request_.conversions == Conversions::Rounding);
    if (entry.shape != tensor.shape || !fits) {
      const bool couldRound =
          rounds && entry.shape == tensor.shape && request_.conversions == Conversions::Exact;
      diff_.mismatch({shown(entry.name), entry.dtype, entry.shape},
                     {shown(tensor.name), tensor.dtype, tensor.shape},
                     couldRound ? "--cast rounds it" : "");
      return;
    }
    matching_.matches.push_back({&destination, &tensor});
    if (!isSame)
      (exact ? exact_ : rounded_)[{tensor.dtype, entry.dtype}].push_back(entry.name);
  }

  /// Which destination the stored name would be for, without a note.
  const Destination* wantedBy(const std::string& storedName) {
    const std::vector<std::string> notes = matching_.notes;
    const int stripped = stripped_;
    const Destination* destination = resolve(storedName);
    matching_.notes = notes;
    stripped_ = stripped;
    return destination;
  }

  /// A note on all of `names`, where there are any.
  void summarize(const std::vector<std::string>& names, std::string_view what) {
    constexpr size_t most = 3;
    if (names.empty())
      return;
    std::vector<std::string> some(
        names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most)));
    matching_.notes.push_back(fmt::format("{} tensor(s) {}: '{}'{}", names.size(), what,
                                          fmt::join(some, "', '"),
                                          names.size() > most ? ", ..." : ""));
  }

  void summarizeStripped() {
    if (stripped_ > 0)
      matching_.notes.push_back(fmt::format("wrapper segments were stripped from {} name(s): {}{}",
                                            stripped_, strippedExample_,
                                            stripped_ > 1 ? ", ..." : ""));
  }

  const MatchRequest& request_;
  Diff& diff_;
  std::map<std::string, const Destination*> canonical_, aliases_;
  std::map<const Destination*, const StoredTensors::Tensor*> placed_;
  std::set<std::string> usedRenames_;
  std::map<const Destination*, std::string> leftOut_;         ///< by --ignore: names in the file
  using Types = std::pair<DType, DType>;                      ///< of the file, of the program
  std::map<Types, std::vector<std::string>> exact_, rounded_; ///< canonical names
  int stripped_ = 0;
  std::string strippedExample_;
  Matching matching_;
};

/// The tensor's elements, as the type that its destination has.
Status readTo(const ByteSink& sink, const Match& match) {
  const DType from = match.tensor->dtype, to = match.destination->entry.dtype;
  if (from == to)
    return match.tensor->readInto(sink);
  Status read = match.tensor->readInto(convertingSink(from, to, sink));
  if (!read.ok())
    return read.takeError().withContext(fmt::format("tensor '{}'", match.tensor->name));
  return {};
}

} // namespace

Status checkRounding(const std::vector<Match>& matches) {
  const auto ignore = [](int64_t, std::span<const char>) { return Status(); };
  for (const Match& match : matches) {
    const DType from = match.tensor->dtype, to = match.destination->entry.dtype;
    if (from != to && !isExact(from, to))
      TITAN_TRY(
          readTo(ByteSink::taken(elementCount(match.tensor->shape) * byteSize(to), ignore), match));
  }
  return {};
}

Status readMatches(const std::vector<Match>& matches) {
  for (const Match& match : matches)
    if (Status read = readTo(match.destination->sink, match); !read.ok())
      return Error(read.error().code(),
                   fmt::format("{}; the state is loaded in part, nothing was saved: start again",
                               read.error().message()));
  return {};
}

Result<std::map<std::string, std::string>> parseRenames(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> renames;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return Error::usage("--map '{}' is not <name in the file>=<canonical name>", text);
    renames[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return renames;
}

Result<Matching> matchNames(const MatchRequest& request, const StoredTensors& stored, Diff& diff) {
  return Matcher(request, diff).run(stored);
}

} // namespace titan::checkpoint
