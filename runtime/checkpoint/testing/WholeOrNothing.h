// What makes the first checkpoint of a run makes it whole or not at all, whatever fails.
#pragma once

#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/checkpoint/Load.h"
#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/FaultEnv.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

namespace titan::checkpoint {

/// Calls `save`, which saves one checkpoint of the run "b", on copies of `disk` where each operation
/// fails in turn, once and for good. `check` looks at each disk behind it.
inline void expectWholeOrNothing(CrashEnv& disk,
                                 const std::function<Result<SaveReport>(Env&)>& save,
                                 const std::function<void(Env&)>& check = {}) {
  for (const bool forGood : {false, true}) {
    bool finished = false;
    for (int64_t operation = 0; !finished; ++operation) {
      const auto copy = disk.clone();
      FaultEnv env(*copy);
      env.failAt(operation, EIO, forGood);
      const auto report = save(env);
      finished = env.failed().empty();
      SCOPED_TRACE(fmt::format("operation {}: {}", operation, env.failed()));
      if (!report.ok()) {
        EXPECT_TRUE(report.error().exitCode() == 3 || report.error().exitCode() == 5);
        EXPECT_EQ(report.error().message().find('\n'), std::string::npos);
      }
      if (check)
        check(*copy);
      const auto all = listCheckpoints(*copy, "b");
      ASSERT_TRUE(all.ok());
      // After the last rename nothing can be taken back where nothing works any more.
      EXPECT_TRUE(all->size() == (report.ok() ? 1u : 0u) || forGood);
      for (const CheckpointInfo& info : *all)
        EXPECT_TRUE(verify(info.path, *copy).ok());
      // After a failed last sync the next process removes what there is.
      ASSERT_TRUE(CheckpointStore::open("b", *copy).ok());
      EXPECT_EQ(copy->readDirectory("b/checkpoints")->size(), all->size());
      if (::testing::Test::HasFailure())
        return;
    }
  }
}

} // namespace titan::checkpoint
