#include "runtime/executor/Executor.h"

namespace titan {

Status Executor::prepare(std::string_view payload) {
  for (const Constant& constant : program_->constants) {
    if (constant.payloadOffset < 0 ||
        constant.payloadOffset + constant.bytes > static_cast<int64_t>(payload.size()))
      return Error::internal("a constant of {} bytes at {} leaves the job's payload of {} bytes",
                             constant.bytes, constant.payloadOffset, payload.size());
    const Place place{constant.offset, constant.bytes, DType::U8, {constant.bytes}};
    TITAN_TRY(access_->write(
        place, 0, {payload.data() + constant.payloadOffset, static_cast<size_t>(constant.bytes)}));
  }
  for (const State& state : program_->states)
    if (access_->part(state).isPadded())
      TITAN_TRY(access_->fill(placeOf(state), 0));
  return {};
}

Status Executor::run(std::string_view name) {
  return access_->run(TITAN_TRY(indexOf(name)), observer_);
}

Status Executor::begin(std::string_view name) {
  return access_->begin(TITAN_TRY(indexOf(name)), observer_);
}

Result<uint32_t> Executor::indexOf(std::string_view name) const {
  for (uint32_t i = 0; i < program_->functions.size(); ++i)
    if (program_->functions[i].name == name)
      return i;
  return Error::internal("the program has no function '{}'", name);
}

} // namespace titan
