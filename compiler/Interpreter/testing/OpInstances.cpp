#include "compiler/Interpreter/testing/OpInstances.h"

#include "dialects/Titan/Titan.h"
#include "mlir/Parser/Parser.h"

#include <nlohmann/json.hpp>

#include <fstream>

using namespace mlir;
using nlohmann::json;

namespace titan::interpreter::testing {

namespace {

const std::string root = TITAN_SOURCE_DIR;

double numberOf(const json& value) {
  return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
}

Tensor tensorOf(Type type, const json& values) {
  Tensor tensor(cast<ShapedType>(type));
  if (static_cast<size_t>(tensor.size()) != values.size())
    llvm::report_fatal_error(llvm::Twine("references.json: ") + llvm::Twine(values.size()) +
                             " values for a tensor of " + llvm::Twine(tensor.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    if (tensor.isFloat())
      tensor.mutableFloats()[i] = numberOf(values[i]);
    else
      tensor.mutableIntegers()[i] = static_cast<int64_t>(numberOf(values[i]));
  }
  return tensor;
}

std::vector<Tensor> tensorsOf(TypeRange types, const json& values) {
  std::vector<Tensor> tensors;
  // A function may return fewer results than the reference has.
  for (auto [type, value] : llvm::zip(types, values))
    tensors.push_back(tensorOf(type, value));
  return tensors;
}

} // namespace

OpInstances::OpInstances(const DialectRegistry& registry) : context_(registry) {
  context_.loadAllAvailableDialects();
  module_ = parseSourceFile<ModuleOp>(root + "/test/dialects/titan-ops.mlir", &context_);
  std::ifstream file(root + "/test/interpreter/references.json");
  json references = json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!module_ || references.is_discarded())
    llvm::report_fatal_error("cannot read titan-ops.mlir or references.json");
  for (auto function : module_->getOps<func::FuncOp>()) {
    Instance instance{function.getName().str(), function, nullptr, {}};
    for (Operation& op : function.getBody().front().without_terminator())
      instance.op = &op;
    if (references.contains(instance.name))
      for (const json& run : references[instance.name])
        instance.runs.push_back({tensorsOf(function.getArgumentTypes(), run["arguments"]),
                                 tensorsOf(function.getResultTypes(), run["results"])});
    instances_.push_back(std::move(instance));
  }
}

} // namespace titan::interpreter::testing
