// titan-compile: a model file becomes an executable that trains it.
#include "compiler/Driver/Driver.h"
#include "runtime/program/Process.h"

int main(int argc, char** argv) {
  titan::prepareProcess();
  return titan::compileMain(std::vector<std::string>(argv + 1, argv + argc), argv[0]);
}
