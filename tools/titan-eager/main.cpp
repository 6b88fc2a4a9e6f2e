// titan-eager: what `titan-run --eager` starts.
#include "compiler/Eager/Eager.h"
#include "runtime/program/Process.h"

int main(int argc, char** argv) {
  titan::prepareProcess();
  return titan::eagerMain(std::vector<std::string>(argv + 1, argv + argc));
}
