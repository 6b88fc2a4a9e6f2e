// main of a compiled job.
#include "runtime/job/JobMain.h"

int main(int argc, char** argv) { return titan::jobMain(argc, argv); }
