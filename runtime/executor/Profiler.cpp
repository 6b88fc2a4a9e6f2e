#include "runtime/executor/Profiler.h"

#include "runtime/program/Text.h"

#include <algorithm>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

namespace titan {

Profiler::Profiler(const Program& program, size_t maxEvents)
    : maxEvents_(maxEvents), origin_(Clock::now()) {
  events_.reserve(maxEvents);
  std::map<std::pair<std::string, Phase>, uint32_t> indices;
  for (const Function& function : program.functions) {
    auto& labels = labels_.emplace_back(&function, std::vector<uint32_t>{}).second;
    for (const Command& command : function.commands) {
      auto [it, added] = indices.emplace(std::pair(titan::labelOf(program, command), command.phase),
                                         static_cast<uint32_t>(rows_.size()));
      if (added)
        rows_.push_back({.label = it->first.first, .kind = command.kind, .phase = command.phase});
      labels.push_back(it->second);
    }
  }
}

uint32_t Profiler::labelOf(const Function& function, uint32_t command) const {
  auto it = std::ranges::find(labels_, &function, &decltype(labels_)::value_type::first);
  return it->second[command];
}

void Profiler::beforeFunction(const Function&) { functionStart_ = Clock::now(); }

void Profiler::before(const Function&, uint32_t) { commandStart_ = Clock::now(); }

void Profiler::took(const Function&, uint32_t, double seconds) { measured_ = seconds; }

void Profiler::after(const Function& function, uint32_t index) {
  Clock::time_point end = Clock::now();
  if (const std::optional<double> measured = std::exchange(measured_, {}))
    end = commandStart_ +
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*measured));
  const Command& command = function.commands[index];
  if (command.kind == CommandKind::EndRepeat)
    return; // its commands were timed one by one
  const uint32_t label = labelOf(function, index);
  ProfileRow& row = rows_[label];
  ++row.calls;
  row.seconds += std::chrono::duration<double>(end - commandStart_).count();
  row.flops += command.flops;
  row.bytes += command.bytes;
  if (events_.size() < maxEvents_)
    events_.push_back({label, commandStart_, end});
}

void Profiler::afterFunction(const Function&) {
  seconds_ += std::chrono::duration<double>(Clock::now() - functionStart_).count();
}

std::vector<ProfileRow> Profiler::rows() const {
  std::vector<ProfileRow> rows;
  std::ranges::copy_if(rows_, std::back_inserter(rows),
                       [](const ProfileRow& row) { return row.calls > 0; });
  std::ranges::sort(rows, [](const ProfileRow& a, const ProfileRow& b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.label < b.label;
  });
  return rows;
}

std::string Profiler::chromeTrace() const {
  using Microseconds = std::chrono::duration<double, std::micro>;
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  for (const Event& event : events_)
    events.push_back({{"name", rows_[event.label].label},
                      {"ph", "X"},
                      {"pid", 0},
                      {"tid", 0},
                      {"ts", Microseconds(event.start - origin_).count()},
                      {"dur", Microseconds(event.end - event.start).count()}});
  return nlohmann::ordered_json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}}
      .dump();
}

} // namespace titan
