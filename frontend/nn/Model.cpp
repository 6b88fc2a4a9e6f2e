#include "frontend/nn/Model.h"

#include "frontend/nn/Builder.h"

namespace titan::nn {

Shape Tensor::shape() const {
  if (!value_)
    return {};
  llvm::ArrayRef<int64_t> shape = ir::tensorType(Builder::valueOf(*this)).getShape();
  return {shape.begin(), shape.end()};
}

int64_t Tensor::extent(int64_t d) const {
  const Shape all = shape();
  const int64_t index = d < 0 ? d + static_cast<int64_t>(all.size()) : d;
  return index < 0 || index >= static_cast<int64_t>(all.size()) ? 1
                                                                : all[static_cast<size_t>(index)];
}

const Recipe& Model::recipe() const { return builder_.recipe(); }
Scope Model::root() { return {builder_, ""}; }
int64_t Model::dim(const std::string& symbol, int64_t otherwise) {
  return builder_.dim(symbol, otherwise);
}
Tensor Model::input(const std::string& name, DType dtype, const Shape& sample) {
  return builder_.input(name, dtype, sample);
}
void Model::output(const std::string& name, Tensor value) { builder_.output(name, value); }
void Model::fail(const std::string& message) { builder_.fail(message); }

Scope Scope::child(std::string_view segment) const {
  if (segment.empty() || segment.find('.') != std::string_view::npos)
    (void)fail(fmt::format("'{}' is no segment of a path: it is empty or has a dot", segment));
  return {*builder_, nameOf(segment)};
}

std::string Scope::nameOf(std::string_view leaf) const {
  return path_.empty() ? std::string(leaf) : fmt::format("{}.{}", path_, leaf);
}

Tensor Scope::parameter(std::string_view leaf, const Shape& shape, Init init,
                        const std::vector<std::string>& aliases) const {
  return builder_->parameter({child(leaf).path(), aliases}, shape, init);
}

Tensor Scope::buffer(std::string_view leaf, const Shape& shape, Init init, DType dtype) const {
  return builder_->buffer(child(leaf).path(), shape, init, dtype);
}

Tensor Scope::fail(const std::string& message) const {
  builder_->fail(path_.empty() ? message : fmt::format("{}: {}", path_, message));
  return {};
}

} // namespace titan::nn
