// A profile as a table: kernels, groups of kernels and modules, beside what the machine can do.
#pragma once

#include "runtime/collective/Communicator.h"
#include "runtime/device/MachineLimits.h"
#include "runtime/executor/Figures.h"
#include "runtime/executor/Profiler.h"
#include "runtime/job/ChooseDevice.h"

#include <nlohmann/json.hpp>

#include <span>
#include <string>
#include <vector>

namespace titan {

struct Measurement {
  int64_t steps = 0;
  double plainSeconds = 0, profiledSeconds = 0; ///< per step, without and with the profiler
  MachineLimits limits;
  std::vector<GraphFigures> graphs; ///< of the device
  Figures recorded;                 ///< of one step, counted while it ran
  std::vector<ProfileRow> rows;
  std::vector<Traffic> traffic;    ///< of all steps, by collective of the program
  std::vector<int64_t> movedByAll; ///< Traffic::moved of all ranks together
  Traffic firstWeights;            ///< of the broadcasts that brought them
  int64_t firstWeightsMovedByAll = 0;
};

/// Time of one step, spent on one kind of work or for one module.
struct ProfileShare {
  std::string name;
  double seconds = 0; ///< measured
  double least = 0;   ///< what the machine needs at least: MachineLimits::least of each call
};

/// The least time of a whole step: the products that the model asks for at the product ceiling, and
/// one pass over what the optimizer reads and writes, at the speed of memory.
struct StepBound {
  double modelFlops = 0;     ///< one rank's part of Function::modelFlops of the step
  double optimizerBytes = 0; ///< parameters and slots read and written, gradients read
  double productSeconds = 0, optimizerSeconds = 0;
  double seconds() const { return productSeconds + optimizerSeconds; }
};

/// By time, the longest first.
std::vector<ProfileShare> shareByGroup(const Measurement& measurement);
/// Of a kernel that works for several modules, each gets an equal part.
std::vector<ProfileShare> shareByModule(const Measurement& measurement);
StepBound boundOf(const Measurement& measurement, const Program& program);

/// Where the program has collectives, with countedText().
std::string profileText(const Measurement& measurement, const Program& program);
/// Where the program has collectives, `communication` is countedJson(), and countedHostJson()
/// of the first weights.
nlohmann::ordered_json profileJson(const Measurement& measurement, const Program& program);

} // namespace titan
