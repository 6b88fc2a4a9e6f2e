// Batch normalisation with statistics that are given.
#pragma once

#include "dialects/Titan/TensorBuilder.h"

namespace titan::ir {

/// One value for each index of dimension `dim` of what is normalised.
struct ChannelStatistics {
  mlir::Value scale, bias, mean, variance;
  double epsilon;
  int64_t dim;
};

/// (x - mean) / sqrt(variance + epsilon) * scale + bias in x's type. Parameters meet x itself and
/// no statistic: where ranks have parts of them, each is gathered as any other parameter.
mlir::Value buildFixedBatchNorm(const TensorBuilder& b, mlir::Value x,
                                const ChannelStatistics& statistics);

} // namespace titan::ir
