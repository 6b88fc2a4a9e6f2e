#include "compiler/Driver/Driver.h"

#include "compiler/Driver/Compilation.h"
#include "compiler/Driver/CompileJob.h"
#include "compiler/Driver/JobPayload.h"
#include "compiler/Driver/Output.h"
#include "compiler/Driver/PayloadBytes.h"
#include "compiler/Driver/Version.h"
#include "compiler/Link/Link.h"
#include "frontend/nn/StarterRecipe.h"
#include "frontend/onnx/Check.h"
#include "frontend/onnx/StarterRecipe.h"

#include "llvm/Support/raw_ostream.h"

#include <filesystem>

namespace titan {

namespace {

namespace fs = std::filesystem;

frontend::ImportOptions importOptions(const CompileOptions& options) {
  frontend::ImportOptions import;
  import.weightsDirectory = options.weightsDirectory;
  import.namesFile = options.names;
  import.strictNames = options.strictNames;
  return import;
}

Status requireOnnx(const CompileOptions& options, std::string_view flag) {
  if (fs::path(options.model).extension() != ".onnx")
    return Error::usage("{} reads an .onnx file, not {}", flag, options.model);
  return {};
}

Status check(const CompileOptions& options) {
  TITAN_TRY(requireOnnx(options, "--check"));
  CompilerContext compiler;
  Recipe recipe = TITAN_TRY(readRecipe(options));
  frontend::CheckReport report = TITAN_TRY(
      frontend::checkModel(compiler.context(), options.model, recipe, importOptions(options)));
  TITAN_TRY(writeOutput(options.output, options.json ? toJson(report) : toText(report)));
  if (!report.error.empty())
    return Error::badInput("{} cannot be compiled: see the report", options.model);
  return {};
}

/// Flags that say how a file is read mean nothing to a model of Titan's own frontend.
Status requireNoFileFlags(const CompileOptions& options) {
  if (!options.names.empty())
    TITAN_TRY(requireOnnx(options, "--names"));
  if (options.strictNames)
    TITAN_TRY(requireOnnx(options, "--strict-names"));
  if (!options.weightsDirectory.empty())
    TITAN_TRY(requireOnnx(options, "--weights-dir"));
  return {};
}

Status writeRecipe(const CompileOptions& options) {
  std::string recipe;
  if (nn::isModelRequest(options.model)) {
    CompilerContext compiler;
    recipe = TITAN_TRY(
        nn::starterRecipe(compiler.context(), TITAN_TRY(nn::parseModelRequest(options.model))));
  } else {
    TITAN_TRY(requireOnnx(options, "--write-recipe"));
    recipe = TITAN_TRY(frontend::starterRecipe(options.model, importOptions(options)));
  }
  return writeOutput(options.output, recipe);
}

CodegenOptions codegenOptions(const CompileOptions& options) {
  CodegenOptions codegen;
  codegen.embedWeights = options.embedWeights;
  codegen.referenceKernels = options.referenceKernels;
  codegen.weightsDirectory = options.weightsDirectory.empty()
                                 ? fs::path(options.model).parent_path().string()
                                 : options.weightsDirectory;
  codegen.compilerVersion = compilerVersion();
  // What lies on the way to kept code, as the assembler's log, is not kept.
  if (options.saveTemps.empty())
    codegen.cache = options.cache;
  if (!codegen.cache.empty())
    codegen.buildIdentity = buildIdentity();
  return codegen;
}

/// The last stage before what `options` ask for: codegen leaves MLIR.
Stage lastPipelineStage(const CompileOptions& options) {
  return options.emit ? std::min(*options.emit, Stage::Plan) : Stage::Plan;
}

Status emit(Compilation& compilation, const CompileOptions& options) {
  if (*options.emit != Stage::Codegen)
    return writeOutput(options.output, compilation.print());
  return writeOutput(options.output,
                     TITAN_TRY(printCode(compilation.module(), codegenOptions(options))));
}

/// "mlp.a" for a CPU; "mlp.sm_90.cubin", "mlp.sm_80.ptx", and what the assembler said of them.
Status saveImages(const CompiledModule& code, const std::string& base) {
  for (const codegen::CompiledImage& compiled : code.images) {
    const std::string name = base + "." + compiled.image.arch;
    switch (compiled.image.kind) {
    case Image::Kind::Object:
      TITAN_TRY(writeOutput(base + ".a", compiled.bytes));
      break;
    case Image::Kind::Cubin:
      TITAN_TRY(writeOutput(name + ".cubin", compiled.bytes));
      break;
    case Image::Kind::Ptx:
      TITAN_TRY(writeOutput(name + ".ptx", compiled.bytes));
      break;
    }
    if (!compiled.log.empty())
      TITAN_TRY(writeOutput(name + ".log", compiled.log));
  }
  return {};
}

/// The archive of kernels for the host; empty where a card runs them.
std::string_view hostKernels(const CompiledModule& code) {
  for (const codegen::CompiledImage& compiled : code.images)
    if (compiled.image.kind == Image::Kind::Object)
      return compiled.bytes;
  return {};
}

Status link(std::vector<CompiledModule>& modules, const std::string& output) {
  const JobPayload merged = mergePayloads(modules);
  std::vector<Program> programs;
  std::vector<std::string> tables;
  std::vector<link::ProgramData> data;
  std::string_view kernels;
  for (const CompiledModule& code : modules) {
    programs.push_back(code.program);
    tables.push_back(serialize(code.program));
    if (const std::string_view archive = hostKernels(code); !archive.empty())
      kernels = archive; // of one program: --reference-kernels is for a single target
  }
  TITAN_TRY(verifyJob(programs));
  for (size_t i = 0; i < modules.size(); ++i)
    data.push_back({tables[i], modules[i].hostSymbols});
  PayloadBytes payload = TITAN_TRY(PayloadBytes::open(merged.parts));
  const auto write = [&](const link::ByteSink& sink) { return payload.write(sink); };
  return link::linkJob(kernels, {data, static_cast<uint64_t>(merged.bytes), write}, output);
}

using Note = std::function<void(const std::string&)>;

void printNote(const std::string& note) { llvm::errs() << "note: " << note << "\n"; }

/// The code of the module for the target that was entered last.
Result<CompiledModule> generate(Compilation& compilation, const CompileOptions& options,
                                const Note& note) {
  CompiledModule code = TITAN_TRY(compilation.timed(
      "codegen", [&] { return generateCode(compilation.module(), codegenOptions(options)); }));
  llvm::for_each(code.notes, note);
  if (!options.saveTemps.empty())
    TITAN_TRY(saveImages(code, options.saveTemps + "/" + compilation.name()));
  return code;
}

/// Compiles for all targets and links the job, or prints the stage that `options` ask for.
Status compile(Compilation& compilation, const CompileOptions& options, const std::string& output,
               const Note& note) {
  llvm::for_each(compilation.notes(), note);
  std::vector<CompiledModule> modules;
  for (size_t target = 0; target < compilation.targets(); ++target) {
    if (!options.emit) // what is printed for several targets is the same for all
      TITAN_TRY(compilation.enterTarget(target));
    TITAN_TRY(compilation.advance(lastPipelineStage(options)));
    if (target + 1 == compilation.targets() || options.emit)
      llvm::for_each(compilation.checked().notes(), note);
    if (options.emit)
      return emit(compilation, options);
    modules.push_back(TITAN_TRY(generate(compilation, options, note)));
  }
  return compilation.timed("link", [&] { return link(modules, output); });
}

/// The process ends soon: to free a module op by op first would take longer than to check it.
void leaveToProcess(std::unique_ptr<Compilation> compilation) {
  static Compilation* left = nullptr; // where tools that look for leaks find it
  left = compilation.release();
}

Status compile(const CompileOptions& options, const mlir::DialectRegistry& more) {
  std::unique_ptr<Compilation> compilation = TITAN_TRY(Compilation::load(options, more));
  const std::string output = options.output.empty() ? compilation->name() : options.output;
  TITAN_TRY(compile(*compilation, options, output, printNote));
  if (!options.emit)
    llvm::errs() << "wrote " << output << "\n";
  if (!options.timing) // whose report is printed by the last scope
    leaveToProcess(std::move(compilation));
  return {};
}

Status run(const std::vector<std::string>& arguments, const mlir::DialectRegistry& more) {
  std::optional<CompileOptions> options = TITAN_TRY(parseCompileOptions(arguments));
  if (!options)
    return {};
  if (nn::isModelRequest(options->model)) {
    const nn::ModelRequest request = TITAN_TRY(nn::parseModelRequest(options->model));
    if (request.help)
      return writeOutput(options->output, nn::helpOf(*request.model));
    TITAN_TRY(requireNoFileFlags(*options));
  }
  if (options->check)
    return check(*options);
  if (options->writeRecipe)
    return writeRecipe(*options);
  return compile(*options, more);
}

} // namespace

Status compileJob(const nn::ModelFunction& build, const Recipe& recipe, const JobOptions& job) {
  CompileOptions options;
  options.model = job.name;
  options.target = job.target;
  options.arch = job.arch;
  options.cache = job.cache;
  std::unique_ptr<Compilation> compilation = TITAN_TRY(Compilation::build(options, build, recipe));
  return compile(*compilation, options, job.output.empty() ? job.name : job.output,
                 job.note ? job.note : printNote);
}

int compileMain(const std::vector<std::string>& arguments, const std::string&,
                const mlir::DialectRegistry& more) {
  Status status = run(arguments, more);
  if (!status.ok())
    llvm::errs() << "error: " << status.error().message() << "\n";
  llvm::errs().clear_error(); // what nobody could read ends no compilation
  return status.ok() ? 0 : status.error().exitCode();
}

} // namespace titan
