#include "runtime/checkpoint/SavePlan.h"

#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/SampleState.h"
#include "runtime/checkpoint/testing/TemporaryDirectory.h"
#include "runtime/host/testing/Allocations.h"

#include <gtest/gtest.h>

namespace titan::checkpoint {
namespace {

/// The files at and below `path`, by name.
std::map<std::string, std::string> filesBelow(Env& env, const std::string& path) {
  std::map<std::string, std::string> files;
  for (const DirectoryEntry& entry : env.readDirectory(path).take()) {
    const std::string child = joinPath(path, entry.name);
    if (entry.kind == FileKind::Directory)
      for (auto& [name, bytes] : filesBelow(env, child))
        files[joinPath(entry.name, name)] = std::move(bytes);
    else
      files[entry.name] = readWholeFile(env, child, 1 << 20).take();
  }
  return files;
}

TEST(SavePlan, SavesTheBytesOfSavesThatComeOnce) {
  CrashEnv env;
  auto planned = CheckpointStore::open("planned", env),
       single = CheckpointStore::open("single", env);
  SampleState state = withAverages(3);
  const auto plan = planned->preflight(state.saveRequest(1), 0);
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  for (const int64_t step : {1, 7, 1'000'000'007}) {
    state.refill(static_cast<uint8_t>(step));
    const SaveRequest request = state.saveRequest(step);
    const auto report = planned->save(*plan, {step, request.counters}, 0);
    ASSERT_TRUE(report.ok()) << report.error().message();
    const auto other = single->save(request, 0);
    ASSERT_TRUE(other.ok()) << other.error().message();
    EXPECT_EQ(report->bytes, other->bytes);
    EXPECT_EQ(filesBelow(env, report->path), filesBelow(env, other->path));
  }
}

/// What each save of `tensors` more tensors allocates, once it has run for a while.
int64_t allocationsOfASave(int tensors) {
  const TemporaryDirectory directory;
  SampleState state = withAverages(3);
  for (int i = 0; i < tensors; ++i)
    state.add(fmt::format("layers.{}.a_name_that_no_short_string_holds", i), StateKind::Param,
              DType::F32, {7});
  auto store = CheckpointStore::open(directory.path("run"));
  const SaveRequest request = state.saveRequest(0);
  const auto plan = store->preflight(request, 2);
  EXPECT_TRUE(plan.ok()) << plan.error().message();
  std::vector<int64_t> each;
  for (int64_t step = 10; step < 20; ++step) {
    const int64_t before = testing::allocations();
    EXPECT_TRUE(store->save(*plan, {step, request.counters}, 2).ok());
    each.push_back(testing::allocations() - before);
  }
  // The first ones delete nothing.
  for (size_t i = 3; i < each.size(); ++i)
    EXPECT_EQ(each[i], each[2]) << "save " << i;
  return each.back();
}

TEST(SavePlan, ASaveAllocatesAsMuchForManyTensors) {
  const int64_t few = allocationsOfASave(1);
  EXPECT_GT(few, 0);
  EXPECT_EQ(allocationsOfASave(2000), few);
}

TEST(SavePlan, ReadsTheSameTensorsFromOtherPlaces) {
  CrashEnv env;
  auto store = CheckpointStore::open("run", env);
  SampleState state(1);
  const SampleState other(2);
  auto plan = store->plan(state.saveRequest(1)).take();
  EXPECT_EQ(plan.borrowed(), 0);
  SaveRequest request = other.saveRequest(2);
  for (TensorView& tensor : request.tensors)
    tensor.isBorrowed = true;
  ASSERT_TRUE(plan.readFrom(request.tensors).ok());
  EXPECT_EQ(plan.borrowed(), std::ssize(request.tensors));
  ASSERT_TRUE(store->save(plan, {2, request.counters}, 0).ok());
  SampleState loaded(255);
  ASSERT_TRUE(load("run/checkpoints/step-00000002", loaded.loadRequest(), env).ok());
  EXPECT_EQ(loaded, other);

  request.tensors[1].dtype = DType::F64;
  EXPECT_EQ(plan.readFrom(request.tensors).error().message(),
            "a save of other tensors than were planned");
  request.tensors.pop_back();
  EXPECT_EQ(plan.readFrom(request.tensors).error().code(), ErrorCode::Internal);
  request.counters.erase("samples");
  EXPECT_EQ(store->save(plan, {3, request.counters}, 0).error().message(),
            "a save of other counters than were planned");
}

} // namespace
} // namespace titan::checkpoint
