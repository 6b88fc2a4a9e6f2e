#include "runtime/launch/FlightFiles.h"

#include "runtime/collective/CommDelay.h"
#include "runtime/collective/FlightRecorder.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

namespace titan::launch {
namespace {

using Json = nlohmann::ordered_json;

Json seconds(int64_t nanoseconds) {
  return nanoseconds == 0 ? Json() : Json(static_cast<double>(nanoseconds) / 1e9);
}

Json stepJson(int64_t step) { return step < 0 ? Json() : Json(step); }

Json flightJson(const Flight& flight) {
  const char* state = flight.done != 0 ? "done" : flight.waited != 0 ? "waited" : "started";
  return {{"number", flight.number},
          {"collective", flight.collective},
          {"name", flight.name},
          {"step", stepJson(flight.step)},
          {"state", state},
          {"started", seconds(flight.started)},
          {"waited", seconds(flight.waited)},
          {"done", seconds(flight.done)}};
}

Json failureJson(const Failure& failure) {
  Json json = {{"code", failure.code}};
  if (failure.rank != nobody)
    json["rank"] = failure.rank;
  json["message"] = failure.message;
  return json;
}

Json rankJson(const ControlBlock& block, int64_t rank) {
  const RankSlot& slot = block.slot(rank);
  const std::optional<Failure> failure = block.failure();
  Json json = {{"version", 1},
               {"rank", rank},
               {"ranks", block.ranks()},
               {"pid", slot.pid.load()},
               {"step", stepJson(slot.step)},
               {"waiting", slot.waiting ? Json(slot.waitName.load()) : Json()},
               {"failure", failure ? failureJson(*failure) : Json()},
               {"written", seconds(monotonicNow())},
               {"collectives", Json::array()}};
  for (const Flight& flight : flightsOf(block, rank))
    json["collectives"].push_back(flightJson(flight));
  return json;
}

std::error_code write(const ControlBlock& block, int64_t rank,
                      const std::filesystem::path& folder) {
  std::ofstream file(folder / fmt::format("rank-{:04}.json", rank));
  file << rankJson(block, rank).dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
  return file.flush() ? std::error_code() : std::make_error_code(std::errc::io_error);
}

Result<std::string> written(const std::filesystem::path& folder, std::error_code error) {
  if (error)
    return Error::environment("cannot write '{}': {}", folder.string(), error.message());
  return folder.string();
}

} // namespace

Result<std::string> writeFlightFiles(const ControlBlock& block, const std::string& runDirectory) {
  const std::filesystem::path folder = std::filesystem::path(runDirectory) / "ranks";
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  std::filesystem::create_directory(folder, error);
  for (int64_t rank = 0; rank < block.ranks() && !error; ++rank)
    error = write(block, rank, folder);
  return written(folder, error);
}

Result<std::string> writeFlightFile(const ControlBlock& block, int64_t rank,
                                    const std::string& runDirectory) {
  const std::filesystem::path folder = std::filesystem::path(runDirectory) / "ranks";
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  return written(folder, error ? error : write(block, rank, folder));
}

} // namespace titan::launch
