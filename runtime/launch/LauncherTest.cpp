// titan-run and its ranks as processes: RankHelper is the job.
#include "runtime/launch/Launcher.h"
#include "runtime/host/ThreadPool.h"
#include "runtime/launch/OutputLines.h"
#include "runtime/program/Process.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace titan::launch {
namespace {

/// How a run of titan-run went.
struct Outcome {
  int status = 0;
  std::string out, err;
  int exitCode() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }
};

using OnLine = std::function<void(pid_t titanRun, const std::string& line)>;

/// Runs titan-run with `arguments`; `onLine` gets the lines of its stdout. What still runs when
/// nothing has come for 20 s is killed, and the test has failed.
Outcome titanRun(std::vector<std::string> arguments, const OnLine& onLine = {}) {
  arguments.insert(arguments.begin(), TITAN_RUN);
  std::vector<char*> pointers;
  for (std::string& argument : arguments)
    pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
    std::abort();
  const pid_t process = fork();
  if (process == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    execv(TITAN_RUN, pointers.data());
    _exit(126);
  }
  close(out[1]);
  close(err[1]);
  Outcome run;
  size_t seen = 0;
  pollfd files[] = {{.fd = out[0], .events = POLLIN, .revents = 0},
                    {.fd = err[0], .events = POLLIN, .revents = 0}};
  while (files[0].fd >= 0 || files[1].fd >= 0) {
    if (poll(files, 2, 20000) == 0) {
      ADD_FAILURE() << "titan-run hangs: " << run.out << run.err;
      kill(process, SIGKILL);
    }
    for (size_t i = 0; i < 2; ++i) {
      if (files[i].fd < 0 || files[i].revents == 0)
        continue;
      char bytes[4096];
      const ssize_t size = read(files[i].fd, bytes, sizeof bytes);
      if (size <= 0) {
        close(files[i].fd);
        files[i].fd = -1;
        continue;
      }
      (i == 0 ? run.out : run.err).append(bytes, static_cast<size_t>(size));
    }
    for (size_t end; onLine && (end = run.out.find('\n', seen)) != std::string::npos;
         seen = end + 1)
      onLine(process, run.out.substr(seen, end - seen));
  }
  waitpid(process, &run.status, 0);
  return run;
}

std::vector<std::string> sortedLines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  std::ranges::sort(lines);
  return lines;
}

/// A shell script as the job.
Outcome runScript(int ranks, const std::string& script) {
  return titanRun({"-n", std::to_string(ranks), "sh", "-c", script});
}

TEST(Launcher, TellsEachRankWhichOneItIs) {
  const Outcome run = titanRun({"-n", "2", RANK_HELPER, "show"});
  EXPECT_EQ(run.exitCode(), 0) << run.err;
  const std::vector<std::string> lines = sortedLines(run.out);
  ASSERT_EQ(lines.size(), 2u) << run.out;
  EXPECT_TRUE(lines[0].starts_with("rank 0 of 2, local 0 of 2, group own, cpus ")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("rank 1: rank 1 of 2, local 1 of 2, group own, cpus "))
      << lines[1];
  // No CPU is in both sets, where there are two.
  if (run.err.find("share") == std::string::npos) {
    EXPECT_NE(lines[0].substr(lines[0].find("cpus")), lines[1].substr(lines[1].find("cpus")));
  }
}

TEST(Launcher, NotesThatRanksShareCpus) {
  const int ranks = allowedCpus() + 1;
  const Outcome run = titanRun({"-n", std::to_string(ranks), "true"});
  EXPECT_EQ(run.exitCode(), 0);
  EXPECT_TRUE(run.err.starts_with(fmt::format("note: {} ranks share ", ranks))) << run.err;
}

TEST(Launcher, RanksMeet) {
  for (const char* ranks : {"2", "3", "5"}) {
    const Outcome run = titanRun({"-n", ranks, RANK_HELPER, "well"});
    EXPECT_EQ(run.exitCode(), 0) << run.err;
    EXPECT_EQ(sortedLines(run.out).back(), "sum true, signal 0");
  }
}

