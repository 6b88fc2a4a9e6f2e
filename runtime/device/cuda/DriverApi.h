// The part of the CUDA driver API that a job uses, in declarations of our own: a job is built
// without a toolkit, and loads libcuda.so.1 where it runs.
//
// Names and values are the vendor's; DriverApiTest compares them with cuda.h where that is found.
// One list has the entry points. It serves their types, their loading and the names in messages;
// a row more is an entry point more.
#pragma once

#include <cstddef>
#include <cstdint>

namespace titan::cuda {

using CUdevice = int;
using CUdeviceptr = uint64_t;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;

/// Results that are told apart here. A driver may return others.
#define TITAN_CUDA_RESULTS(X)                                                                      \
  X(CUDA_SUCCESS, 0)                                                                               \
  X(CUDA_ERROR_INVALID_VALUE, 1)                                                                   \
  X(CUDA_ERROR_OUT_OF_MEMORY, 2)                                                                   \
  X(CUDA_ERROR_NOT_INITIALIZED, 3)                                                                 \
  X(CUDA_ERROR_STUB_LIBRARY, 34)                                                                   \
  X(CUDA_ERROR_NO_DEVICE, 100)                                                                     \
  X(CUDA_ERROR_INVALID_DEVICE, 101)                                                                \
  X(CUDA_ERROR_INVALID_IMAGE, 200)                                                                 \
  X(CUDA_ERROR_INVALID_CONTEXT, 201)                                                               \
  X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                                             \
  X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                                                             \
  X(CUDA_ERROR_INVALID_PTX, 218)                                                                   \
  X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                                                          \
  X(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221)                                                        \
  X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)                                                       \
  X(CUDA_ERROR_JIT_COMPILATION_DISABLED, 223)                                                      \
  X(CUDA_ERROR_CONTAINED, 226)                                                                     \
  X(CUDA_ERROR_INVALID_HANDLE, 400)                                                                \
  X(CUDA_ERROR_ILLEGAL_STATE, 401)                                                                 \
  X(CUDA_ERROR_NOT_FOUND, 500)                                                                     \
  X(CUDA_ERROR_NOT_READY, 600)                                                                     \
  X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                                               \
  X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)                                                       \
  X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                                                \
  X(CUDA_ERROR_ASSERT, 710)                                                                        \
  X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                                                          \
  X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                                                           \
  X(CUDA_ERROR_MISALIGNED_ADDRESS, 716)                                                            \
  X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                                                         \
  X(CUDA_ERROR_INVALID_PC, 718)                                                                    \
  X(CUDA_ERROR_LAUNCH_FAILED, 719)                                                                 \
  X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                                                    \
  X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)                                                    \
  X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903)                                                      \
  X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905)                                                      \
  X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)                                                   \
  X(CUDA_ERROR_EXTERNAL_DEVICE, 911)                                                               \
  X(CUDA_ERROR_UNKNOWN, 999)

#define TITAN_CUDA_ENUMERATOR(name, value) name = value,

enum CUresult : int { TITAN_CUDA_RESULTS(TITAN_CUDA_ENUMERATOR) };

#define TITAN_CUDA_DEVICE_ATTRIBUTES(X)                                                            \
  X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                                  \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                              \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                                              \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)

enum CUdevice_attribute : int { TITAN_CUDA_DEVICE_ATTRIBUTES(TITAN_CUDA_ENUMERATOR) };

#define TITAN_CUDA_FUNCTION_ATTRIBUTES(X) X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)

enum CUfunction_attribute : int { TITAN_CUDA_FUNCTION_ATTRIBUTES(TITAN_CUDA_ENUMERATOR) };

/// Options of cuModuleLoadDataEx; their values stand in an array of pointers.
#define TITAN_CUDA_JIT_OPTIONS(X)                                                                  \
  X(CU_JIT_ERROR_LOG_BUFFER, 5)            /* char* */                                             \
  X(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6) /* in: its size; out: bytes written */

enum CUjit_option : int { TITAN_CUDA_JIT_OPTIONS(TITAN_CUDA_ENUMERATOR) };

#define TITAN_CUDA_CAPTURE_MODES(X) X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)

