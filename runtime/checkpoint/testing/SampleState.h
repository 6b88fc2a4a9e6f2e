// A small training state that has one of everything: what the tests save and load.
#pragma once

#include "runtime/checkpoint/Load.h"

#include <map>

namespace titan::checkpoint {

class SampleState {
public:
  /// Parameters in two dtypes, one of them tied; a scalar and an empty buffer; two slots; four
  /// counters. Equal values of `fill` give equal bytes, different ones different.
  explicit SampleState(uint8_t fill = 0);

  void add(const std::string& name, StateKind kind, DType dtype, Shape shape,
           std::vector<std::string> aliases = {}, const std::string& profile = {});
  /// An average of each parameter under each of `profiles`.
  void addAverages(const std::vector<std::string>& profiles);
  void remove(const std::string& name);
  void refill(uint8_t fill);

  SaveRequest saveRequest(int64_t step) const;
  std::vector<Destination> destinations();
  LoadRequest loadRequest();
  InitRequest initRequest();

  TableEntry& entry(const std::string& name);
  /// Of an average: "<profile>/<name>".
  std::string& bytes(const std::string& name) { return bytes_.at(name); }
  ProgramInfo program;
  bool operator==(const SampleState&) const = default;

private:
  std::map<std::string, std::string> bytes_;
};

/// With averages of the profiles "fast" and "slow".
SampleState withAverages(uint8_t fill);

} // namespace titan::checkpoint
