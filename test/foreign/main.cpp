// titan-foreign-compile: titan-compile with the foreign dialect and target "other", for tests.
#include "compiler/Driver/Driver.h"
#include "test/foreign/Foreign.h"

int main(int argc, char** argv) {
  mlir::DialectRegistry more;
  titan::foreign::registerForeign(more);
  titan::foreign::addOtherTarget();
  return titan::compileMain(std::vector<std::string>(argv + 1, argv + argc), argv[0], more);
}
