#include "compiler/Eager/ReferenceEngine.h"

#include "compiler/Codegen/CommandTable.h"
#include "compiler/Codegen/StateTable.h"
#include "compiler/Eager/TensorBytes.h"
#include "compiler/Support/IndexBound.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/TaggedFunction.h"

using namespace mlir;

namespace titan::eager {

namespace {

constexpr int64_t alignment = 64;

struct RoleTag {
  StringRef tag;
  Binding::Role role;
};
constexpr RoleTag argumentRoles[] = {{ir::tag::input, Binding::Role::Input},
                                     {ir::tag::control, Binding::Role::Control}};
constexpr RoleTag resultRoles[] = {{ir::tag::metric, Binding::Role::Metric},
                                   {ir::tag::output, Binding::Role::Output}};

} // namespace

Result<ReferenceProgram> ReferenceProgram::create(ModuleOp module, interpreter::Engine engine) {
  ReferenceProgram result(module, engine);
  std::string message;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic& diagnostic) {
    if (message.empty())
      message = diagnostic.str();
  });
  if (failed(result.describe()))
    return Error::internal("{}", message);
  TITAN_TRY(verify(result.program_));
  return result;
}

int64_t ReferenceProgram::place(int64_t bytes) {
  int64_t offset = program_.arenaBytes;
  program_.arenaBytes += (bytes + alignment - 1) / alignment * alignment;
  return offset;
}

LogicalResult ReferenceProgram::describe() {
  FailureOr<Recipe> recipe = getRecipe(module_);
  if (failed(recipe))
    return failure();
  if (auto model = module_->getAttrOfType<StringAttr>(ir::tag::model))
    program_.model = model.getValue();
  program_.recipe = toJson(*recipe);
  program_.optimizer = recipe->optimizer.kind;
  program_.mesh = recipe->mesh.axes;
  program_.target = {"cpu", "reference interpreter", {}};
  program_.compilerVersion = engine_ == interpreter::Engine::F64 ? "eager f64" : "eager f32";
  program_.kernels.push_back({"interpreter", "reference interpreter"});
  for (auto op : module_.getOps<ir::StateOp>()) {
    FailureOr<State> state = codegen::describeState(op, program_.mesh);
    if (failed(state))
      return failure();
    state->offset = place(state->bytes);
    stateIndex_[op.getSymName().str()] = program_.states.size();
    program_.states.push_back(std::move(*state));
  }
  program_.stateBytes = program_.arenaBytes;
  for (StringRef name : {ir::function::step, ir::function::eval, ir::function::predict})
    if (!module_.lookupSymbol<func::FuncOp>(name))
      return module_.emitError("the module has no @") << name;
  for (auto function : module_.getOps<func::FuncOp>())
    if (failed(describeFunction(function)))
      return failure();
  program_.bindingBytes = program_.arenaBytes - program_.stateBytes;
  return success();
}

LogicalResult ReferenceProgram::describeFunction(func::FuncOp op) {
  Function function;
  function.name = op.getName().str();
  function.modelFlops = codegen::modelFlopsOf(op);
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
      slot.isState = true;
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

Result<std::unique_ptr<ReferenceEngine>> ReferenceEngine::create(ReferenceProgram program) {
  HostMemory memory = TITAN_TRY(HostMemory::create(program.program_.arenaBytes));
  return std::unique_ptr<ReferenceEngine>(
      new ReferenceEngine(std::move(program), std::move(memory)));
}

interpreter::Tensor ReferenceEngine::read(const Slot& slot) {
  const std::span<char> window = this->window(slot.offset, slot.bytes);
  const std::string_view bytes(window.data(), window.size());
  if (slot.isState) {
    // A load or an init may have changed the state behind our back.
    auto found = remembered_.find(slot.offset);
    if (found != remembered_.end() && found->second.bytes == bytes)
      return found->second.tensor;
  }
  return decode(slot.type, slot.dtype, bytes.data());
}

void ReferenceEngine::write(const Slot& slot, const interpreter::Tensor& tensor) {
  char* bytes = window(slot.offset, slot.bytes).data();
  encode(tensor, slot.dtype, bytes);
  if (slot.isState && source_.engine_ == interpreter::Engine::F64)
    remembered_[slot.offset] = {tensor, std::string(bytes, slot.bytes)};
}

Status ReferenceEngine::run(uint32_t index, CommandObserver* observer) {
  const ReferenceProgram::FunctionSlots& slots = source_.functions_[index];
  const Function& function = source_.program_.functions[index];
  if (observer) {
    observer->beforeFunction(function);
    observer->before(function, 0);
  }
  SmallVector<interpreter::Tensor> arguments;
  for (const Slot& slot : slots.arguments)
    arguments.push_back(read(slot));
  FailureOr<SmallVector<interpreter::Tensor>> results =
      interpreter::run(slots.function, arguments, source_.engine_);
  if (failed(results)) // the diagnostic handler has the message
    return Error::internal("'{}' cannot run @{}", source_.program_.kernels[0].label, function.name);
  passGate();
  for (auto [slot, result] : llvm::zip_equal(slots.results, *results))
    write(slot, result);
  if (observer) {
    observer->after(function, 0);
    observer->afterFunction(function);
  }
  return {};
}

} // namespace titan::eager
