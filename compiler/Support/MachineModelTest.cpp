#include "compiler/Support/TargetInfo.h"

#include "dialects/Titan/Titan.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <set>

using namespace mlir;
using namespace titan;

namespace {

class MachineModelTest : public ::testing::Test {
protected:
  MachineModelTest() {
    context.loadDialect<ir::TitanDialect>();
    context.getDiagEngine().registerHandler([&](Diagnostic& diagnostic) {
      message = diagnostic.str();
      return success();
    });
    module = parseSourceString<ModuleOp>("module {}", &context);
  }

  /// The error for a target whose machine model `change` has been applied to.
  template <typename Change> std::string errorAfter(Change change) {
    NamedAttrList fields(toAttribute(MachineModel(), &context));
    change(fields);
    TargetInfo usual;
    usual.machine.emplace();
    setTarget(*module, usual);
    NamedAttrList target(cast<DictionaryAttr>((*module)->getAttr(ir::tag::target)));
    target.set("machine", fields.getDictionary(&context));
    (*module)->setAttr(ir::tag::target, target.getDictionary(&context));
    message.clear();
    EXPECT_TRUE(failed(getTarget(*module)));
    return message;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::string message;
};

TEST_F(MachineModelTest, APrintedTargetCarriesEveryNumber) {
  TargetInfo target;
  target.cpu = "znver5";
  target.features = "-rdpru";
  double next = 1.0 / 3;
  visitFields(target.machine.emplace(), [&](StringRef, auto& field) { field = (next += 1.7); });
  // These have to go together.
  target.machine->attentionRows = 192, target.machine->attentionRowsOfWide = 96;
  target.machine->attentionKeys = 48, target.machine->attentionPadding = 12;
  setTarget(*module, target);
  std::string text;
  llvm::raw_string_ostream out(text);
  module->print(out);
  module = parseSourceString<ModuleOp>(text, &context);
  FailureOr<TargetInfo> read = getTarget(*module);
  ASSERT_TRUE(succeeded(read)) << message;
  EXPECT_TRUE(*read == target);
}

TEST_F(MachineModelTest, ACardHasArchitecturesInPlaceOfACpu) {
  TargetInfo target{"cuda", "", "", "sm_80,sm_90", MachineModel()};
  target.machine->attentionPadding = 0; // the only number that may be
  setTarget(*module, target);
  auto attribute = (*module)->getAttrOfType<DictionaryAttr>("titan.target");
  EXPECT_FALSE(attribute.contains("cpu"));
  FailureOr<TargetInfo> read = getTarget(*module);
  ASSERT_TRUE(succeeded(read)) << message;
  EXPECT_TRUE(*read == target);
}

TEST_F(MachineModelTest, FieldsHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  size_t fields = 0;
  MachineModel machine;
  visitFields(machine, [&](StringRef name, auto) { names.insert(name.str()), ++fields; });
  EXPECT_EQ(names.size(), fields);
}

TEST_F(MachineModelTest, WithoutATargetTheNumbersAreTheDefaults) {
  FailureOr<TargetInfo> target = getTarget(*module);
  ASSERT_TRUE(succeeded(target));
  EXPECT_FALSE(target->machine);
  EXPECT_TRUE(*getMachine(*module) == MachineModel());
  EXPECT_EQ(target->cpu, "native");
}

TEST_F(MachineModelTest, DamagedModelsAreRefusedByField) {
  Builder b(&context);
  EXPECT_EQ(errorAfter([&](NamedAttrList& fields) { fields.erase("thread_ns"); }),
            "the machine model has no field 'thread_ns'");
  EXPECT_EQ(errorAfter([&](NamedAttrList& fields) {
              fields.set("grid_granule", b.getI64IntegerAttr(-16));
            }),
            "the machine model's field 'grid_granule' is -16 : i64: a positive i64 is needed");
  EXPECT_EQ(errorAfter(
                [&](NamedAttrList& fields) { fields.set("thread_ns", b.getI64IntegerAttr(2000)); }),
            "the machine model's field 'thread_ns' is 2000 : i64: a positive f64 is needed");
  EXPECT_EQ(
      errorAfter([&](NamedAttrList& fields) { fields.set("cache_lines", b.getI64IntegerAttr(1)); }),
      "the machine model has an unknown field 'cache_lines'");
}

TEST_F(MachineModelTest, DamagedTargetsAreRefused) {
  auto errorOf = [&](const std::string& attribute) {
    module = parseSourceString<ModuleOp>("module attributes {titan.target = " + attribute + "} {}",
                                         &context);
    EXPECT_TRUE(module && failed(getTarget(*module)));
    return message;
  };
  EXPECT_EQ(errorOf("{kind = \"cpu\", features = \"\"}"),
            "'titan.target' is not {kind, cpu, features, machine} with 'cpu' a string");
  EXPECT_EQ(errorOf("{kind = \"cuda\", archs = 90}"),
            "'titan.target' is not {kind, archs, machine} with 'archs' a string");
  EXPECT_EQ(errorOf("{kind = \"cuda\", archs = \"sm_90\", cpu = \"znver5\"}"),
            "'titan.target' has an unknown entry 'cpu'");
  EXPECT_EQ(errorOf("{kind = \"cpu\", cpu = \"znver5\", features = \"\", speed = 1}"),
            "'titan.target' has an unknown entry 'speed'");
  EXPECT_EQ(errorOf("{kind = \"cpu\", cpu = \"znver5\", features = \"\", machine = 1}"),
            "the machine model of 'titan.target' is 1 : i64: a dictionary is needed");
}

} // namespace