TEST(Launcher, NamesTheLinesOfOtherRanks) {
  const Outcome run = runScript(3, "echo out $TITAN_RANK; echo err $TITAN_RANK >&2; "
                                   "[ $TITAN_RANK = 0 ] || printf rest");
  EXPECT_EQ(run.exitCode(), 0);
  EXPECT_EQ(sortedLines(run.out),
            (std::vector<std::string>{"out 0", "rank 1: out 1", "rank 1: rest", "rank 2: out 2",
                                      "rank 2: rest"}));
  EXPECT_NE(run.err.find("\nrank 2: err 2\n"), std::string::npos) << run.err;
}

TEST(Launcher, PassesAllOutputOn) {
  const Outcome run = runScript(2, "[ $TITAN_RANK = 0 ] || seq 1 50000");
  std::istringstream stream(run.out);
  int64_t number = 0;
  for (std::string line; std::getline(stream, line);)
    ASSERT_EQ(line, fmt::format("rank 1: {}", ++number));
  EXPECT_EQ(number, 50000);
}

TEST(Launcher, ProgramsThatJoinNobodyEndAsTheyLike) {
  EXPECT_EQ(runScript(2, "exit 0").exitCode(), 0);
  const Outcome run = runScript(3, "[ $TITAN_RANK = 1 ] && exit 2; sleep 20");
  EXPECT_EQ(run.exitCode(), 2);
  EXPECT_EQ(run.err.find("error"), std::string::npos) << run.err;
}

TEST(Launcher, ExplainsExitCodesThatAreNotOurs) {
  const Outcome run = runScript(2, "[ $TITAN_RANK = 1 ] && exit 127; sleep 20");
  EXPECT_EQ(run.exitCode(), 127);
  EXPECT_NE(run.err.find(") ended with exit code 127\n"), std::string::npos) << run.err;
}

TEST(Launcher, RefusesWhatItCannotStart) {
  const Outcome missing = titanRun({"-n", "2", "/no/such/job", "train"});
  EXPECT_EQ(missing.exitCode(), 3);
  EXPECT_EQ(missing.err, "error: cannot start rank 0: /no/such/job: No such file or directory\n");
  const Outcome none = titanRun({"-n", "0", "true"});
  EXPECT_EQ(none.exitCode(), 2);
  EXPECT_EQ(none.err, "error: 0 ranks: use 1 to 1024\n");
  const Outcome eager = titanRun({"-n", "2", "--eager", "model.onnx"});
  EXPECT_EQ(eager.exitCode(), 1);
  EXPECT_EQ(eager.err, "error: --eager runs one rank: without -n 2, or compile the model and run "
                       "the job on 2 ranks\n");
}

/// Is the process gone, or only waited for?
bool isGone(pid_t process, int milliseconds) {
  const int file = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (file < 0)
    return errno == ESRCH;
  pollfd ended = {.fd = file, .events = POLLIN, .revents = 0};
  const bool hasEnded = poll(&ended, 1, milliseconds) > 0;
  close(file);
  return hasEnded;
}

struct Loss {
  const char* where;
  const char* how;
  const char* name;    ///< of the wait
  const char* message; ///< of titan-run, behind the rank; empty: the rank speaks for itself
  int exitCode;
};

class Lost : public ::testing::TestWithParam<Loss> {};

const std::vector<Loss> everyLoss() {
  std::vector<Loss> losses;
  for (const auto& [where, name] :
       {std::pair("collective", "all_reduce of 0, 2"), std::pair("exchange", "agreement"),
        std::pair("broadcast", "weights")}) {
    losses.push_back({where, "kill", name, "was killed by signal 9 in step 3", 5});
    losses.push_back({where, "segv", name, "was killed by signal 11 in step 3", 5});
    losses.push_back(
        {where, "exit0", name, "left with exit code 0 before the job's end in step 3", 5});
    losses.push_back({where, "exit3", name, "", 3});
    losses.push_back({where, "fail", name, "", 3});
  }
  losses.push_back(
      {"collective", "stop", "all_reduce of 0, 2", "gave no sign of life for 5 s in step 3", 5});
  losses.push_back({"exchange", "hang", "agreement",
                    "lets the others wait for 2 s, since it left 'all_reduce of 0, 2' "
                    "(mesh.kill_after) in step 3",
                    5});
  return losses;
}
INSTANTIATE_TEST_SUITE_P(Launcher, Lost, ::testing::ValuesIn(everyLoss()), [](const auto& info) {
  return fmt::format("{}_{}", info.param.where, info.param.how);
});

