// A libcuda.so.1 that serves CUDA 12 and nothing else: what a job says then is tested.
extern "C" int cuDriverGetVersion(int* version) {
  *version = 12000;
  return 0;
}
