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
  EXPECT_TRUE(text.starts_with("| op | interpreter | gradient | factor rule | lowering "
                               "| accumulating | random | narrow | cost | import |\n"
                               "|---|---|---|---|---|---|---|---|---|---|\n| `titan.abs` |"))
      << text;
  // Meanings, gradients and lowerings are other layers', which are not registered here.
  for (const char* row : {"| `titan.relu` | - | - | yes | - | - | - | - | yes | yes |\n",
                          "| `titan.contract` | - | - | yes | - | yes | - | yes | yes | - |\n",
                          "| `titan.attention` | - | - | yes | - | - | yes | yes | yes | - |\n",
                          "| `titan.adam` | - | - | yes | - | - | - | - | yes | - |\n"})
    EXPECT_NE(text.find(row), std::string::npos) << row << text;
  EXPECT_EQ(text.find("titan.state"), std::string::npos);
}

} // namespace