TEST_P(Lost, EndsTheJobAndIsNamed) {
  const Loss& loss = GetParam();
  const Outcome run = titanRun({"-n", "3", RANK_HELPER, "lose", loss.where, loss.how});
  EXPECT_EQ(run.exitCode(), loss.exitCode) << run.err;
  // Both others have waited for it, and were told why they wait no longer.
  for (const char* prefix : {"saw: ", "rank 2: saw: "})
    EXPECT_NE(run.err.find(prefix + std::string("rank 1")), std::string::npos) << run.err;
  EXPECT_NE(run.err.find(fmt::format("rank 0 waited at '{}'", loss.name)), std::string::npos)
      << run.err;
  const size_t told = run.err.find("error: rank 1 (pid ");
  if (*loss.message) {
    ASSERT_NE(told, std::string::npos) << run.err;
    EXPECT_NE(run.err.find(
                  fmt::format(") {}; ranks 0, 2 waited at '{}'\n", loss.message, loss.name), told),
              std::string::npos)
        << run.err;
  } else {
    EXPECT_EQ(told, std::string::npos) << run.err;
  }
  if (loss.how == std::string_view("hang")) {
    EXPECT_NE(run.err.find("lets the others wait for 1 s, since it left 'all_reduce of 0, 2' in "
                           "step 3; ranks 0, 2 waited at 'agreement'\n"),
              std::string::npos)
        << run.err;
    EXPECT_EQ(run.err.find("note: rank 1"), run.err.rfind("note: rank 1")) << run.err;
  }
  if (loss.how == std::string_view("fail")) {
    EXPECT_NE(run.err.find("rank 1: error: the disk is full\n"), std::string::npos) << run.err;
  }
}

TEST(Launcher, ARankThatLeavesBeforeTheOthersJoinIsNamed) {
  const Outcome run =
      runScript(2, std::string("[ $TITAN_RANK = 1 ] && exit 0; exec ") + RANK_HELPER + " well");
  EXPECT_EQ(run.exitCode(), 5);
  EXPECT_NE(run.err.find("left with exit code 0 without joining the others; rank 0 waited at"),
            std::string::npos)
      << run.err;
}

using Json = nlohmann::json;

