// Models in C++: what a file would hold, built layer by layer.
//
//   void classifier(nn::Model& model) {
//     nn::Scope root = model.root();
//     nn::Tensor x = model.input("x", DType::F32, {784});
//     x = nn::relu(root, nn::linear(root.child("fc1"), x, 128));
//     model.output("logits", nn::linear(root.child("fc2"), x, 10));
//   }
//
// A layer that cannot be built (shapes that do not fit, a name that is taken) leaves a tensor
// without a value, which every other layer takes and passes on; the first error is the model's. So
// a model is written without a test behind each line.
//
// This header, Layers.h and Models.h need no MLIR: programs that embed Titan include them.
#pragma once

#include "runtime/program/DType.h"
#include "runtime/program/Recipe.h"

#include <functional>
#include <initializer_list>
#include <memory>

namespace titan::nn {

class Builder;
class Scope;

/// A value of the model. Its shape includes the batch, which is dimension 0 of every input.
class Tensor {
public:
  /// Without a value, as an error leaves it.
  Tensor() = default;

  explicit operator bool() const { return value_ != nullptr; }
  /// Empty without a value.
  Shape shape() const;
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  /// The extent of dimension `d`, from the end if it is negative; 1 where there is none.
  int64_t extent(int64_t d) const;

private:
  friend class Builder;
  explicit Tensor(void* value) : value_(value) {}
  void* value_ = nullptr; ///< an mlir::Value
};

/// How a parameter starts. A rule of the recipe for its name comes before this.
struct Init {
  enum class Kind { Normal, Uniform, Constant, Table, FanIn } kind = Kind::Constant;
  double a = 0, b = 0; ///< mean and deviation; lowest and highest; the value; the fan in

  static Init normal(double mean, double deviation) { return {Kind::Normal, mean, deviation}; }
  static Init uniform(double low, double high) { return {Kind::Uniform, low, high}; }
  static Init constant(double value) { return {Kind::Constant, value, 0}; }
  static Init zeros() { return constant(0); }
  static Init ones() { return constant(1); }
  /// Rows that are looked up: normal(0, 0.02).
  static Init table() { return {Kind::Table}; }
  /// What is multiplied by, `fanIn` products in each sum: normal(0, 1 / sqrt(fanIn)).
  static Init fanIn(int64_t fanIn) { return {Kind::FanIn, static_cast<double>(fanIn)}; }
};

/// A model while it is built: under a recipe, which says how large a batch is and by which rules
/// parameters start.
class Model {
public:
  explicit Model(Builder& builder) : builder_(builder) {}

  const Recipe& recipe() const;
  Scope root();

  /// The extent that the recipe binds `symbol` to (`model.dims`), or `otherwise`. Every symbol that
  /// the recipe binds has to be asked for.
  int64_t dim(const std::string& symbol, int64_t otherwise);

  /// An input of `batch.micro` samples of shape `sample`: F32, I64 or I32.
  Tensor input(const std::string& name, DType dtype, const Shape& sample);
  void output(const std::string& name, Tensor value);

  /// Makes `message` the model's error, if it has none yet.
  void fail(const std::string& message);

private:
  Builder& builder_;
};

/// A place in the model: a path of segments, "transformer.h.0", under which parameters have their
/// names and ops their module.
class Scope {
public:
  Scope(Builder& builder, std::string path) : builder_(&builder), path_(std::move(path)) {}

  /// `segment` has no dot.
  Scope child(std::string_view segment) const;
  Scope child(int64_t index) const { return child(std::to_string(index)); }

  const std::string& path() const { return path_; }
  /// "path.leaf", or "leaf" at the root.
  std::string nameOf(std::string_view leaf) const;

  /// A trained tensor of f32. `aliases` are other names of it, whole ones: where it is tied.
  Tensor parameter(std::string_view leaf, const Shape& shape, Init init,
                   const std::vector<std::string>& aliases = {}) const;
  /// A tensor that is saved and not trained: F32 or I64.
  Tensor buffer(std::string_view leaf, const Shape& shape, Init init,
                DType dtype = DType::F32) const;

  /// Makes "path: message" the model's error, if it has none yet, and returns no value.
  Tensor fail(const std::string& message) const;

  Builder& builder() const { return *builder_; }

private:
  Builder* builder_;
  std::string path_;
};

/// What builds a model; it keeps nothing of it.
using ModelFunction = std::function<void(Model&)>;

} // namespace titan::nn
