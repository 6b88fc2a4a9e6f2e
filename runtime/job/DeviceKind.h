// A kind of device as a job sees it. ChooseDevice.cpp lists them; nothing else names one.
#pragma once

#include "runtime/job/ChooseDevice.h"

namespace titan {

struct DeviceKind {
  const char* name; ///< ProgramTarget::kind
  /// Environment, naming what is missing, where device `number` of this machine cannot run
  /// `program`.
  Status (*check)(const Program& program, int64_t number);
  Result<ChosenDevice> (*open)(const DeviceRequest& request);
  /// What `info` says of target, machine and libraries: an object with these three keys.
  nlohmann::ordered_json (*describe)(const Program& program, const DescribeRequest& request);
  /// The same as lines.
  std::string (*describeText)(const nlohmann::ordered_json& info);
  /// Memory of a device of its own; null: there is none.
  DeviceMemory (*memory)(const Program& program);
};

extern const DeviceKind cpuKind, cudaKind;

} // namespace titan
