// Recorded tensors (serialized TensorProtos) and their comparison with what the interpreter
// computes.
#pragma once

#include "compiler/Interpreter/Interpreter.h"
#include "frontend/onnx/fold/HostTensor.h"

#include <cmath>
#include <filesystem>
#include <fstream>

namespace titan::frontend {

inline std::optional<::onnx::TensorProto> readTensor(const std::filesystem::path& path) {
  ::onnx::TensorProto proto;
  std::ifstream file(path, std::ios::binary);
  if (!file || !proto.ParseFromIstream(&file))
    return std::nullopt;
  return proto;
}

inline interpreter::Tensor toInterpreter(const HostTensor& host, mlir::RankedTensorType type) {
  return host.isFloat() ? interpreter::Tensor::of(type, host.reals)
                        : interpreter::Tensor::of(type, host.integers);
}

/// Of results in the element type `dtype`; the suite's own tolerance is 1e-3.
inline bool isClose(double a, double b, DType dtype) {
  double relative = dtype == DType::BF16 ? 1.0 / 64 : dtype == DType::F16 ? 1.0 / 512 : 1e-3;
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= 1e-5 + relative * std::abs(b);
}

inline bool compare(const interpreter::Tensor& actual, ::onnx::TensorProto proto,
                    std::string& detail) {
  Result<Tensor> tensor = takeTensor(proto, "expected");
  Result<HostTensor> host = tensor.ok() ? toHost(*tensor) : Result<HostTensor>(tensor.takeError());
  if (!host.ok()) {
    detail = host.error().message();
    return false;
  }
  Shape shape(actual.shape().begin(), actual.shape().end());
  if (shape != host->shape) {
    detail = fmt::format("shape {} instead of {}", toString(shape), toString(host->shape));
    return false;
  }
  for (int64_t i = 0; i < host->size(); ++i)
    if (!isClose(actual.number(i), host->real(i), host->dtype)) {
      detail = fmt::format("element {}: {} instead of {}", i, actual.number(i), host->real(i));
      return false;
    }
  return true;
}

} // namespace titan::frontend
