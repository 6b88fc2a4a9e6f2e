// ONNX's protobuf classes, compiled once.
#pragma once
#include "frontend/onnx/read/Protos.h"
