#include "compiler/Support/Coverage.h"

#include <gtest/gtest.h>

using namespace titan;

namespace {

TEST(Coverage, HasARowForEachOpAndAColumnForEachRegistry) {
  mlir::MLIRContext context;
  context.loadDialect<ir::TitanDialect>();
  llvm::SmallVector<CoverageColumn> columns = interfaceColumns();
  columns.push_back({"import", [](mlir::RegisteredOperationName op) {
                       return op.getStringRef() == "titan.relu";
                     }});
  std::string text;
  llvm::raw_string_ostream out(text);
  printCoverage(context, columns, out);
  EXPECT_TRUE(text.starts_with("| op | interpreter | gradient | factor rule | lowering | import |\n"
                               "|---|---|---|---|---|---|\n| `titan.abs` |"))
      << text;
  // Factor rules are the dialect's own; the models of other layers are not registered here.
  EXPECT_NE(text.find("| `titan.relu` | - | - | yes | - | yes |\n"), std::string::npos) << text;
  EXPECT_NE(text.find("| `titan.adam` | - | - | - | - | - |\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("titan.state"), std::string::npos);
}

} // namespace
