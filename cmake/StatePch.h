// What nearly every source about saved state includes, compiled once.
#pragma once
#include "runtime/checkpoint/Load.h"
#include "runtime/program/Text.h"
