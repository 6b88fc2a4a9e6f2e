// titan-ckpt: lists, shows, checks and compares checkpoints.
#include "tools/titan-ckpt/CommandLine.h"

#include <cstdio>

int main(int argc, char** argv) {
  const titan::ckpt::Outcome outcome = titan::ckpt::runCommandLine({argv + 1, argv + argc});
  std::fputs(outcome.out.c_str(), stdout);
  std::fputs(outcome.err.c_str(), stderr);
  return outcome.exitCode;
}
