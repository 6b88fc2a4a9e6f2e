// The members of every serialized struct, each listed once. The Writer and the Reader of
// Serialize.cpp walk the same lists, so that they cannot differ; a new member of Program.h is one
// line here and a new Program::currentVersion.
#pragma once

#include "runtime/program/Program.h"

#include <concepts>
#include <type_traits>

namespace titan::serialization {

// The largest value of each enum that is stored.
constexpr uint8_t last(DType) { return static_cast<uint8_t>(DType::Bool); }
constexpr uint8_t last(Phase) { return static_cast<uint8_t>(Phase::Update); }
constexpr uint8_t last(CommandKind) { return static_cast<uint8_t>(CommandKind::CollectiveWait); }
constexpr uint8_t last(Access) { return static_cast<uint8_t>(Access::Both); }
constexpr uint8_t last(LibraryRoutine) { return static_cast<uint8_t>(LibraryRoutine::Attention); }
constexpr uint8_t last(Tolerance) { return static_cast<uint8_t>(Tolerance::Scale); }
constexpr uint8_t last(Binding::Role) { return static_cast<uint8_t>(Binding::Role::Output); }
constexpr uint8_t last(Init::Kind) { return static_cast<uint8_t>(Init::Kind::Uniform); }
constexpr uint8_t last(Image::Kind) { return static_cast<uint8_t>(Image::Kind::Ptx); }
constexpr uint8_t last(MemorySpace) { return static_cast<uint8_t>(MemorySpace::Host); }
constexpr uint8_t last(CollectiveKind) { return static_cast<uint8_t>(CollectiveKind::AllReduce); }
constexpr uint8_t last(SumOrder) { return static_cast<uint8_t>(SumOrder::Tree); }
constexpr uint8_t last(StateKind) { return static_cast<uint8_t>(StateKind::Counter); }

template <typename T, typename Struct>
concept Is = std::same_as<std::remove_const_t<T>, Struct>;

template <typename Archive> void fields(Archive& a, Is<Affine::Term> auto& v) {
  a("variable", v.variable);
  a("stride", v.stride);
}

template <typename Archive> void fields(Archive& a, Is<Affine> auto& v) {
  a("base", v.base);
  a("terms", v.terms);
}

template <typename Archive> void fields(Archive& a, Is<Operand> auto& v) {
  a("address", v.address);
  a("bytes", v.bytes);
  a("access", v.access);
}

template <typename Archive> void fields(Archive& a, Is<Launch> auto& v) {
  a("units", v.units);
  a("grain", v.grain);
}

template <typename Archive> void fields(Archive& a, Is<Gemm> auto& v) {
  a("m", v.m);
  a("n", v.n);
  a("k", v.k);
  a("batch", v.batch);
  a("lda", v.lda);
  a("ldb", v.ldb);
  a("ldc", v.ldc);
  a("batchStrideA", v.batchStrideA);
  a("batchStrideB", v.batchStrideB);
  a("batchStrideC", v.batchStrideC);
  a("transposeA", v.transposeA);
  a("transposeB", v.transposeB);
  a("accumulate", v.accumulate);
  a("bias", v.bias);
  a("relu", v.relu);
  a("a", v.a);
  a("b", v.b);
  a("c", v.c);
  a("tileM", v.tileM);
  a("tileN", v.tileN);
}

template <typename Archive> void fields(Archive& a, Is<AttentionView> auto& v) {
  a("operand", v.operand);
  a("offset", v.offset);
  a("batch", v.batch);
  a("row", v.row);
  a("head", v.head);
}

template <typename Archive> void fields(Archive& a, Is<Attention> auto& v) {
  a("batch", v.batch);
  a("heads", v.heads);
  a("keyHeads", v.keyHeads);
  a("queries", v.queries);
  a("keys", v.keys);
  a("width", v.width);
  a("valueWidth", v.valueWidth);
  a("causal", v.causal);
  a("backward", v.backward);
  a("scale", v.scale);
  a("element", v.element);
  a("operands", v.operands);
  a("logSumExp", v.logSumExp);
  a("query", v.query);
  a("key", v.key);
  a("value", v.value);
  a("result", v.result);
  a("dresult", v.dresult);
  a("dquery", v.dquery);
  a("dkey", v.dkey);
  a("dvalue", v.dvalue);
}

template <typename Archive> void fields(Archive& a, Is<Command> auto& v) {
  a("kind", v.kind);
  a("phase", v.phase);
  a("target", v.target);
  a("operands", v.operands);
  a("scalars", v.scalars);
  a("launch", v.launch);
  a("flops", v.flops);
  a("bytes", v.bytes);
}

template <typename Archive> void fields(Archive& a, Is<GridLaunch> auto& v) {
  a("entry", v.entry);
  a("blocks", v.blocks);
  a("threads", v.threads);
  a("sharedBytes", v.sharedBytes);
}

template <typename Archive> void fields(Archive& a, Is<Kernel> auto& v) {
  a("symbol", v.symbol);
  a("label", v.label);
  a("launches", v.launches);
}

template <typename Archive> void fields(Archive& a, Is<ComparedOperand> auto& v) {
  a("dtype", v.dtype);
  a("shape", v.shape);
  a("tolerance", v.tolerance);
  a("factor", v.factor);
}

template <typename Archive> void fields(Archive& a, Is<Comparison> auto& v) {
  a("operands", v.operands);
  a("boundUnits", v.boundUnits);
}

template <typename Archive> void fields(Archive& a, Is<LibraryCall> auto& v) {
  a("routine", v.routine);
  a("gemm", v.gemm);
  a("attention", v.attention);
  a("label", v.label);
  a("fallback", v.fallback);
  a("generated", v.generated);
  a("workspace", v.workspace);
}

template <typename Archive> void fields(Archive& a, Is<CollectivePiece> auto& v) {
  a("dtype", v.dtype);
  a("outer", v.outer);
  a("inner", v.inner);
}

template <typename Archive> void fields(Archive& a, Is<Collective> auto& v) {
  a("kind", v.kind);
  a("order", v.order);
  a("axes", v.axes);
  a("pieces", v.pieces);
  a("label", v.label);
}

template <typename Archive> void fields(Archive& a, Is<ClassRun> auto& v) {
  a("count", v.count);
  a("classes", v.classes);
}

template <typename Archive> void fields(Archive& a, Is<Binding> auto& v) {
  a("role", v.role);
  a("name", v.name);
  a("dtype", v.dtype);
  a("shape", v.shape);
  a("local", v.local);
  a("offset", v.offset);
  a("bytes", v.bytes);
  a("classes", v.classes);
  a("runs", v.runs);
}

template <typename Archive> void fields(Archive& a, Is<LiveRange> auto& v) {
  a("offset", v.offset);
  a("bytes", v.bytes);
  a("first", v.first);
  a("last", v.last);
}

template <typename Archive> void fields(Archive& a, Is<Function> auto& v) {
  a("name", v.name);
  a("bindings", v.bindings);
  a("commands", v.commands);
  a("temporaries", v.temporaries);
  a("maxLiveBytes", v.maxLiveBytes);
  a("modelFlops", v.modelFlops);
}

template <typename Archive> void fields(Archive& a, Is<StoredRange> auto& v) {
  a("path", v.path);
  a("offset", v.offset);
  a("bytes", v.bytes);
  a("digest", v.digest);
  a("shape", v.shape);
}

template <typename Archive> void fields(Archive& a, Is<Init> auto& v) {
  a("kind", v.kind);
  a("a", v.a);
  a("b", v.b);
  a("stored", v.stored);
}

template <typename Archive> void fields(Archive& a, Is<Piece> auto& v) {
  a("at", v.at);
  a("from", v.from);
  a("extent", v.extent);
  a("dims", v.dims);
}

template <typename Archive> void fields(Archive& a, Is<TensorSource> auto& v) {
  a("initializer", v.initializer);
  a("piece", v.piece);
}

template <typename Archive> void fields(Archive& a, Is<MeshAxis> auto& v) {
  a("name", v.name);
  a("ranks", v.ranks);
}

template <typename Archive> void fields(Archive& a, Is<Cut> auto& v) {
  a("axis", v.axis);
  a("dim", v.dim);
  a("outer", v.outer);
}

template <typename Archive> void fields(Archive& a, Is<State> auto& v) {
  a("name", v.name);
  a("kind", v.kind);
  a("profile", v.profile);
  a("dtype", v.dtype);
  a("shape", v.shape);
  a("local", v.local);
  a("placement", v.placement);
  a("space", v.space);
  a("trainable", v.trainable);
  a("aliases", v.aliases);
  a("sources", v.sources);
  a("init", v.init);
  a("offset", v.offset);
  a("bytes", v.bytes);
}

template <typename Archive> void fields(Archive& a, Is<Constant> auto& v) {
  a("offset", v.offset);
  a("bytes", v.bytes);
  a("payloadOffset", v.payloadOffset);
}

template <typename Archive> void fields(Archive& a, Is<Image> auto& v) {
  a("kind", v.kind);
  a("arch", v.arch);
  a("offset", v.offset);
  a("bytes", v.bytes);
  a("digest", v.digest);
}

template <typename Archive> void fields(Archive& a, Is<ProgramTarget> auto& v) {
  a("kind", v.kind);
  a("cpu", v.cpu);
  a("features", v.features);
}

template <typename Archive> void fields(Archive& a, Is<Program> auto& v) {
  a("model", v.model);
  a("recipe", v.recipe);
  a("target", v.target);
  a("mesh", v.mesh);
  a("compilerVersion", v.compilerVersion);
  a("optimizer", v.optimizer);
  a("states", v.states);
  a("constants", v.constants);
  a("kernels", v.kernels);
  a("comparisons", v.comparisons);
  a("libraryCalls", v.libraryCalls);
  a("collectives", v.collectives);
  a("images", v.images);
  a("functions", v.functions);
  a("arenaBytes", v.arenaBytes);
  a("stateBytes", v.stateBytes);
  a("bindingBytes", v.bindingBytes);
  a("temporaryBytes", v.temporaryBytes);
  a("stagingOffset", v.stagingOffset);
  a("stagingBytes", v.stagingBytes);
}

} // namespace titan::serialization
