#include "runtime/checkpoint/MatchNames.h"

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
    for (const Destination* destination : request_.destinations) {
      const TableEntry& entry = destination->entry;
      if (isFresh(entry.name))
        matching_.fresh.push_back(entry.name);
      else if (const auto found = placed_.find(destination); found == placed_.end())
        diff_.missing({shown(entry.name), entry.dtype, entry.shape});
      else
        compare(entry, *destination, *found->second);
    }
    summarizeStripped();
    return std::move(matching_);
  }

private:
  std::string shown(std::string_view name) const { return request_.folder.shown(name); }

  bool isFresh(const std::string& name) const {
    return std::any_of(request_.fresh.begin(), request_.fresh.end(),
                       [&](const std::string& glob) { return matchesGlob(glob, name); });
  }

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
    const std::string stripped = stripWrapperSegments(name);
    const Destination* destination = stripped == name ? nullptr : find(stripped);
    if (destination && stripped_++ == 0)
      strippedExample_ = fmt::format("'{}' is '{}'", shown(name), shown(stripped));
    return destination;
  }

  Status place(const std::string& name, const StoredTensors::Tensor& tensor) {
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
    if (entry.dtype != tensor.dtype || entry.shape != tensor.shape)
      diff_.mismatch({shown(entry.name), entry.dtype, entry.shape},
                     {shown(tensor.name), tensor.dtype, tensor.shape});
    else
      matching_.matches.push_back({&destination, &tensor});
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
  int stripped_ = 0;
  std::string strippedExample_;
  Matching matching_;
};

} // namespace

Status readMatches(const std::vector<Match>& matches) {
  for (const Match& match : matches)
    if (Status read = match.tensor->readInto(match.destination->sink); !read.ok())
      return Error(read.error().code(),
                   fmt::format("{}; the state is loaded in part, nothing was saved: start again",
                               read.error().message()));
  return {};
}

Result<Matching> matchNames(const MatchRequest& request, const StoredTensors& stored, Diff& diff) {
  return Matcher(request, diff).run(stored);
}

} // namespace titan::checkpoint
