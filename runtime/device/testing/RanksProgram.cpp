#include "runtime/device/testing/RanksProgram.h"

#include "runtime/collective/InProcess.h"
#include "runtime/device/cpu/CpuDevice.h"

#include <thread>

namespace titan::testing {

namespace {

using S = RanksShape;

// The arena: metrics, staging, results of collectives.
constexpr int64_t sums = 0, counts = 4032, gathered = 4096, metricsEnd = 8192;
constexpr int64_t staging = metricsEnd, terms = staging, count = staging + 4032,
                  part = staging + 4096, stagingEnd = staging + 8192;
constexpr int64_t reduced = stagingEnd, reducedCount = reduced + 4032, arenaEnd = reduced + 4096;
constexpr int64_t termBytes = S::elements * 4;

template <typename T> T* as(char* operand) { return reinterpret_cast<T*>(operand); }

/// operands: terms, count; scalar: the count.
void produce(char* const* operands, const int64_t* scalars, int64_t, int64_t) {
  for (int64_t j = 0; j < S::elements; ++j)
    as<float>(operands[0])[j] = static_cast<float>(1 + scalars[0] + j);
  *as<int64_t>(operands[1]) = scalars[0];
}

/// operands: reduced, reducedCount, sums, counts; scalar: the iteration.
void accumulate(char* const* operands, const int64_t* scalars, int64_t, int64_t) {
  const bool isFirst = scalars[0] == 0;
  for (int64_t j = 0; j < S::elements; ++j)
    as<float>(operands[2])[j] =
        as<float>(operands[0])[j] + (isFirst ? 0 : as<float>(operands[2])[j]);
  *as<int64_t>(operands[3]) = *as<int64_t>(operands[1]) + (isFirst ? 0 : *as<int64_t>(operands[3]));
}

/// operands: part; scalar: its value.
void producePart(char* const* operands, const int64_t* scalars, int64_t, int64_t) {
  *as<int64_t>(operands[0]) = scalars[0];
}

Operand reads(int64_t offset, int64_t bytes) { return {{offset, {}}, bytes, Access::Read}; }
Operand writes(int64_t offset, int64_t bytes) { return {{offset, {}}, bytes, Access::Write}; }

Binding metric(std::string name, DType dtype, Shape shape, int64_t offset) {
  const int64_t bytes = elementCount(shape) * byteSize(dtype);
  return {Binding::Role::Metric, std::move(name), dtype, shape, shape, offset, bytes, 0};
}

} // namespace

Program ranksProgram(int64_t replicate, int64_t shard) {
  Program program;
  program.mesh = {{"replicate", replicate}, {"shard", shard}};
  program.arenaBytes = arenaEnd;
  program.bindingBytes = metricsEnd;
  program.stagingOffset = staging, program.stagingBytes = stagingEnd - staging;
  program.temporaryBytes = arenaEnd - stagingEnd;
  program.kernels = {{"produce", "produce"}, {"accumulate", "accumulate"}, {"part", "part"}};
  std::vector<uint8_t> all;
  for (uint8_t axis : {0, 1})
    if (program.mesh[axis].ranks > 1)
      all.push_back(axis);
  program.collectives = {
      {CollectiveKind::AllReduce,
       SumOrder::Rank,
       all,
       {{DType::F32, 1, S::elements}, {DType::I64, 1, 1}},
       "terms, count"},
      {CollectiveKind::AllGather, SumOrder::Rank, {1}, {{DType::I64, 1, shard}}, "part"}};
  Function step;
  step.name = "step";
  step.bindings = {metric("sums", DType::F32, {S::elements}, sums),
                   metric("counts", DType::I64, {}, counts),
                   metric("gathered", DType::I64, {shard}, gathered)};
  auto add = [&](CommandKind kind, uint32_t target = 0, std::vector<Operand> operands = {},
                 std::vector<Affine> scalars = {}) {
    Command& command = step.commands.emplace_back();
    command.kind = kind, command.target = target;
    command.operands = std::move(operands), command.scalars = std::move(scalars);
  };
  const uint8_t p = Affine::meshVariable(0), s = Affine::meshVariable(1);
  const std::vector<Operand> reduce = {reads(terms, termBytes), reads(count, 8),
                                       writes(reduced, termBytes), writes(reducedCount, 8)};
  const std::vector<Operand> gather = {reads(part, 8), writes(gathered, 8 * shard)};
  add(CommandKind::Repeat);
  step.commands.back().launch.units = S::repeats;
  add(CommandKind::Kernel, 0, {writes(terms, termBytes), writes(count, 8)},
      {{0, {{0, 100}, {p, 1}, {s, 10}}}});
  add(CommandKind::CollectiveStart, S::allReduce, reduce);
  add(CommandKind::CollectiveWait, S::allReduce, reduce);
  add(CommandKind::Kernel, 1,
      {reads(reduced, termBytes),
       reads(reducedCount, 8),
       {{sums, {}}, termBytes, Access::Both},
       {{counts, {}}, 8, Access::Both}},
      {Affine::counter(0)});
  add(CommandKind::EndRepeat);
  add(CommandKind::Kernel, 2, {writes(part, 8)}, {{0, {{s, 7}}}});
  add(CommandKind::CollectiveStart, S::allGather, gather);
  add(CommandKind::CollectiveWait, S::allGather, gather);
  for (auto [offset, bytes] :
       {std::pair(terms, termBytes), {count, 8}, {reduced, termBytes}, {reducedCount, 8}})
    step.temporaries.push_back({offset, bytes, 1, 4});
  step.temporaries.push_back({part, 8, 6, 8});
  program.functions.push_back(std::move(step));
  return program;
}

std::span<const KernelFunction> ranksKernels() {
  static constexpr KernelFunction kernels[] = {produce, accumulate, producePart};
  return kernels;
}

Result<std::unique_ptr<Device>> makeRanksDevice(const Program& program,
                                                std::span<const KernelFunction> kernels,
                                                ThreadPool& pool, Communicator& communicator) {
  return std::unique_ptr<Device>(TITAN_TRY(
      CpuDevice::create(program, kernels, pool, {}, {&communicator, communicator.rank()})));
}

std::vector<float> expectedSums(int64_t replicate, int64_t shard) {
  std::vector<float> values(S::elements);
  const int64_t all = expectedCount(replicate, shard), terms = replicate * shard * S::repeats;
  for (int64_t j = 0; j < S::elements; ++j)
    values[j] = static_cast<float>(all + terms * (1 + j)); // whole numbers: exact
  return values;
}

int64_t expectedCount(int64_t replicate, int64_t shard) {
  int64_t all = 0;
  for (int64_t i = 0; i < S::repeats; ++i)
    for (int64_t p = 0; p < replicate; ++p)
      for (int64_t s = 0; s < shard; ++s)
        all += p + 10 * s + 100 * i;
  return all;
}

std::vector<int64_t> expectedGather(int64_t shard) {
  std::vector<int64_t> values;
  for (int64_t s = 0; s < shard; ++s)
    values.push_back(7 * s);
  return values;
}

void onRanks(int64_t ranks, const std::function<void(Communicator&)>& body) {
  const auto communicators = connectInProcess(ranks).take();
  std::vector<std::thread> threads;
  for (const std::unique_ptr<Communicator>& communicator : communicators)
    threads.emplace_back([&] { body(*communicator); });
  for (std::thread& thread : threads)
    thread.join();
}

} // namespace titan::testing
