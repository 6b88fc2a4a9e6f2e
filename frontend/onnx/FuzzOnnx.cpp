// Model files of any content: refused, or imported to a module that verifies. External data is
// looked for in a directory that does not exist, so that nothing but the input is read.
#include "frontend/onnx/Check.h"
#include "frontend/onnx/ReadGraph.h"

#include <cstdlib>

using namespace titan;
using namespace titan::frontend;

/// LLVM's allocators poison the memory they have not handed out, inline in headers: those that we
/// compile do, the ones in the distribution's libMLIR do not unpoison it.
extern "C" const char* __asan_default_options() { return "allow_user_poisoning=0"; }

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  Result<Graph> graph = parseGraph({data, size}, "fuzz.onnx", "/nonexistent");
  if (!graph.ok())
    return 0;
  Result<NameTable> names = nameTensors(*graph);
  if (!names.ok())
    return 0;
  Recipe recipe;
  recipe.model.init = "fresh";
  for (const Port& input : graph->inputs)
    for (const Dim& dim : input.dims.value_or(std::vector<Dim>()))
      if (!dim.symbol.empty() && (input.dims->empty() || &dim != &input.dims->front()))
        recipe.model.dims[dim.symbol] = 3;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = importGraph(context, *graph, *names, recipe);
  const CheckReport report = {*graph, *names, notesOf(*graph, *names, recipe)};
  if (toText(report).empty() || toJson(report).empty())
    std::abort();
  // Bad input is what we expect; an internal error means that a converter made invalid IR.
  if (!module.ok() && module.error().code() == ErrorCode::Internal) {
    fmt::print(stderr, "{}\n", module.error().message());
    std::abort();
  }
  return 0;
}
