#include "runtime/device/cuda/StagedInputs.h"

#include <algorithm>

namespace titan::cuda {
namespace {

using Range = StagedInputs::Range;

/// Inputs of all functions; what lies inside of an earlier one shares its memory.
std::vector<Range> inputsOf(const Program& program) {
  std::vector<Range> inputs;
  const auto isKnown = [&](const Binding& binding) {
    return std::ranges::any_of(
        inputs, [&](const Range& input) { return input.holds(binding.offset, binding.bytes); });
  };
  for (const Function& function : program.functions)
    for (const Binding& binding : function.bindings)
      if (binding.role == Binding::Role::Input && !isKnown(binding))
        inputs.push_back({binding.offset, binding.bytes});
  return inputs;
}

} // namespace

int64_t StagedInputs::bytesFor(const Program& program) {
  int64_t bytes = 0;
  for (const Range& input : inputsOf(program))
    bytes += wholeLines(input.bytes);
  return bytes;
}

Result<StagedInputs> StagedInputs::open(const Driver& driver, const Program& program,
                                        const std::string& what) {
  StagedInputs staged;
  staged.driver_ = &driver;
  staged.stream_ = TITAN_TRY(makeStream(driver, what));
  for (const Range& range : inputsOf(program)) {
    Input& input = staged.inputs_.emplace_back();
    input.range = range;
    input.staging = staged.bytes_;
    for (OwnedEvent* event : {&input.arrived, &input.taken})
      *event = TITAN_TRY(makeEvent(driver, CU_EVENT_DISABLE_TIMING, what));
    staged.bytes_ += wholeLines(range.bytes);
  }
  return staged;
}

Answer StagedInputs::allocate() {
  if (bytes_ == 0)
    return {CUDA_SUCCESS, driver_->cuMemAlloc_v2.name()};
  CUdeviceptr address = 0;
  const Answer answer = driver_->cuMemAlloc_v2(&address, static_cast<size_t>(bytes_));
  if (answer.ok())
    memory_ = OwnedMemory(*driver_, address);
  return answer;
}

const StagedInputs::Input* StagedInputs::find(int64_t offset, int64_t bytes) const {
  const auto found = std::ranges::find_if(
      inputs_, [&](const Input& input) { return input.range.holds(offset, bytes); });
  return found == inputs_.end() ? nullptr : &*found;
}

Status StagedInputs::upload(const Input& input, int64_t offset, std::span<const char> from,
                            const CardMemory& arena, CUstream commands,
                            const std::function<Status(Answer)>& check) const {
  const CUdeviceptr staged =
      memory_.get() + static_cast<uint64_t>(input.staging + offset - input.range.offset);
  // An event that was never recorded is waited for at once.
  TITAN_TRY(check(driver_->cuStreamWaitEvent(stream_.get(), input.taken.get(), 0)));
  TITAN_TRY(check(driver_->cuMemcpyHtoDAsync_v2(staged, from.data(), from.size(), stream_.get())));
  TITAN_TRY(check(driver_->cuEventRecord(input.arrived.get(), stream_.get())));
  TITAN_TRY(check(driver_->cuStreamWaitEvent(commands, input.arrived.get(), 0)));
  TITAN_TRY(arena.forEachRange(
      offset, static_cast<int64_t>(from.size()), [&](CUdeviceptr to, int64_t first, int64_t count) {
        return check(driver_->cuMemcpyDtoDAsync_v2(to, staged + static_cast<uint64_t>(first),
                                                   static_cast<size_t>(count), commands));
      }));
  return check(driver_->cuEventRecord(input.taken.get(), commands));
}

void StagedInputs::finish() const {
  if (driver_)
    (void)driver_->cuStreamSynchronize(stream_.get());
}

} // namespace titan::cuda
