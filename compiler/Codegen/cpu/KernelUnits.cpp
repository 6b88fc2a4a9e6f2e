#include "compiler/Codegen/cpu/KernelUnits.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ObjCopy/ConfigManager.h"
#include "llvm/ObjCopy/ObjCopy.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace titan::codegen {
namespace {

/// A function without its body.
func::FuncOp declare(OpBuilder& builder, func::FuncOp function) {
  auto declaration = func::FuncOp::create(builder, function.getLoc(), function.getName(),
                                          function.getFunctionType());
  declaration.setPrivate();
  return declaration;
}

/// Writes ops in their order, without their locations: values, blocks, attributes, types and names
/// by the order in which they come, the last three with their text at first.
class KeyWriter {
public:
  explicit KeyWriter(llvm::DenseMap<const void*, std::string>& printed) : printed(printed) {}

  void addOp(Operation& op) {
    addPart(op.getName());
    addPart(op.getAttrDictionary());
    addAll(op.getOperands(), [&](Value operand) { addNumber(operand); });
    addAll(op.getResults(), [&](Value result) { addDefinition(result); });
    addAll(op.getSuccessors(), [&](Block* block) { addWord(numberOf(block)); });
    addAll(op.getRegions(), [&](Region& region) {
      addAll(region, [&](Block& block) {
        addWord(numberOf(&block));
        addAll(block.getArguments(), [&](Value argument) { addDefinition(argument); });
        addAll(block, [&](Operation& inner) { addOp(inner); });
      });
    });
  }

  std::string take() { return std::move(key); }

private:
  llvm::DenseMap<const void*, std::string>& printed;
  llvm::DenseMap<const void*, uint64_t> numbers;
  std::string key;

  void addWord(uint64_t word) { key.append(reinterpret_cast<const char*>(&word), sizeof(word)); }

  void addAll(auto&& range, auto add) {
    addWord(static_cast<uint64_t>(llvm::range_size(range)));
    for (auto&& element : range)
      add(element);
  }

  uint64_t numberOf(const void* thing) {
    return numbers.try_emplace(thing, numbers.size()).first->second;
  }
  void addNumber(Value value) { addWord(numberOf(value.getAsOpaquePointer())); }
  void addDefinition(Value value) {
    addNumber(value);
    addPart(value.getType());
  }

  void addPart(auto part) {
    const void* pointer = part.getAsOpaquePointer();
    const uint64_t known = numbers.size(), number = numberOf(pointer);
    addWord(number);
    if (number != known)
      return;
    std::string& text = printed[pointer];
    if (text.empty())
      llvm::raw_string_ostream(text) << part;
    addWord(text.size());
    key += text;
  }
};

} // namespace

std::string UnitKeys::of(const KernelUnit& unit) {
  KeyWriter writer(printed_);
  writer.addOp(*unit.module);
  return writer.take();
}

std::vector<KernelUnit> splitIntoUnits(ModuleOp kernels) {
  OpBuilder builder(kernels.getContext());
  llvm::StringMap<func::FuncOp> functions;
  SmallVector<func::FuncOp> defined, declared;
  for (auto function : kernels.getOps<func::FuncOp>()) {
    functions[function.getName()] = function;
    (function.isDeclaration() ? declared : defined).push_back(function);
  }
  std::vector<KernelUnit> units;
  for (func::FuncOp function : defined) {
    builder.setInsertionPointToEnd(kernels.getBody());
    auto module = ModuleOp::create(builder, function.getLoc());
    builder.setInsertionPointToEnd(module.getBody());
    llvm::SetVector<StringRef> called;
    function.walk([&](func::CallOp call) { called.insert(call.getCallee()); });
    for (StringRef callee : called)
      declare(builder, functions.lookup(callee));
    function->moveBefore(module.getBody(), module.getBody()->end());
    units.push_back({module, function.getName().str()});
  }
  for (func::FuncOp function : declared)
    function.erase();
  for (func::FuncOp function : defined) {
    if (function.isPublic())
      function.setName(kernelName); // nothing calls a kernel
    function.setPublic();
  }
  return units;
}

Result<std::string> nameKernel(const std::string& object, const std::string& symbol) {
  auto binary = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(object), symbol));
  if (!binary)
    return Error::internal("{}", llvm::toString(binary.takeError()));
  llvm::objcopy::ConfigManager config;
  config.Common.SymbolsToRename[kernelName] = symbol;
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  if (llvm::Error error = llvm::objcopy::executeObjcopyOnBinary(config, **binary, stream))
    return Error::internal("{}", llvm::toString(std::move(error)));
  return std::string(bytes.data(), bytes.size());
}

Result<std::string> makeArchive(const std::vector<KernelUnit>& units,
                                const std::vector<std::string>& objects) {
  std::vector<std::string> names;
  for (const KernelUnit& unit : units)
    names.push_back(unit.symbol + ".o");
  std::vector<llvm::NewArchiveMember> members;
  for (size_t i = 0; i < units.size(); ++i)
    members.emplace_back(llvm::MemoryBufferRef(objects[i], names[i]));
  auto archive = llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NormalSymtab,
                                            llvm::object::Archive::K_GNU, /*Deterministic=*/true,
                                            /*Thin=*/false);
  if (!archive)
    return Error::internal("{}", llvm::toString(archive.takeError()));
  return (*archive)->getBuffer().str();
}

} // namespace titan::codegen
