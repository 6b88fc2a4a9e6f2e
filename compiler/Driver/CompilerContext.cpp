#include "compiler/Driver/CompilerContext.h"

#include "compiler/Pipeline/Pipeline.h"
#include "compiler/Pipeline/Register.h"

#include "mlir/IR/Remarks.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace titan {

namespace {

DialectRegistry makeRegistry(const DialectRegistry& more) {
  DialectRegistry registry;
  registerAllDialects(registry);
  more.appendTo(registry);
  return registry;
}

/// "file.mlir:3:5: ", or nothing when the location says nothing to a user.
std::string locationPrefix(Location location) {
  if (auto file = location->findInstanceOf<FileLineColLoc>())
    return llvm::formatv("{0}:{1}:{2}: ", file.getFilename().getValue(), file.getLine(),
                         file.getColumn());
  return "";
}

} // namespace

CompilerContext::CompilerContext(const DialectRegistry& more) : context_(makeRegistry(more)) {
  [[maybe_unused]] static const bool registered = (registerAllPasses(), true);
  context_.loadAllAvailableDialects();
  context_.printOpOnDiagnostic(false);
  context_.getDiagEngine().registerHandler([this](Diagnostic& diagnostic) {
    std::string text = locationPrefix(diagnostic.getLocation()) + diagnostic.str();
    for (Diagnostic& note : diagnostic.getNotes())
      text += "; " + note.str();
    switch (diagnostic.getSeverity()) {
    case DiagnosticSeverity::Error:
      errors_.push_back(std::move(text));
      break;
    case DiagnosticSeverity::Warning:
      llvm::errs() << "warning: " << text << "\n";
      break;
    case DiagnosticSeverity::Note:
    case DiagnosticSeverity::Remark:
      llvm::errs() << "remark: " << text << "\n";
      break;
    }
    return success();
  });
}

Status CompilerContext::disablePasses(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!PassInfo::lookup(name))
      return Error::usage("--disable-pass={}: no pass has this name (titan-opt --help lists them)",
                          name);
    if (!isOptionalPass(name))
      return Error::usage(
          "--disable-pass={}: the pipeline cannot do without this pass, but without "
          "any of {}",
          name, llvm::join(optionalPasses(), ", "));
  }
  skipPasses(context_, names);
  return {};
}

Status CompilerContext::enableRemarks(const std::string& pattern) {
  std::string problem;
  if (!llvm::Regex(pattern).isValid(problem))
    return Error::usage("--remarks={}: {}", pattern, problem);
  // `all` only widens a kind that is set; a kind that is not set stays silent. MLIR matches whole
  // categories.
  std::string part = ".*(" + pattern + ").*";
  remark::RemarkCategories categories{std::nullopt, part, part, part, part};
  if (failed(remark::enableOptimizationRemarks(
          context_, nullptr, std::make_unique<remark::RemarkEmittingPolicyAll>(), categories,
          /*printAsEmitRemarks=*/true)))
    return Error::internal("remarks could not be enabled");
  return {};
}

Error CompilerContext::takeError(ErrorCode code) {
  std::string text = errors_.empty() ? "failed without a diagnostic" : errors_.front();
  if (errors_.empty())
    code = ErrorCode::Internal;
  errors_.clear();
  return {code, text};
}

} // namespace titan
