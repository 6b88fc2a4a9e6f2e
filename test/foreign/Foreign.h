// The foreign dialect: ops of a library that no pass of Titan knows.
#pragma once

#include "dialects/Titan/Titan.h"

#include "test/foreign/ForeignDialect.h.inc"

#define GET_OP_CLASSES
#include "test/foreign/ForeignOps.h.inc"
