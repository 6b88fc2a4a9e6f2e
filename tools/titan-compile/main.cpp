// titan-compile: a model file becomes an executable that trains it.
#include "compiler/Driver/Driver.h"

int main(int argc, char** argv) {
  return titan::compileMain(std::vector<std::string>(argv + 1, argv + argc), argv[0]);
}
