#include "compiler/Eager/ReferenceEngine.h"

#include "compiler/Codegen/CommandTable.h"
#include "compiler/Codegen/StateTable.h"
#include "compiler/Eager/TensorBytes.h"
#include "compiler/Support/IndexBound.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/TaggedFunction.h"

#include <cstdio>
#include <cstdlib>

using namespace mlir;

namespace titan::eager {

namespace {

constexpr int64_t alignment = 64;
ReferenceEngine* active = nullptr;

struct RoleTag {
  StringRef tag;
  Binding::Role role;
};
constexpr RoleTag argumentRoles[] = {{ir::tag::input, Binding::Role::Input},
                                     {ir::tag::control, Binding::Role::Control}};
constexpr RoleTag resultRoles[] = {{ir::tag::metric, Binding::Role::Metric},
                                   {ir::tag::output, Binding::Role::Output}};

} // namespace

Result<std::unique_ptr<ReferenceEngine>> ReferenceEngine::create(ModuleOp module,
                                                                 interpreter::Engine engine) {
  std::unique_ptr<ReferenceEngine> result(new ReferenceEngine(module, engine));
  std::string message;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic& diagnostic) {
    if (message.empty())
      message = diagnostic.str();
  });
  if (failed(result->describe()))
    return Error::internal("{}", message);
  TITAN_TRY(verify(result->program_));
  active = result.get();
  return result;
}

ReferenceEngine::~ReferenceEngine() {
  if (active == this)
    active = nullptr;
}

KernelFunction ReferenceEngine::kernel() { return &runKernel; }

int64_t ReferenceEngine::place(int64_t bytes) {
  int64_t offset = program_.arenaBytes;
  program_.arenaBytes += (bytes + alignment - 1) / alignment * alignment;
  return offset;
}

LogicalResult ReferenceEngine::describe() {
  FailureOr<Recipe> recipe = getRecipe(module_);
  if (failed(recipe))
    return failure();
  if (auto model = module_->getAttrOfType<StringAttr>(ir::tag::model))
    program_.model = model.getValue();
  program_.recipe = toJson(*recipe);
  program_.optimizer = recipe->optimizer.kind;
  program_.target = {"cpu", "reference interpreter", {}};
  program_.compilerVersion = engine_ == interpreter::Engine::F64 ? "eager f64" : "eager f32";
  program_.kernels.push_back({"interpreter", "reference interpreter"});
  for (auto op : module_.getOps<ir::StateOp>()) {
    FailureOr<State> state = codegen::describeState(op);
    if (failed(state))
      return failure();
    state->offset = place(state->bytes);
    stateIndex_[op.getSymName().str()] = program_.states.size();
    program_.states.push_back(std::move(*state));
  }
  program_.stateBytes = program_.arenaBytes;
  for (StringRef name : {ir::function::step, ir::function::eval, ir::function::predict}) {
    auto function = module_.lookupSymbol<func::FuncOp>(name);
    if (!function || failed(describeFunction(function)))
      return function ? failure() : module_.emitError("the module has no @") << name;
  }
  program_.bindingBytes = program_.arenaBytes - program_.stateBytes;
  return success();
}

LogicalResult ReferenceEngine::describeFunction(func::FuncOp op) {
  Function function;
  function.name = op.getName().str();
  FunctionSlots slots;
  slots.function = op;
  Command command;
  command.scalars.push_back(Affine{static_cast<int64_t>(functions_.size())});

  auto add = [&](Type type, StringRef stateSymbol, ArrayRef<RoleTag> roles, auto nameOf,
                 Access access, std::vector<Slot>& into) -> Binding* {
    Slot slot;
    slot.type = cast<RankedTensorType>(type);
    slot.dtype = *codegen::dtypeOf(slot.type.getElementType());
    slot.bytes = slot.type.getNumElements() * byteSize(slot.dtype);
    Binding* binding = nullptr;
    if (!stateSymbol.empty()) {
      const State& state = program_.states[stateIndex_.at(stateSymbol.str())];
      slot.state = state.name;
      slot.offset = state.offset;
    } else {
      slot.offset = place(slot.bytes);
      for (const RoleTag& role : roles)
        if (StringRef name = nameOf(role.tag); !name.empty()) {
          function.bindings.push_back({role.role, name.str(), slot.dtype,
                                       codegen::shapeOf(slot.type), codegen::shapeOf(slot.type),
                                       slot.offset, slot.bytes, 0});
          binding = &function.bindings.back();
        }
    }
    command.operands.push_back({Affine{slot.offset}, slot.bytes, access});
    into.push_back(std::move(slot));
    return binding;
  };
  TaggedFunction tagged(op);
  for (BlockArgument argument : op.getArguments()) {
    unsigned i = argument.getArgNumber();
    Binding* binding = add(
        argument.getType(), tagged.argumentTag(i, ir::tag::state), argumentRoles,
        [&](StringRef tag) { return tagged.argumentTag(i, tag); }, Access::Read, slots.arguments);
    if (binding && binding->role == Binding::Role::Input)
      binding->classes = indexBound(argument);
  }
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    add(
        op.getResultTypes()[i], tagged.resultTag(i, ir::tag::state), resultRoles,
        [&](StringRef tag) { return tagged.resultTag(i, tag); }, Access::Write, slots.results);
  // One command does everything, the update included.
  command.phase = Phase::Update;
  function.commands.push_back(std::move(command));
  program_.functions.push_back(std::move(function));
  functions_.push_back(std::move(slots));
  return success();
}

interpreter::Tensor ReferenceEngine::read(const Slot& slot, const char* bytes) {
  if (!slot.state.empty()) {
    // A load or an init may have changed the state behind our back.
    auto found = remembered_.find(slot.state);
    if (found != remembered_.end() && found->second.bytes == std::string_view(bytes, slot.bytes))
      return found->second.tensor;
  }
  return decode(slot.type, slot.dtype, bytes);
}

void ReferenceEngine::write(const Slot& slot, const interpreter::Tensor& tensor, char* bytes) {
  encode(tensor, slot.dtype, bytes);
  if (!slot.state.empty() && engine_ == interpreter::Engine::F64)
    remembered_[slot.state] = {tensor, std::string(bytes, slot.bytes)};
}

void ReferenceEngine::run(size_t index, char* const* operands) {
  const FunctionSlots& slots = functions_[index];
  SmallVector<interpreter::Tensor> arguments;
  for (const Slot& slot : slots.arguments)
    arguments.push_back(read(slot, *operands++));
  FailureOr<SmallVector<interpreter::Tensor>> results =
      interpreter::run(slots.function, arguments, engine_);
  if (failed(results)) {
    // A kernel cannot fail, so neither can this one go on; the diagnostic handler has the message.
    std::fprintf(stderr, "error: the interpreter cannot run @%s\n",
                 program_.functions[index].name.c_str());
    std::exit(static_cast<int>(ErrorCode::Internal));
  }
  for (auto [slot, result] : llvm::zip_equal(slots.results, *results))
    write(slot, result, *operands++);
}

void ReferenceEngine::runKernel(char* const* operands, const int64_t* scalars, int64_t, int64_t) {
  active->run(static_cast<size_t>(scalars[0]), operands);
}

} // namespace titan::eager
