#include "runtime/job/CommitHooks.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <unistd.h>

namespace titan {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds, std::chrono::seconds;

class CommitHooksTest : public ::testing::Test {
protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    directory =
        fs::path(::testing::TempDir()) / fmt::format("titan-hooks-{}-{}", info->name(), ::getpid());
    fs::remove_all(directory);
    fs::create_directories(directory);
  }
  void TearDown() override { fs::remove_all(directory); }

  CommitHooks hooks(const std::string& command) {
    return {command, directory.string(),
            [this](const std::string& message) { told.push_back(message); }};
  }
  std::string file(const std::string& name) const { return (directory / name).string(); }
  std::string read(const std::string& name) const {
    std::ifstream stream(file(name));
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void commit(CommitHooks& hooks, int64_t step, bool isForGood = false) const {
    hooks.committed(step, file(fmt::format("step-{:08}", step)), isForGood);
  }
  /// Looks until `isDone`.
  static void lookUntil(CommitHooks& hooks, const std::function<bool()>& isDone) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(60);
    while (!isDone() && std::chrono::steady_clock::now() < deadline) {
      hooks.look();
      std::this_thread::sleep_for(milliseconds(5));
    }
    EXPECT_TRUE(isDone());
  }
  static void runOut(CommitHooks& hooks) {
    lookUntil(hooks, [&] { return hooks.inUse().empty(); });
  }
  void lookUntilTold(CommitHooks& hooks, size_t messages) const {
    lookUntil(hooks, [&] { return told.size() >= messages; });
  }
  void waitFor(const std::string& name) const {
    const auto deadline = std::chrono::steady_clock::now() + seconds(60);
    while (!fs::exists(file(name)) && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(milliseconds(5));
    EXPECT_TRUE(fs::exists(file(name))) << name;
  }
  /// "10 done, 20 failed: exit status 3": as it stands in hooks.jsonl.
  std::string states() const {
    std::vector<std::string> found;
    const auto all = checkpoint::readHookStates(checkpoint::posixEnv(), directory.string());
    for (const auto& [step, state] : *all) {
      found.push_back(fmt::format("{} {}{}{}", step, nameOf(state.kind),
                                  state.how.empty() ? "" : ": ", state.how));
      EXPECT_EQ(state.by, checkpoint::describeSelf());
    }
    return fmt::format("{}", fmt::join(found, ", "));
  }
  std::string allTold() const { return fmt::format("{}", fmt::join(told, "\n")); }

  fs::path directory;
  std::vector<std::string> told;
};

TEST_F(CommitHooksTest, GivesItsValuesAsWords) {
  EXPECT_EQ(
      CommitHooks::commandFor("copy {path} to:{name} {step} {other} ${x}", 7, "/r/it's $HOME"),
      "copy '/r/it'\\''s $HOME' to:step-00000007 7 {other} ${x}");
  // A value is not looked through for names.
  EXPECT_EQ(CommitHooks::commandFor("{path}", 7, "/r/{step}"), "'/r/{step}'");
}

TEST_F(CommitHooksTest, RunsBesideWithItsOutputInTheLog) {
  CommitHooks hooks = this->hooks("cat; echo out {step}; echo err {name} >&2; ps -o pgid= $$ > " +
                                  file("group") + "; echo $$ > " + file("process"));
  commit(hooks, 10);
  EXPECT_EQ(hooks.inUse(), std::set<int64_t>{10});
  runOut(hooks);
  commit(hooks, 20);
  runOut(hooks);
  const std::string log = read(CommitHooks::logName);
  for (const char* part : {"$ cat; echo out 10;", "\nout 10\nerr step-00000010\n", "\nout 20\n"})
    EXPECT_NE(log.find(part), std::string::npos) << log;
  EXPECT_EQ(std::stol(read("group")), std::stol(read("process")));
  EXPECT_TRUE(told.empty()) << allTold();
}

TEST_F(CommitHooksTest, RunsOneAtATimeTheNewestAndWhatIsKeptForGood) {
  CommitHooks hooks = this->hooks(
      fmt::format("echo {{step}} >> {0}/begun; touch {0}/waits; while [ ! -e {0}/go ]; do sleep "
                  "0.01; done",
                  directory.string()));
  for (int64_t step : {10, 20, 30, 40, 50})
    commit(hooks, step, /*isForGood=*/step == 20);
  EXPECT_EQ(hooks.inUse(), (std::set<int64_t>{10, 20, 50}));
  waitFor("waits");
  EXPECT_EQ(read("begun"), "10\n");
  EXPECT_EQ(states(), "10 running, 20 waiting, 30 left out, 40 left out, 50 waiting");
  std::ofstream(file("go")) << "";
  runOut(hooks);
  EXPECT_EQ(states(), "10 done, 20 done, 30 left out, 40 left out, 50 done");
  EXPECT_EQ(read("begun"), "10\n20\n50\n");
  EXPECT_EQ(allTold(),
            "checkpoint.on_commit is left out for step 30: step 40 was committed while it "
            "waited for step 10\n"
            "checkpoint.on_commit is left out for step 40: step 50 was committed while it "
            "waited for step 10");
}

TEST_F(CommitHooksTest, TriesWhatFailedAgainAtTheNextCommit) {
  CommitHooks hooks =
      this->hooks("echo {step} >> " + file("begun") + "; test -e " + file("works") + " || exit 3");
  commit(hooks, 10);
  lookUntilTold(hooks, 1);
  EXPECT_EQ(hooks.inUse(), std::set<int64_t>{10});
  EXPECT_EQ(states(), "10 failed: exit status 3");
  std::ofstream(file("works")) << "";
  commit(hooks, 20);
  runOut(hooks);
  EXPECT_EQ(states(), "10 done, 20 done");
  EXPECT_EQ(read("begun"), "10\n10\n20\n");
  EXPECT_EQ(allTold(),
            fmt::format("checkpoint.on_commit failed for step 10: exit status 3 ({}); it "
                        "is tried again at the next commit",
                        file("hooks.log")));
}

TEST_F(CommitHooksTest, TriesTwiceUnlessItIsKeptForGood) {
  CommitHooks hooks = this->hooks("kill -9 $$");
  commit(hooks, 10);
  lookUntilTold(hooks, 1);
  commit(hooks, 20, /*isForGood=*/true);
  lookUntilTold(hooks, 3);
  EXPECT_EQ(hooks.inUse(), std::set<int64_t>{20});
  ASSERT_EQ(told.size(), 3u);
  EXPECT_NE(told[1].find("for step 10: signal 9"), std::string::npos) << told[1];
  EXPECT_NE(told[1].find("; it is not tried again"), std::string::npos) << told[1];
  commit(hooks, 30);
  lookUntilTold(hooks, 5);
  EXPECT_EQ(hooks.inUse(), (std::set<int64_t>{20, 30}));
  hooks.finish(seconds(5));
  EXPECT_NE(told.back().find("has failed for step 30 and is not tried again: no commit follows"),
            std::string::npos)
      << told.back();
}

TEST_F(CommitHooksTest, WaitsAtTheEndAndThenEndsTheWholeGroup) {
  CommitHooks hooks = this->hooks("trap '' TERM; (trap '' TERM; sleep 3; touch " + file("late") +
                                  ") & touch " + file("begun") + "; sleep 3600");
  commit(hooks, 10);
  waitFor("begun");
  const auto start = std::chrono::steady_clock::now();
  hooks.finish(seconds(0));
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(20));
  EXPECT_TRUE(hooks.inUse().empty());
  EXPECT_EQ(states(), "10 failed: took longer than 0 s");
  EXPECT_NE(allTold().find("checkpoint.on_commit of step 10 was ended: it took longer than 0 s, "
                           "checkpoint.hook_timeout"),
            std::string::npos)
      << allTold();
  std::this_thread::sleep_for(seconds(2));
  EXPECT_FALSE(fs::exists(file("late")));
}

