// A libcudnn.so.9 that has a version and nothing else: what a job says then is tested.
#include <cstddef>

extern "C" size_t cudnnGetVersion() { return 90100; }
