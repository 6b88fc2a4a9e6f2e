// A libcublasLt.so.13 that has a version and nothing else: what a job says then is tested.
#include <cstddef>

extern "C" size_t cublasLtGetVersion() { return 130100; }
