// titan-ckpt: lists, shows, checks, compares and copies checkpoints, exports and imports weights.
// What is there already it only reads.
#pragma once

#include <string>
#include <vector>

namespace titan::ckpt {

struct Outcome {
  int exitCode = 0;
  std::string out; ///< for stdout
  std::string err; ///< for stderr
};

/// `arguments` without the program's name. Exit codes as all of Titan's commands: 0 ok, 1 bad input
/// (a damaged checkpoint, or `diff` found a difference), 2 usage, 3 environment.
Outcome runCommandLine(const std::vector<std::string>& arguments);

} // namespace titan::ckpt
