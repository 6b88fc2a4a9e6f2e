// No event of a run is there for nothing: in steps whose batches travel while the step before runs,
// whose losses come late and beside which a state is saved, each one that is left out shows.
#include "runtime/device/cuda/testing/CudaRun.h"

#include <map>

namespace titan {
namespace {

using testing::CudaRun;
using testing::FakeVariable;
using testing::Record;

constexpr int steps = 8, saveStep = 4, seeds = 64;
/// What orders streams and the host.
constexpr const char* orders[] = {"cuEventRecord", "cuStreamWaitEvent", "cuEventSynchronize",
                                  "cuStreamSynchronize"};

/// Steps as the job runs them: two batches in pinned memory, a page for each loss. A save copies a
/// state from before a step while that runs.
struct PipelinedRun : CudaRun {
  int endOfSave = 0; ///< step behind which the save is waited for; 0: there is none
  /// Called where the calls of the driver begin that a test is about, and where they end.
  std::function<void()> begin = [] {}, end = [] {};

  /// The bytes of all losses, of what was saved and of the states, or the text of an error.
  std::string outcome() {
    Result<std::string> bytes = run();
    return bytes.ok() ? bytes.take() : bytes.error().message();
  }

private:
  Result<std::string> run() {
    train(1); // with which the learning rate is on the card
    for (Batch& batch : batches)
      batch = {TITAN_TRY(device->hostBuffer(x.bytes)),
               TITAN_TRY(device->hostBuffer(targets.bytes))};
    for (std::span<char>& page : pages)
      page = TITAN_TRY(device->hostBuffer(loss.bytes));
    saved = TITAN_TRY(device->hostBuffer(weight.bytes));
    reader = TITAN_TRY(device->reader());
    std::string bytes;
    TITAN_TRY(upload(0));
    for (int step = 0; step < steps; ++step) {
      if (endOfSave == 0 && step == 2)
        begin();
      if (endOfSave == 0 && step == steps - 2) // whose batch is the last one that others may meet
        end();
      TITAN_TRY(runStep(step));
      if (step > 0) {
        TITAN_TRY(device->wait(events[step - 1]));
        bytes.append(pages[step - 1].begin(), pages[step - 1].end());
      }
      if (endOfSave != 0 && step == endOfSave)
        bytes += TITAN_TRY(endSave());
      TITAN_TRY(upload(step + 1)); // over the batch of step - 1, which has run
    }
    return bytes + stateBytes();
  }

  Status runStep(int step) {
    const bool saves = endOfSave != 0 && step == saveStep, isTested = saves && endOfSave > step;
    if (isTested)
      begin();
    if (saves) {
      TITAN_TRY(access->settle());
      TITAN_TRY(reader->download(weight.offset, saved));
      device->setGate([this] { (void)reader->hold(); });
    }
    TITAN_TRY(device->run(0, nullptr));
    if (isTested)
      end();
    TITAN_TRY(device->download(loss.offset, pages[step]));
    events[step] = device->record();
    return {};
  }

  Result<std::string> endSave() {
    if (endOfSave == saveStep)
      begin();
    TITAN_TRY(reader->wait());
    if (endOfSave == saveStep)
      end();
    return std::string(saved.data(), saved.size());
  }

  Status upload(int step) {
    const Batch& batch = batches[step % 2];
    fillWith(batch.x, step);
    fillWith(batch.targets, steps + step);
    TITAN_TRY(device->upload(x.offset, batch.x));
    return device->upload(targets.offset, batch.targets);
  }

  static void fillWith(std::span<char> bytes, int draw) {
    for (size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
      const float value = normalDraw(7, draw, static_cast<int64_t>(i));
      std::memcpy(bytes.data() + i * sizeof(float), &value, sizeof(float));
    }
  }

  struct Batch {
    std::span<char> x, targets;
  };

  const Place x = *access->binding("step", "x"), targets = *access->binding("step", "targets"),
              loss = *access->binding("step", "loss"),
              weight = *access->state(StateKind::Param, {}, "linear.weight");
  std::array<Batch, 2> batches;
  std::array<std::span<char>, steps> pages;
  std::array<Device::Event, steps> events;
  std::span<char> saved;
  std::unique_ptr<StateReader> reader; ///< ends before the device
};

std::string outcomeOf(int endOfSave) {
  PipelinedRun run;
  run.endOfSave = endOfSave;
  return run.outcome();
}

/// Leaves out each of the calls alone, in several orders of the streams; returns how many there
/// are.
int64_t checkEach(int endOfSave) {
  std::map<std::string, std::vector<int64_t>> calls;
  const std::string expected = [&] {
    const Record record;
    PipelinedRun run;
    run.endOfSave = endOfSave;
    std::map<std::string, int64_t> before;
    run.begin = [&] {
      for (const char* order : orders)
        before[order] = record.count(order);
    };
    run.end = [&] {
      for (const char* order : orders)
        for (int64_t call = before[order]; call < record.count(order); ++call)
          calls[order].push_back(call + 1);
    };
    return run.outcome();
  }();
  std::vector<std::string> all;
  for (int seed = 0; seed < seeds; ++seed)
    all.push_back(std::to_string(seed));
  for (const std::string& seed : all) {
    const FakeVariable variable("SEED", seed);
    EXPECT_EQ(outcomeOf(endOfSave), expected) << seed;
  }
  int64_t count = 0;
  for (const auto& [order, numbers] : calls)
    for (const int64_t number : numbers) {
      const FakeVariable fail("FAIL", fmt::format("{}:{}:0", order, number));
      EXPECT_TRUE(std::ranges::any_of(all,
                                      [&](const std::string& seed) {
                                        const FakeVariable variable("SEED", seed);
                                        return outcomeOf(endOfSave) != expected;
                                      }))
          << order << " number " << number;
      ++count;
    }
  return count;
}

// For each of two inputs: taken, arrived, on both streams; and the loss.
TEST(LeftOutEvents, OfSteps) { EXPECT_EQ(checkEach(0), 4 * (2 * 4 + 2)); }

// The step before has ended; the copies have, and the update waits for them.
TEST(LeftOutEvents, WhereASaveBegins) { EXPECT_EQ(checkEach(saveStep + 1), 4); }

// A step later the update would have waited already.
TEST(LeftOutEvents, WhereASaveEnds) { EXPECT_EQ(checkEach(saveStep), 1); }

} // namespace
} // namespace titan
