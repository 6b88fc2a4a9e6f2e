// The command line of a job: names, defaults and exit codes are a contract (README).
#pragma once

#include "runtime/program/Error.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace titan {

enum class JobCommand { Train, Eval, Predict, Sample, Plan, Info, Profile, Compare, Tune };

/// As it is typed: "train".
const char* nameOf(JobCommand command);
/// Does it only say what the job is? Then it runs on any machine, and needs no ranks.
bool explains(JobCommand command);

struct JobOptions {
  JobCommand command = JobCommand::Train;
  std::string goOn; ///< the same command line without what says where to start, for a shell
  std::string out;  ///< the run directory
  int threads = 0;  ///< 0: all allowed CPUs
  std::optional<int64_t> steps;               ///< train: end of the run; profile, compare: how many
  std::vector<std::string> data;              ///< replaces the recipe's files
  std::vector<std::string> set;               ///< key=value
  std::string init;                           ///< weights to start from
  std::vector<std::string> fresh;             ///< globs, with init
  std::map<std::string, std::string> renames; ///< name in the file -> canonical name, with init
  std::vector<std::string> ignored;           ///< globs of names in the file, with init
  bool cast = false;                          ///< with init: rounds to the program's types
  std::vector<std::string> emaStart, emaDrop; ///< train: profiles that the checkpoint or the job
                                              ///< may lack
  std::string resume = "auto";                ///< or "good", "never", or a checkpoint
  bool setAside = false;                      ///< with a checkpoint: later ones make way
  std::string checkpoint;         ///< eval, predict, sample; empty: the newest of the run directory
  std::string average;            ///< eval, predict, sample: a profile of [ema]; empty: the model
  std::string output;             ///< predict: the .npz
  std::string trace;              ///< profile: the Chrome trace
  std::string device = "auto";    ///< or "cpu", "cuda", "cuda:N", "reference"
  std::string gemm = "auto";      ///< or "cublaslt", "onednn", "generated"
  std::string attention = "auto"; ///< or "cudnn", "generated"
  std::string weightsDirectory;   ///< where referred weights lie; empty: beside the job
  std::optional<std::string> prompt; ///< sample: what the text starts with
  int64_t tokens = 256;              ///< sample: how many more
  double temperature = 0.8;          ///< sample
  int64_t topK = 0;                  ///< sample; 0: all tokens
  int64_t sampleSeed = 0;
  bool ids = false; ///< sample: numbers, also for a vocabulary of bytes
  bool json = false;
  std::optional<int64_t> rank; ///< profile: this rank of the mesh alone
  bool poison = false;         ///< check the memory plan while running: slow, changes no result
};

/// Nothing when help or a version was asked for, which is then printed on stdout unless `quiet`.
/// Usage otherwise names what is wrong.
Result<std::optional<JobOptions>> parseCommandLine(const std::vector<std::string>& arguments,
                                                   const std::string& executable,
                                                   const std::string& version, bool quiet = false);

} // namespace titan
