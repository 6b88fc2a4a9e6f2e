#include "runtime/job/Averages.h"

#include "runtime/job/Scalars.h"

#include <algorithm>
#include <set>

namespace titan {

namespace {

/// An average and what it is of.
struct Pair {
  Place model, average;
};

Result<std::vector<Pair>> pairsOf(const StateAccess& access, std::string_view profile) {
  std::vector<Pair> pairs;
  for (const State& average : access.program().states) {
    if (average.kind != StateKind::Ema || average.profile != profile)
      continue;
    std::optional<Place> model = access.state(StateKind::Param, {}, average.name);
    if (!model)
      model = access.state(StateKind::Buffer, {}, average.name);
    const Place place = placeOf(average);
    if (!model)
      return Error::internal("the average '{}' is of no parameter and no buffer", average.name);
    if (model->dtype != place.dtype || model->bytes != place.bytes)
      return Error::badInput("'{}' is {} of {} bytes here, and its average {} of {}: one cannot "
                             "stand in the other's place",
                             average.name, name(model->dtype), model->bytes, name(place.dtype),
                             place.bytes);
    pairs.push_back({*model, place});
  }
  return pairs;
}

/// `see(first, bytes)` for one piece of a place of `bytes` bytes after the other.
template <typename See> Status inPieces(int64_t bytes, See see) {
  for (int64_t first = 0; first < bytes; first += StateAccess::pieceBytes)
    TITAN_TRY(see(first, static_cast<size_t>(std::min(StateAccess::pieceBytes, bytes - first))));
  return {};
}

Status exchange(StateAccess& access, const Pair& pair) {
  std::vector<char> ofModel, ofAverage;
  return inPieces(pair.model.bytes, [&](int64_t first, size_t bytes) -> Status {
    ofModel.resize(bytes);
    ofAverage.resize(bytes);
    TITAN_TRY(access.read(pair.model, first, ofModel));
    TITAN_TRY(access.read(pair.average, first, ofAverage));
    TITAN_TRY(access.write(pair.model, first, ofAverage));
    return access.write(pair.average, first, ofModel);
  });
}

/// The average becomes what it is of.
Status begin(StateAccess& access, const Pair& pair) {
  std::vector<char> piece;
  return inPieces(pair.model.bytes, [&](int64_t first, size_t bytes) -> Status {
    piece.resize(bytes);
    TITAN_TRY(access.read(pair.model, first, piece));
    return access.write(pair.average, first, piece);
  });
}

std::set<std::string> profilesOf(const Recipe& recipe) {
  std::set<std::string> profiles;
  for (const auto& [name, profile] : recipe.ema.profiles)
    profiles.insert(name);
  return profiles;
}

std::string listOf(const std::set<std::string>& profiles) {
  return profiles.empty() ? "none" : fmt::format("'{}'", fmt::join(profiles, "', '"));
}

std::vector<std::string> without(const std::set<std::string>& profiles,
                                 const std::set<std::string>& others) {
  std::vector<std::string> left;
  std::ranges::set_difference(profiles, others, std::back_inserter(left));
  return left;
}

void record(std::vector<std::string>& list, const std::string& profile) {
  if (std::ranges::find(list, profile) == list.end())
    list.push_back(profile);
}

} // namespace

Status exchangeAverages(StateAccess& access, std::string_view profile) {
  for (const Pair& pair : TITAN_TRY(pairsOf(access, profile)))
    TITAN_TRY(exchange(access, pair));
  return {};
}

Status useAverages(Session& session, const std::string& profile,
                   const checkpoint::Manifest* loaded) {
  const std::set<std::string> kept = profilesOf(session.recipe());
  if (!kept.contains(profile))
    return Error::badInput("the job keeps no averages '{}': it keeps {}", profile, listOf(kept));
  if (loaded)
    if (const std::set<std::string> saved = checkpoint::profilesOf(loaded->program);
        !saved.contains(profile))
      return Error::badInput("the checkpoint has no averages '{}': it has {}", profile,
                             listOf(saved));
  const int64_t updates = TITAN_TRY(counter(session.access(), "optimizer.t")).count();
  if (const std::string why = session.recipe().ema.profiles.at(profile).whyNone(updates);
      !why.empty())
    return Error::badInput("there are no averages '{}' yet: {}", profile, why);
  return exchangeAverages(session.access(), profile);
}

Result<checkpoint::LoadRequest> requestForTraining(Session& session) {
  const JobOptions& options = session.options();
  const std::set<std::string> kept = profilesOf(session.recipe());
  for (const std::string& profile : options.emaStart)
    if (!kept.contains(profile))
      return Error::badInput("--ema-start {}: the job keeps no such averages; it keeps {}", profile,
                             listOf(kept));
  for (const std::string& profile : options.emaDrop)
    if (kept.contains(profile))
      return Error::badInput("--ema-drop {}: the job keeps these averages; compile it without them",
                             profile);
  checkpoint::LoadRequest request = session.loadRequest();
  request.started = options.emaStart;
  request.dropped = options.emaDrop;
  return request;
}

checkpoint::LoadRequest requestForReading(Session& session,
                                          const std::optional<checkpoint::Manifest>& saved) {
  checkpoint::LoadRequest request = session.loadRequest();
  const std::set<std::string> kept = profilesOf(session.recipe());
  request.started.assign(kept.begin(), kept.end());
  if (saved)
    request.dropped = without(checkpoint::profilesOf(saved->program), kept);
  return request;
}

Status startAverages(Session& session, checkpoint::Manifest& loaded) {
  const JobOptions& options = session.options();
  const std::set<std::string> saved = checkpoint::profilesOf(loaded.program);
  for (const std::string& profile : options.emaStart) {
    if (saved.contains(profile)) {
      session.note(fmt::format("the checkpoint has averages '{}': they go on", profile));
      continue;
    }
    for (const Pair& pair : TITAN_TRY(pairsOf(session.access(), profile)))
      TITAN_TRY(begin(session.access(), pair));
    session.note(fmt::format("averages '{}' begin as the parameters of this checkpoint", profile));
    record(loaded.init.averagesStarted, profile);
  }
  for (const std::string& profile : options.emaDrop) {
    session.note(saved.contains(profile)
                     ? fmt::format("averages '{}' of the checkpoint are left out", profile)
                     : fmt::format("the checkpoint has no averages '{}' to leave out", profile));
    if (saved.contains(profile))
      record(loaded.init.averagesDropped, profile);
  }
  return {};
}

} // namespace titan
