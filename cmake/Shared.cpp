// The shared library is made of archives; a target needs a source.
#include "compiler/Driver/CompileJob.h"
