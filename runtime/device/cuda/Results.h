// What the results of the driver say about who is to blame.
#pragma once

#include "runtime/device/cuda/DriverApi.h"

namespace titan::cuda {

/// A kernel did what it must not.
constexpr bool isFault(CUresult result) {
  return result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_ASSERT ||
         result == CUDA_ERROR_HARDWARE_STACK_ERROR || result == CUDA_ERROR_ILLEGAL_INSTRUCTION ||
         result == CUDA_ERROR_MISALIGNED_ADDRESS || result == CUDA_ERROR_INVALID_ADDRESS_SPACE ||
         result == CUDA_ERROR_INVALID_PC || result == CUDA_ERROR_LAUNCH_FAILED;
}

/// The card failed, or took too long, not what ran on it.
constexpr bool isLoss(CUresult result) {
  return result == CUDA_ERROR_ECC_UNCORRECTABLE || result == CUDA_ERROR_NVLINK_UNCORRECTABLE ||
         result == CUDA_ERROR_CONTAINED || result == CUDA_ERROR_LAUNCH_TIMEOUT ||
         result == CUDA_ERROR_EXTERNAL_DEVICE || result == CUDA_ERROR_UNKNOWN;
}

/// The driver answers every later call of the process with this result.
constexpr bool isSticky(CUresult result) { return isFault(result) || isLoss(result); }

/// A call with arguments that are none.
constexpr bool isMisuse(CUresult result) {
  return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_HANDLE ||
         result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_NOT_INITIALIZED ||
         result == CUDA_ERROR_ILLEGAL_STATE || result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ||
         result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
         result == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED ||
         result == CUDA_ERROR_STREAM_CAPTURE_ISOLATION ||
         result == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD ||
         result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

} // namespace titan::cuda
