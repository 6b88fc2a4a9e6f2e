// What somebody sees of a run who holds no lock.
#include "runtime/checkpoint/RunListing.h"

#include "runtime/checkpoint/SavePlan.h"
#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/SampleState.h"
#include "runtime/checkpoint/testing/TemporaryDirectory.h"

#include <gtest/gtest.h>

#include <fstream>

namespace titan::checkpoint {
namespace {

using State = RunEntry::State;

TEST(LockText, IsReadBack) {
  for (const LockText& text :
       {LockText{"pid 1 on a", {}}, LockText{"pid 2 on b", {{200, 1493012480}}}}) {
    const LockText read = LockText::parse(text.toString());
    EXPECT_EQ(read.holder, text.holder);
    EXPECT_EQ(read.save, text.save);
  }
}

TEST(LockText, OfAnythingElseSaysNoSave) {
  EXPECT_EQ(LockText::parse("").holder, "");
  for (const char* text : {"me", "me\n", "me\nsaving step 2", "me\nsaving step 2 of -3 bytes\n",
                           "me\nsaving step 99999999999999999999 of 3 bytes\n",
                           "me\nsaving step 2 of 3 bytes more\n", "me\nsaving step x of 3 bytes"}) {
    const LockText read = LockText::parse(text);
    EXPECT_EQ(read.holder, "me") << text;
    EXPECT_FALSE(read.save) << text;
  }
}

TEST(RunListing, OfNothingIsEmpty) {
  CrashEnv env;
  EXPECT_TRUE(listRun(env, "run")->entries.empty());
}

TEST(RunListing, KnowsEachState) {
  CrashEnv env;
  {
    auto store = CheckpointStore::open("run", env);
    for (int64_t step : {1, 2, 3})
      ASSERT_TRUE(store->save(SampleState(7).saveRequest(step), 0).ok());
    ASSERT_TRUE(store->setAsideAfter(2).ok());
  }
  EXPECT_FALSE(listRun(env, "run")->isHeld);
  ASSERT_TRUE(env.makeDirectory("run/checkpoints/.attempt-step-00000004-00ff").ok());
  ASSERT_TRUE(env.makeDirectory("run/checkpoints/.attempt-preflight-00ff").ok());
  ASSERT_TRUE(env.makeDirectory("run/checkpoints/.doomed-step-00000000-00ff").ok());
  ASSERT_TRUE(env.makeDirectory("run/checkpoints/somebodys").ok());
  const RunListing listing = listRun(env, "run").take();
  std::vector<std::pair<State, std::optional<int64_t>>> found;
  for (const RunEntry& entry : listing.entries)
    found.emplace_back(entry.state, entry.step);
  EXPECT_EQ(found, (decltype(found){{State::Committed, 1},
                                    {State::Committed, 2},
                                    {State::Saving, std::nullopt},
                                    {State::Saving, 4},
                                    {State::Deleting, 0},
                                    {State::SetAside, 3}}));
  EXPECT_FALSE(listing.isHeld);
}

// Beside a save: after each tensor that it has read.
TEST(RunListing, SeesASaveGrow) {
  const TemporaryDirectory directory;
  Env& env = posixEnv();
  auto store = CheckpointStore::open(directory.path("run"));
  ASSERT_TRUE(store.ok());
  SampleState state(7);
  state.add("large", StateKind::Buffer, DType::F64, {3'000'000}); // first in its file
  const SaveRequest request = state.saveRequest(5);
  const auto plan = store->plan(request);
  ASSERT_TRUE(plan.ok());
  int64_t total = 0, seen = 0;
  for (const TensorView& tensor : request.tensors)
    total += tensor.bytes();
  std::vector<int64_t> bytes;
  const auto look = [&](const TensorView&) {
    const RunListing listing = listRun(env, directory.path("run")).take();
    ++seen;
    ASSERT_EQ(listing.entries.size(), 1u);
    EXPECT_EQ(listing.entries[0].state, State::Saving);
    EXPECT_EQ(listing.entries[0].step, 5);
    EXPECT_EQ(listing.entries[0].total, total);
    EXPECT_TRUE(listing.isHeld);
    EXPECT_TRUE(listing.holder.starts_with("pid ")) << listing.holder;
    bytes.push_back(listing.entries[0].bytes);
  };
  ASSERT_TRUE(store->save(*plan, {5, request.counters, look}, 0).ok());
  EXPECT_EQ(seen, std::ssize(request.tensors));
  EXPECT_TRUE(std::ranges::is_sorted(bytes));
  EXPECT_GT(bytes.back(), total / 2);
  // The save is over, and the run is not.
  const LockText text =
      LockText::parse(readWholeFile(env, directory.path("run/.lock"), 1000).take());
  EXPECT_FALSE(text.save);
  const auto other = CheckpointStore::open(directory.path("run"));
  EXPECT_NE(other.error().message().find(fmt::format("another process ({}): wait", text.holder)),
            std::string::npos)
      << other.error().message();
  const RunListing after = listRun(env, directory.path("run")).take();
  ASSERT_EQ(after.entries.size(), 1u);
  EXPECT_EQ(after.entries[0].state, State::Committed);
}

void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

TEST(RunListing, SeesHooksAsTheirRunKnowsThem) {
  using Kind = HookState::Kind;
  const TemporaryDirectory directory;
  const std::string run = directory.path("run"), states = hookStatesPath(run);
  auto store = CheckpointStore::open(run);
  ASSERT_TRUE(store.ok());
  for (const int64_t step : {1, 2, 3, 4})
    ASSERT_TRUE(store->save(SampleState(7).saveRequest(step), 0).ok());
  const auto hooks = [&] {
    std::vector<std::string> found;
    for (const RunEntry& entry : listRun(posixEnv(), run).take().entries)
      found.push_back(!entry.hook
                          ? ""
                          : fmt::format("{}{}{}", nameOf(entry.hook->kind),
                                        entry.hook->how.empty() ? "" : ": ", entry.hook->how));
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(hooks(), (Names{"", "", "", ""}));
  const std::string self = describeSelf();
  append(states, hookLine(1, {Kind::Running, "", self}));
  append(states, hookLine(2, {Kind::Waiting, "", self}));
  EXPECT_EQ(hooks(), (Names{"running", "waiting", "", ""}));
  append(states, hookLine(1, {Kind::Failed, "exit status \"3\"", self}));
  append(states, hookLine(2, {Kind::LeftOut, "", self}));
  append(states, hookLine(3, {Kind::Done, "", self}));
  append(states, "{\"step\": 3, \"state\": \"unknown\", \"by\": \"x\"}\n\xff\n[]\n");
  append(states, hookLine(4, {Kind::Running, "", self}));
  append(states, "{\"step\": 4, \"state\": \"do"); // torn
  EXPECT_EQ(hooks(), (Names{"failed: exit status \"3\"", "left out", "done", "running"}));
  // Another run of the directory knows nothing of the hooks before it.
  append(states, "\n" + hookLine(4, {Kind::Running, "", "pid 1 on elsewhere"}));
  EXPECT_EQ(hooks(), (Names{"failed: exit status \"3\"", "left out", "done", "unknown"}));
  append(states, hookLine(4, {Kind::Waiting, "", self}));
  EXPECT_EQ(hooks().back(), "waiting");
  store = Error::internal("closed");
  EXPECT_EQ(hooks(), (Names{"failed: exit status \"3\"", "left out", "done", "unknown"}));
}

TEST(RunListing, ASaveCostsNoSyncOfTheLock) {
  CrashEnv env;
  auto store = CheckpointStore::open("run", env);
  env.faultAtSync(-1, CrashEnv::SyncFault::Fails); // counts from here
  ASSERT_TRUE(store->save(SampleState(7).saveRequest(1), 0).ok());
  EXPECT_FALSE(env.syncs().empty());
  for (const std::string& path : env.syncs())
    EXPECT_TRUE(path.find("/checkpoints") != std::string::npos) << path;
}

} // namespace
} // namespace titan::checkpoint
