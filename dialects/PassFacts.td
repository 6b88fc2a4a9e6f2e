// What a pass says of itself beside what it does: PassFacts.h has the C++ side.
#ifndef TITAN_PASS_FACTS_TD
#define TITAN_PASS_FACTS_TD

include "mlir/Pass/PassBase.td"

/// A member of titan::PassFacts that holds for a pass.
class PassFact<string name> {
  string member = name;
}
def IsOptional : PassFact<"isOptional">;
def MovesRounding : PassFact<"movesRounding">;
def CutsLoss : PassFact<"cutsLoss">;

/// A pass of a stage. `let facts = [IsOptional];` in its entry makes a base class of them that `factsOf` finds. A pass without facts may not be skipped,
/// and keeps every bit.
class TitanPass<string passArg, string operation> : Pass<passArg, operation> {
  list<PassFact> facts = [];
  let baseClass = !if(!empty(facts), "::mlir::OperationPass<" # operation # ">",
      "::titan::PassWithFacts<::mlir::OperationPass<" # operation # ">, ::titan::PassFacts{"
          # !interleave(!foreach(fact, facts, "." # fact.member # " = true"), ", ") # "}>");
}

#endif // TITAN_PASS_FACTS_TD
