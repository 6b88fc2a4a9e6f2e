// titan-eager: what `titan-run --eager` starts.
#include "compiler/Eager/Eager.h"

int main(int argc, char** argv) {
  return titan::eagerMain(std::vector<std::string>(argv + 1, argv + argc));
}