enum CUstreamCaptureMode : int { TITAN_CUDA_CAPTURE_MODES(TITAN_CUDA_ENUMERATOR) };

/// Arguments `flags`.
#define TITAN_CUDA_FLAGS(X)                                                                        \
  X(CU_STREAM_NON_BLOCKING, 1)                                                                     \
  X(CU_EVENT_DEFAULT, 0)                                                                           \
  X(CU_EVENT_BLOCKING_SYNC, 1)                                                                     \
  X(CU_EVENT_DISABLE_TIMING, 2)

enum : unsigned { TITAN_CUDA_FLAGS(TITAN_CUDA_ENUMERATOR) };

/// The vendor's CU_MEMHOSTALLOC_DEVICEMAP, which is a macro: kernels reach the memory, too.
inline constexpr unsigned mappedHostMemory = 2;

#undef TITAN_CUDA_ENUMERATOR

/// X(name as the library exports it, parameters); all return CUresult. Pointers are results unless
/// they are const, or host memory. A stream of null is the context's default one.
#define TITAN_CUDA_ENTRY_POINTS(X)                                                                 \
  X(cuDriverGetVersion, (int* version)) /* 1000 major + 10 minor, of the CUDA that it serves */    \
  X(cuInit, (unsigned flags))                                                                      \
  X(cuGetErrorName, (CUresult error, const char** text))                                           \
  X(cuGetErrorString, (CUresult error, const char** text))                                         \
  X(cuDeviceGetCount, (int* count))                                                                \
  X(cuDeviceGet, (CUdevice * device, int ordinal))                                                 \
  X(cuDeviceGetName, (char* name, int length, CUdevice device))                                    \
  X(cuDeviceGetAttribute, (int* value, CUdevice_attribute attribute, CUdevice device))             \
  X(cuDeviceTotalMem_v2, (size_t* bytes, CUdevice device))                                         \
  X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                              \
  X(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                               \
  X(cuCtxSetCurrent, (CUcontext context))                                                          \
  X(cuMemGetInfo_v2, (size_t* free, size_t* total))                                                \
  X(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes))                                          \
  X(cuMemFree_v2, (CUdeviceptr address))                                                           \
  X(cuMemHostAlloc, (void** address, size_t bytes, unsigned flags))                                \
  X(cuMemHostGetDevicePointer_v2, (CUdeviceptr * address, void* host, unsigned flags))             \
  X(cuMemFreeHost, (void* address))                                                                \
  X(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void* from, size_t bytes, CUstream stream))       \
  X(cuMemcpyDtoHAsync_v2, (void* to, CUdeviceptr from, size_t bytes, CUstream stream))             \
  X(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))       \
  X(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream))         \
  X(cuStreamCreate, (CUstream * stream, unsigned flags))                                           \
  X(cuStreamDestroy_v2, (CUstream stream))                                                         \
  X(cuStreamSynchronize, (CUstream stream))                                                        \
  X(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))                           \
  X(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode))                          \
  X(cuStreamEndCapture, (CUstream stream, CUgraph * graph))                                        \
  X(cuGraphDestroy, (CUgraph graph))                                                               \
  X(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags))    \
  X(cuGraphExecDestroy, (CUgraphExec exec))                                                        \
  X(cuGraphLaunch, (CUgraphExec exec, CUstream stream))                                            \
  X(cuEventCreate, (CUevent * event, unsigned flags))                                              \
  X(cuEventDestroy_v2, (CUevent event))                                                            \
  X(cuEventRecord, (CUevent event, CUstream stream))                                               \
  X(cuEventQuery, (CUevent event))                                                                 \
  X(cuEventSynchronize, (CUevent event))                                                           \
  X(cuEventElapsedTime, (float* milliseconds, CUevent start, CUevent end))                         \
  X(cuModuleLoadDataEx,                                                                            \
    (CUmodule * module, const void* image, unsigned options, CUjit_option* names, void** values))  \
  X(cuModuleUnload, (CUmodule module))                                                             \
  X(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char* name))               \
  X(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value))          \
  X(cuLaunchKernel, (CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ,          \
                     unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,      \
                     CUstream stream, void** parameters, void** extra))

} // namespace titan::cuda
