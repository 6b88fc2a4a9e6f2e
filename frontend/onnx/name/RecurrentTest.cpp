// States of exports of nn.LSTM, nn.GRU and nn.RNN (test/frontend/make_models.py): what the importer
// makes of them before it converts any node.
#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/convert/States.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace titan::frontend {
namespace {

namespace fs = std::filesystem;

const fs::path kInputs = fs::path(TITAN_TEST_INPUTS) / "recurrent";

struct StateBytes {
  Shape shape;
  std::string bytes;
  bool operator==(const StateBytes&) const = default;
};
using StatesByName = std::map<std::string, StateBytes>;

std::string readFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// state_dict() of the exported module.
StatesByName recorded(const fs::path& path) {
  ::onnx::GraphProto graph;
  EXPECT_TRUE(graph.ParseFromString(readFile(path))) << path;
  StatesByName states;
  for (::onnx::TensorProto& proto : *graph.mutable_initializer()) {
    Tensor tensor = takeTensor(proto, "recorded").take();
    states[tensor.name] = {tensor.shape, tensor.read().take()};
  }
  return states;
}

size_t rowMajor(const Shape& index, const Shape& shape) {
  int64_t at = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    at = at * shape[d] + index[d];
  return static_cast<size_t>(at);
}

Shape toShape(llvm::ArrayRef<int64_t> values) { return {values.begin(), values.end()}; }

/// What a `titan.state` says of its bytes, followed to the file, element by element.
StateBytes bytesOf(ir::StateOp state) {
  Shape shape = toShape(state.getTensorType().getShape());
  auto init = llvm::cast<ir::FileInitAttr>(state.getInit());
  std::vector<TensorSource> sources;
  if (auto list = state.getSources())
    for (auto source : list->getAsRange<ir::SourceAttr>())
      sources.push_back({source.getInitializer().str(),
                         {toShape(source.getAt()), toShape(source.getFrom()),
                          toShape(source.getExtent()), toShape(source.getDims())}});
  if (sources.empty())
    sources.push_back({state.getName().str(), {}});
  std::vector<std::string> names = initializersOf(sources);
  StateBytes result{shape, std::string(static_cast<size_t>(elementCount(shape)) * 4, '?')};
  for (const TensorSource& source : sources) {
    size_t i = std::find(names.begin(), names.end(), source.initializer) - names.begin();
    ir::StoredRangeAttr range = init.getStored()[i];
    Shape stored = range.getShape().empty() ? shape : toShape(range.getShape());
    std::string file = readFile(kInputs / range.getPath().str());
    Piece piece = writtenOut(source.piece, shape);
    Shape x(shape.size(), 0);
    for (int64_t n = 0; n < elementCount(piece.extent); ++n) {
      Shape index = x;
      for (size_t d = 0; d < index.size(); ++d)
        index[d] += piece.at[d];
      size_t from = range.getOffset() + 4 * rowMajor(elementOf(piece, index), stored);
      result.bytes.replace(4 * rowMajor(index, shape), 4, file.substr(from, 4));
      for (size_t d = x.size(); d-- > 0;) {
        if (++x[d] < piece.extent[d])
          break;
        x[d] = 0;
      }
    }
  }
  return result;
}

TEST(Recurrent, EveryExportHasTheStatesOfItsModule) {
  int exports = 0;
  for (const auto& entry : fs::directory_iterator(kInputs)) {
    if (entry.path().extension() != ".onnx")
      continue;
    ++exports;
    std::string file = entry.path().filename().string();
    std::string model = file.substr(
        0, file.find(file.find("-legacy") != std::string::npos ? "-legacy" : "-dynamo"));
    mlir::MLIRContext context;
    context.loadDialect<ir::TitanDialect>();
    mlir::OwningOpRef<mlir::ModuleOp> module =
        mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
    Graph graph = readGraph(entry.path().string()).take();
    Result<NameTable> names = nameTensors(graph);
    ASSERT_TRUE(names.ok()) << file << ": " << names.error().message();
    auto states = addStates(*module, graph, *names, Recipe());
    ASSERT_TRUE(states.ok()) << file << ": " << states.error().message();
    StatesByName found;
    for (ir::StateOp state : *states) {
      ASSERT_TRUE(mlir::succeeded(state.verify())) << file;
      found[state.getName().str()] = bytesOf(state);
    }
    StatesByName expected = recorded(kInputs / (model + ".states"));
    for (const auto& [name, state] : expected) {
      ASSERT_TRUE(found.contains(name)) << file << " has no " << name;
      EXPECT_EQ(toString(found[name].shape), toString(state.shape)) << file << ": " << name;
      EXPECT_EQ(found[name].bytes, state.bytes) << file << ": " << name;
    }
    EXPECT_EQ(found.size(), expected.size()) << file;
  }
  EXPECT_EQ(exports, 16);
}

} // namespace
} // namespace titan::frontend