Json readJson(const std::filesystem::path& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

/// A run directory that is empty, in RANK_HELPER_DIRECTORY while it lives.
class RunDirectory {
public:
  RunDirectory() : path_(std::filesystem::path(::testing::TempDir()) / "titan-launcher-run") {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
    setenv("RANK_HELPER_DIRECTORY", path_.c_str(), 1);
  }
  ~RunDirectory() {
    unsetenv("RANK_HELPER_DIRECTORY");
    std::filesystem::remove_all(path_);
  }
  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

TEST(Launcher, WritesWhatRanksDidLast) {
  const RunDirectory run;
  const Outcome lost = titanRun({"-n", "3", RANK_HELPER, "lose", "collective", "kill"});
  EXPECT_EQ(lost.exitCode(), 5);
  EXPECT_NE(lost.err.find("note: what each rank did last is in " + run.path().string() + "/ranks"),
            std::string::npos)
      << lost.err;
  for (int64_t rank = 0; rank < 3; ++rank) {
    const Json json = readJson(run.path() / fmt::format("ranks/rank-000{}.json", rank));
    EXPECT_EQ(json["version"], 1);
    EXPECT_EQ(json["rank"], rank);
    EXPECT_EQ(json["ranks"], 3);
    EXPECT_EQ(json["step"], 3);
    EXPECT_EQ(json["failure"]["code"], 5);
    EXPECT_EQ(json["failure"]["rank"], 1);
    EXPECT_NE(lost.err.find(json["failure"]["message"].get<std::string>()), std::string::npos);
    // Two sums in each step; rank 1 is lost before those of step 3.
    const Json& flights = json["collectives"];
    ASSERT_EQ(flights.size(), rank == 1 ? 4u : 5u);
    for (size_t i = 0; i < flights.size(); ++i) {
      EXPECT_EQ(flights[i]["number"], i);
      EXPECT_EQ(flights[i]["name"], "all_reduce of 0, 2");
      EXPECT_EQ(flights[i]["step"], i / 2 + 1);
      EXPECT_EQ(flights[i]["state"], i < 4 ? "done" : "waited");
      EXPECT_EQ(flights[i]["done"].is_null(), i == 4);
      EXPECT_LE(flights[i]["started"], flights[i]["waited"]);
    }
    EXPECT_EQ(json["waiting"], rank == 1 ? Json() : Json("all_reduce of 0, 2"));
  }
  // A run that goes well leaves what is there.
  EXPECT_EQ(titanRun({"-n", "2", RANK_HELPER, "well"}).exitCode(), 0);
  EXPECT_TRUE(std::filesystem::exists(run.path() / "ranks/rank-0002.json"));
  // A directory that is gone is no reason to end otherwise.
  std::filesystem::remove_all(run.path());
  const Outcome unwritten = titanRun({"-n", "2", RANK_HELPER, "lose", "collective", "kill"});
  EXPECT_EQ(unwritten.exitCode(), 5);
  EXPECT_NE(unwritten.err.find("note: what each rank did last is lost: cannot write '"),
            std::string::npos)
      << unwritten.err;
}

TEST(Launcher, ARankThatGetsThingsDoneMayTakeItsTime) {
  const Outcome run = titanRun({"-n", "2", RANK_HELPER, "lose", "exchange", "busy"});
  EXPECT_EQ(run.exitCode(), 0) << run.err;
  EXPECT_EQ(run.err.find("lets the others wait"), std::string::npos) << run.err;
}

TEST(Launcher, ARankThatNeverJoinsIsNamed) {
  const Outcome run = runScript(2, std::string("[ $TITAN_RANK = 1 ] && exec sleep 30; exec ") +
                                       RANK_HELPER + " lose exchange hang");
  EXPECT_EQ(run.exitCode(), 5);
  EXPECT_NE(run.err.find(") has not joined the others, which wait for 2 s (mesh.kill_after); rank "
                         "0 waited at 'the sharing of staging'"),
            std::string::npos)
      << run.err;
}

TEST(Launcher, ARankThatIsStoppedBeforeItJoinsIsNamed) {
  const Outcome run = runScript(2, std::string("[ $TITAN_RANK = 1 ] && kill -STOP $$; exec ") +
                                       RANK_HELPER + " well");
  EXPECT_EQ(run.exitCode(), 5);
  EXPECT_NE(
      run.err.find(") was stopped by a signal and has not gone on for 6 s; rank 0 waited at "),
      std::string::npos)
      << run.err;
}

TEST(Launcher, ARankThatGoesOnIsNotNamed) {
  const Outcome run = runScript(2, "if [ $TITAN_RANK = 1 ]; then (sleep 0.3; kill -CONT $$) & kill "
                                   "-STOP $$; fi; echo on");
  EXPECT_EQ(run.exitCode(), 0) << run.err;
  EXPECT_EQ(sortedLines(run.out), (std::vector<std::string>{"on", "rank 1: on"}));
}

TEST(Launcher, OutputThatNobodyReadsIsToldAsThat) {
  const Outcome run = runScript(2, "[ $TITAN_RANK = 0 ] && kill -PIPE $$; sleep 20");
  EXPECT_EQ(run.exitCode(), 128 + SIGPIPE);
  EXPECT_TRUE(run.err.ends_with(") found that nobody reads its output any more (SIGPIPE)\n"))
      << run.err;
}

/// A folder of its own, which is empty.
class Folder {
public:
  Folder() : path_(std::filesystem::path(::testing::TempDir()) / "titan-launcher-folder") {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string textOf(const std::string& name) const {
    std::ifstream file(path_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

private:
  std::filesystem::path path_;
};

TEST(Launcher, AFailedRunIsStartedAgain) {
  const Folder folder;
  // The first time it fails in step 3, then it goes well.
  const std::string once = fmt::format("[ $TITAN_RANK = 0 ] && {{ [ -e {0} ] && touch {1} || touch "
                                       "{0}; }}; sleep 0.2; [ -e {1} ] && "
                                       "exec {2} well; exec {2} lose collective kill",
                                       folder.file("first"), folder.file("second"), RANK_HELPER);
  const Outcome run = titanRun({"-n", "2", "--restarts", "3", "sh", "-c", once});
  EXPECT_EQ(run.exitCode(), 0) << run.err;
  EXPECT_NE(run.err.find("note: restart 1 of 3, after a failure in step 3\n"), std::string::npos)
      << run.err;
  EXPECT_EQ(run.err.find("restart 2"), std::string::npos) << run.err;
}

TEST(Launcher, TwoFailuresInOneStepAreEnough) {
  const Outcome run =
      titanRun({"-n", "2", "--restarts", "5", RANK_HELPER, "lose", "collective", "kill"});
  EXPECT_EQ(run.exitCode(), 5);
  EXPECT_NE(run.err.find("note: restart 1 of 5, after a failure in step 3\n"), std::string::npos);
  EXPECT_EQ(run.err.find("restart 2"), std::string::npos) << run.err;
  EXPECT_TRUE(run.err.ends_with("note: not started again: it has failed in step 3 twice\n"))
      << run.err;
}

TEST(Launcher, OnlyAFailedRunIsStartedAgain) {
  for (const char* how : {"exit3", "fail"}) {
    const Outcome run =
        titanRun({"-n", "2", "--restarts", "2", RANK_HELPER, "lose", "collective", how});
    EXPECT_EQ(run.exitCode(), 3);
    EXPECT_EQ(run.err.find("restart"), std::string::npos) << run.err;
  }
  const Outcome asked =
      titanRun({"-n", "1", "--restarts", "2", "sh", "-c",
                "trap 'exit 5' TERM; echo running; while :; do sleep 0.01; done"},
               [](pid_t titanRun, const std::string&) { kill(titanRun, SIGTERM); });
  EXPECT_EQ(asked.exitCode(), 5);
  EXPECT_EQ(asked.err.find("restart"), std::string::npos) << asked.err;
}

TEST(Launcher, OneRankIsStartedAgainToo) {
  const Folder folder;
  const Outcome run =
      titanRun({"-n", "1", "--restarts", "4", "sh", "-c",
                fmt::format("n=$(ls {0} | wc -l); touch {0}/$n; [ $n -lt 3 ] && exit "
                            "5; echo went well",
                            folder.file(""))});
  EXPECT_EQ(run.exitCode(), 0) << run.err;
  EXPECT_EQ(run.out, "went well\n");
  EXPECT_NE(run.err.find("note: restart 3 of 4, after a failure before the first step\n"),
            std::string::npos)
      << run.err;
}

TEST(Launcher, LogsWhatEachRankWritesInEachAttempt) {
  const Folder folder;
  const Outcome run =
      titanRun({"-n", "2", "--restarts", "1", "--log-dir", folder.file("logs"), "sh", "-c",
                "echo out $TITAN_RANK; echo err >&2; [ $TITAN_RANK = 0 ] || "
                "exit 5; sleep 20"});
  EXPECT_EQ(run.exitCode(), 5) << run.err;
  EXPECT_EQ(sortedLines(run.out),
            (std::vector<std::string>{"out 0", "out 0", "rank 1: out 1", "rank 1: out 1"}));
  for (int rank : {0, 1})
    for (int attempt : {1, 2})
      EXPECT_EQ(
          sortedLines(folder.textOf(fmt::format("logs/rank-000{}.attempt-{}.log", rank, attempt))),
          (std::vector<std::string>{"err", fmt::format("out {}", rank)}));
  const Outcome refused = titanRun({"-n", "2", "--log-dir", "/dev/null/logs", "true"});
  EXPECT_EQ(refused.exitCode(), 3);
  EXPECT_EQ(refused.err, "error: cannot create '/dev/null/logs': Not a directory\n");
  std::filesystem::create_directories(folder.file("taken/rank-0000.attempt-1.log"));
  const Outcome taken = titanRun({"-n", "2", "--log-dir", folder.file("taken"), "true"});
  EXPECT_EQ(taken.exitCode(), 3);
  EXPECT_TRUE(taken.err.starts_with("error: cannot write '")) << taken.err;
}

TEST(Launcher, ExplainsItsOptions) {
  const Outcome help = titanRun({"--help"});
  EXPECT_EQ(help.exitCode(), 0);
  for (const char* option : {"-n,--ranks", "--restarts K", "--log-dir D", "--eager"})
    EXPECT_NE(help.out.find(option), std::string::npos) << help.out;
  EXPECT_EQ(titanRun({"-n", "2", "--restarts", "-1", "true"}).err,
            "error: -1 restarts: use 0 or more\n");
}

TEST(Launcher, SignalsGoToAllRanks) {
  const Outcome run =
      titanRun({"-n", "2", RANK_HELPER, "serve"}, [](pid_t titanRun, const std::string& line) {
        if (line == "running")
          kill(titanRun, SIGTERM);
      });
  EXPECT_EQ(run.exitCode(), 0) << run.err;
  EXPECT_EQ(sortedLines(run.out), (std::vector<std::string>{"rank 1: sum true, signal 15",
                                                            "running", "sum true, signal 15"}));
}

TEST(Launcher, ASecondInterruptKills) {
  const Outcome run =
      titanRun({"-n", "2", "sh", "-c",
                "trap 'echo interrupted' INT; echo running; while :; do sleep 0.01; done"},
               [](pid_t titanRun, const std::string& line) {
                 if (line == "running" || line == "interrupted")
                   kill(titanRun, SIGINT);
               });
  EXPECT_EQ(run.exitCode(), 130);
  EXPECT_EQ(run.err.find("error"), std::string::npos) << run.err;
}

TEST(Launcher, ASignalThatARankDoesNotHandleEndsTheJobWithIt) {
  const Outcome run = titanRun({"-n", "2", "sh", "-c", "echo running; exec sleep 20"},
                               [](pid_t titanRun, const std::string& line) {
                                 if (line == "running")
                                   kill(titanRun, SIGTERM);
                               });
  EXPECT_EQ(run.exitCode(), 128 + SIGTERM);
}

TEST(Launcher, NoRankOutlivesIt) {
  std::vector<pid_t> processes;
  const Outcome run =
      titanRun({"-n", "2", RANK_HELPER, "wait"}, [&](pid_t titanRun, const std::string& line) {
        std::istringstream stream(line);
        for (pid_t process; stream >> process;)
          processes.push_back(process);
        kill(titanRun, SIGKILL);
      });
  EXPECT_TRUE(WIFSIGNALED(run.status));
  ASSERT_EQ(processes.size(), 2u);
  for (pid_t process : processes)
    EXPECT_TRUE(isGone(process, 2000));
}

TEST(Launcher, WhatALostJobHasStartedIsKilledWithIt) {
  std::vector<pid_t> processes;
  const Outcome run = titanRun(
      {"-n", "2", "sh", "-c",
       "if [ $TITAN_RANK = 0 ]; then sleep 100 & echo $!; wait; else sleep 0.2; kill -9 $$; fi"},
      [&](pid_t, const std::string& line) { processes.push_back(std::stoi(line)); });
  EXPECT_EQ(run.exitCode(), 5);
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_TRUE(isGone(processes[0], 2000));
}

TEST(OutputLines, BreaksAndEndsLines) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  OutputLines lines("rank 3: ", ends[1]);
  lines.take("a\nb");
  lines.take("c\n\n");
  lines.take(std::string(30000, 'x'));
  lines.end();
  lines.end();
  close(ends[1]);
  std::string text;
  char bytes[1 << 16];
  for (ssize_t size; (size = read(ends[0], bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<size_t>(size));
  close(ends[0]);
  EXPECT_EQ(text, "rank 3: a\nrank 3: bc\nrank 3: \nrank 3: " + std::string(30000, 'x') + "\n");
}

} // namespace
} // namespace titan::launch
