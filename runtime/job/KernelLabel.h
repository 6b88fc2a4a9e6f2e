// What the label of a kernel says: its description and, behind a colon, the module paths that it
// works for. "gemm [64, 256, 784] B^T : hidden.0.linear"
#pragma once

#include "runtime/executor/Profiler.h"

#include <string>
#include <vector>

namespace titan {

/// "collectives", "products", "attention", "embedding", "recurrence", "scatter", "top_k", "norms", "loss", "optimizer",
/// "copies" or "elementwise".
std::string groupOf(const ProfileRow& row);
/// The module paths of a label, layers' numbers replaced by *: "blocks.*.norm_1".
std::vector<std::string> modulesOf(const std::string& label);
/// A label for people: the modules of several layers as one, "gemm [8, 8, 8] : blocks.*.fc".
std::string shortLabel(const std::string& label);

} // namespace titan
