// titan-ckpt: looks into checkpoints, and makes others and other files of them.
#include "runtime/program/Error.h"
#include "runtime/program/Process.h"
#include "tools/titan-ckpt/CommandLine.h"

#include <cstdio>

int main(int argc, char** argv) {
  titan::prepareProcess();
  const titan::ckpt::Outcome outcome = titan::ckpt::runCommandLine({argv + 1, argv + argc});
  std::fputs(outcome.out.c_str(), stdout);
  if (std::fflush(stdout) != 0) {
    std::fputs("error: stdout: cannot be written\n", stderr);
    return static_cast<int>(titan::ErrorCode::Environment);
  }
  std::fputs(outcome.err.c_str(), stderr);
  return outcome.exitCode;
}