TEST_F(CommitHooksTest, RunsTheLastOneAtTheEnd) {
  CommitHooks hooks = this->hooks("sleep 0.2; echo {step} >> " + file("done"));
  commit(hooks, 10);
  commit(hooks, 20);
  hooks.finish(seconds(60));
  EXPECT_EQ(read("done"), "10\n20\n");
}

TEST_F(CommitHooksTest, DoesNotInheritIgnoredSignals) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  CommitHooks hooks = this->hooks("kill -PIPE $$; touch " + file("survived"));
  commit(hooks, 10);
  lookUntilTold(hooks, 1);
  std::signal(SIGPIPE, before);
  EXPECT_FALSE(fs::exists(file("survived")));
}

TEST_F(CommitHooksTest, FailsWithoutItsLog) {
  fs::create_directory(file(CommitHooks::logName));
  CommitHooks hooks = this->hooks("true");
  commit(hooks, 10);
  EXPECT_EQ(allTold(),
            fmt::format("checkpoint.on_commit failed for step 10: cannot write '{0}': Is "
                        "a directory ({0}); it is tried again at the next commit",
                        file("hooks.log")));
}

TEST_F(CommitHooksTest, RunsWithoutARecordAndSaysSoOnce) {
  fs::create_directory(file("hooks.jsonl"));
  CommitHooks hooks = this->hooks("echo {step} >> " + file("done"));
  commit(hooks, 10);
  runOut(hooks);
  EXPECT_EQ(read("done"), "10\n");
  EXPECT_EQ(allTold(), fmt::format("titan-ckpt list does not see what becomes of "
                                   "checkpoint.on_commit: cannot write '{}': Is a directory",
                                   file("hooks.jsonl")));
}

TEST_F(CommitHooksTest, FailsWithACommandThatTheSystemDoesNotTake) {
  CommitHooks hooks = this->hooks("true " + std::string(1 << 20, 'x'));
  commit(hooks, 10);
  EXPECT_NE(allTold().find("cannot start /bin/sh: Argument list too long"), std::string::npos)
      << allTold();
}

TEST_F(CommitHooksTest, FindsCommandsAsShDoes) {
  const auto tell = [this](const std::string& message) { told.push_back(message); };
  for (const char* command :
       {"true", " cp -r {path} /x", "/bin/sh x", "if true; then true; fi", "true;false"})
    EXPECT_TRUE(CommitHooks::check(command, tell).ok()) << command;
  EXPECT_TRUE(told.empty()) << allTold();
  std::ofstream(file("no-program")) << "";
  for (const std::string& word :
       {std::string("rclone-of-nobody"), file("missing"), file("no-program")}) {
    const Status found = CommitHooks::check(word + " {path}", tell);
    ASSERT_FALSE(found.ok()) << word;
    EXPECT_EQ(found.error().exitCode(), 3);
    EXPECT_EQ(found.error().message(),
              fmt::format("checkpoint.on_commit: sh finds no command '{}': install it, give its "
                          "path, or leave the key out",
                          word));
  }
  for (const char* command : {"$TOOL {path}", "A=1 nothing", "(true)", "\"a b\" {path}"})
    EXPECT_TRUE(CommitHooks::check(command, tell).ok()) << command;
  EXPECT_EQ(told.size(), 4u);
  EXPECT_EQ(told.front(), "checkpoint.on_commit = \"$TOOL {path}\": whether its command is there "
                          "shows at the first commit");
}

} // namespace
} // namespace titan
