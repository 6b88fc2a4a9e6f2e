// titan.detach, which few need: models have it, and no stage behind differentiate.
#pragma once

#include "dialects/Titan/Titan.h"

#define GET_OP_CLASSES
#include "dialects/Titan/Detach.h.inc"
