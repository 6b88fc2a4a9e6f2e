// The .npy format (numpy.lib.format, versions 1 to 3), the member format of .npz.
//
//   0      "\x93NUMPY", major, minor
//   8      header length: u16 (version 1) or u32 (versions 2 and 3), little-endian
//   then   a Python dict literal, padded with spaces to a multiple of 64 bytes and a newline:
//          {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 784), }
//   then   the elements
#pragma once

#include "runtime/program/DType.h"

#include <string>

namespace titan {

struct NpyHeader {
  DType dtype = DType::F32;
  Shape shape;
  size_t dataStart = 0; ///< bytes before the elements
};

/// The header of `bytes`; checks that exactly the elements follow it.
Result<NpyHeader> parseNpyHeader(std::string_view bytes);
/// Fails with BadInput for BF16, which numpy does not have.
Result<std::string> formatNpyHeader(DType dtype, std::span<const int64_t> shape);

} // namespace titan
