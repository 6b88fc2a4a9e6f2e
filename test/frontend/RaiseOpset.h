// Models of opsets older than the importer reads, as the suite has them.
#pragma once

#include "frontend/onnx/read/Protos.h"

namespace titan::frontend {

/// Makes `model` one of the oldest opset that is read, 7, where that is known to mean the same:
/// its ops did not change, or lost attributes that the newer form does without. Other models stay
/// as they are.
void raiseOpset(::onnx::ModelProto& model);

} // namespace titan::frontend
