#include "compiler/Interpreter/ShardedRun.h"

#include "compiler/Support/RecipeAttribute.h"
#include "runtime/program/Collective.h"

using namespace mlir;

namespace titan::interpreter {

FailureOr<ShardedRun> ShardedRun::create(func::FuncOp function) {
  ShardedRun run(function);
  FailureOr<bool> isOfRank = isOfOneRank(function);
  if (failed(isOfRank))
    return failure();
  if (*isOfRank) {
    run.mesh_ = meshAxesOf(function);
    run.recipe_ = *getRecipe(function->getParentOfType<ModuleOp>());
    run.recipe_.mesh.axes = run.mesh_;
  }
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    FailureOr<Division> division = divisionOfArgument(function, i, *isOfRank);
    if (failed(division))
      return failure();
    run.arguments_.push_back(std::move(*division));
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    FailureOr<Division> division = divisionOfResult(function, i, *isOfRank);
    if (failed(division))
      return failure();
    run.results_.push_back(std::move(*division));
  }
  return run;
}

int64_t ShardedRun::ranks() const { return rankCount(mesh_); }

SmallVector<RankedTensorType> ShardedRun::argumentTypes() const {
  return llvm::map_to_vector(arguments_, [](const Division& division) { return division.job; });
}

bool ShardedRun::hasPadding() const {
  return llvm::any_of(arguments_,
                      [&](const Division& division) { return division.hasPadding(mesh_); });
}

FailureOr<Tensors> ShardedRun::run(ArrayRef<Tensor> arguments, Engine engine) const {
  return run(SmallVector<func::FuncOp>(ranks(), function_), arguments, engine);
}

FailureOr<Tensors> ShardedRun::run(ArrayRef<func::FuncOp> programs, ArrayRef<Tensor> arguments,
                                   Engine engine) const {
  return runEach(arguments, [&](Rank* rank, ArrayRef<Tensor> mine) {
    return interpreter::run(programs[rank ? rank->number() : 0], mine, engine, rank);
  });
}

FailureOr<Tensors>
ShardedRun::runEach(ArrayRef<Tensor> arguments,
                    llvm::function_ref<FailureOr<Tensors>(Rank*, ArrayRef<Tensor>)> program) const {
  if (mesh_.empty())
    return program(nullptr, arguments);
  std::vector<Tensors> results(ranks());
  LogicalResult ran = runRanks(mesh_, [&](Rank& rank) {
    FailureOr<Tensors> mine = program(&rank, cutFor(rank.coordinates(), arguments));
    if (succeeded(mine))
      results[rank.number()] = std::move(*mine);
    return LogicalResult(mine);
  });
  if (failed(ran))
    return failure();
  return joinAll(results);
}

Tensors ShardedRun::cutFor(ArrayRef<int64_t> coordinates, ArrayRef<Tensor> arguments) const {
  const MicrobatchOrder order = microbatchOrder(recipe_, coordinates);
  Tensors parts;
  for (auto [tensor, division] : llvm::zip_equal(arguments, arguments_))
    parts.push_back(cut(tensor, division, mesh_, coordinates, order, padding_));
  return parts;
}

FailureOr<Tensors> ShardedRun::joinAll(ArrayRef<Tensors> ofRanks) const {
  Tensors joined;
  for (auto [i, division] : llvm::enumerate(results_)) {
    Tensors parts;
    for (const Tensors& results : ofRanks)
      parts.push_back(results[i]);
    FailureOr<Tensor> whole = join(parts, division, mesh_, [&, i = i] {
      auto function = function_;
      return function.emitError() << "@" << function.getName() << " result " << i << ": ";
    });
    if (failed(whole))
      return failure();
    joined.push_back(std::move(*whole));
  }
  return joined;
}

} // namespace titan::interpreter
