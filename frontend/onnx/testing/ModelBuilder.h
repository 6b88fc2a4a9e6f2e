// Small ONNX models for tests, built in memory.
#pragma once

#include "frontend/onnx/read/Protos.h"

#include <initializer_list>
#include <string>
#include <vector>

namespace titan::frontend::testing {

class ModelBuilder {
public:
  explicit ModelBuilder(int64_t opset = 17) {
    model.set_ir_version(8);
    auto* import = model.add_opset_import();
    import->set_version(opset);
  }

  static void setType(::onnx::ValueInfoProto* info, const std::string& name,
                      const std::vector<int64_t>& shape, int32_t type) {
    info->set_name(name);
    auto* tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (int64_t extent : shape) {
      auto* dim = tensor->mutable_shape()->add_dim();
      if (extent < 0)
        dim->set_dim_param("N");
      else
        dim->set_dim_value(extent);
    }
  }
  /// A negative extent is the symbol "N".
  ModelBuilder& input(const std::string& name, const std::vector<int64_t>& shape,
                      int32_t type = ::onnx::TensorProto::FLOAT) {
    setType(model.mutable_graph()->add_input(), name, shape, type);
    return *this;
  }
  ModelBuilder& output(const std::string& name) {
    model.mutable_graph()->add_output()->set_name(name);
    return *this;
  }
  ::onnx::NodeProto& node(const std::string& type, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const std::string& name = "") {
    ::onnx::NodeProto& proto = *model.mutable_graph()->add_node();
    proto.set_op_type(type);
    proto.set_name(name);
    for (const std::string& value : inputs)
      proto.add_input(value);
    for (const std::string& value : outputs)
      proto.add_output(value);
    return proto;
  }
  ::onnx::TensorProto& floats(const std::string& name, const std::vector<int64_t>& shape,
                              const std::vector<float>& values) {
    ::onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(::onnx::TensorProto::FLOAT);
    for (int64_t extent : shape)
      tensor.add_dims(extent);
    tensor.set_raw_data(values.data(), values.size() * sizeof(float));
    return tensor;
  }
  /// Without a shape: a list.
  ::onnx::TensorProto& integers(const std::string& name, const std::vector<int64_t>& values,
                                const std::vector<int64_t>& shape = {}) {
    ::onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(::onnx::TensorProto::INT64);
    if (shape.empty())
      tensor.add_dims(static_cast<int64_t>(values.size()));
    for (int64_t extent : shape)
      tensor.add_dims(extent);
    for (int64_t value : values)
      tensor.add_int64_data(value);
    return tensor;
  }
  /// A tensor whose bytes are said to lie in `location`.
  ::onnx::TensorProto& external(const std::string& name, const std::vector<int64_t>& shape,
                                const std::string& location, const std::string& offset = "",
                                const std::string& length = "") {
    ::onnx::TensorProto& tensor = floats(name, shape, {});
    tensor.clear_raw_data();
    tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
    auto add = [&](const char* key, const std::string& value) {
      if (value.empty())
        return;
      auto* entry = tensor.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    };
    add("location", location);
    add("offset", offset);
    add("length", length);
    return tensor;
  }
  std::string bytes() const { return model.SerializeAsString(); }

  static void setInt(::onnx::NodeProto& node, const std::string& name, int64_t value) {
    auto* attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(::onnx::AttributeProto::INT);
    attribute->set_i(value);
  }
  static void setFloat(::onnx::NodeProto& node, const std::string& name, float value) {
    auto* attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(::onnx::AttributeProto::FLOAT);
    attribute->set_f(value);
  }
  static void setText(::onnx::NodeProto& node, const std::string& name, const std::string& value) {
    auto* attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(::onnx::AttributeProto::STRING);
    attribute->set_s(value);
  }
  static void setInts(::onnx::NodeProto& node, const std::string& name,
                      const std::vector<int64_t>& values) {
    auto* attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(::onnx::AttributeProto::INTS);
    for (int64_t value : values)
      attribute->add_ints(value);
  }
  /// As torch.export writes it: field 9, unknown to libonnx 1.12.
  static void setMetadata(::onnx::NodeProto& node, const std::string& key,
                          const std::string& value) {
    ::onnx::StringStringEntryProto entry;
    entry.set_key(key);
    entry.set_value(value);
    node.mutable_unknown_fields()->AddLengthDelimited(field::kNodeMetadata,
                                                      entry.SerializeAsString());
  }
  /// What torch.export says of a node that it makes of `op` ("linear.default") of `args` ("%x,
  /// %p_fc_weight") in `module` ("fc"; empty: the root), which is a `moduleClass`.
  static void setSource(::onnx::NodeProto& node, const std::string& module, const std::string& op,
                        const std::string& args, const std::string& keywords = "",
                        const std::string& moduleClass = "m.Block") {
    const std::string& value = node.output(0);
    const auto inside = [&](const std::string& name) {
      return module.empty() ? "" : "'" + name + "', ";
    };
    setMetadata(node, "pkg.torch.onnx.name_scopes", "['', " + inside(module) + "'" + value + "']");
    setMetadata(node, "pkg.torch.onnx.class_hierarchy",
                "['m.Model', " + inside(moduleClass) + "'aten." + op + "']");
    setMetadata(node, "pkg.torch.onnx.fx_node",
                "%" + value + " : [num_users=1] = call_function[target=torch.ops.aten." + op +
                    "](args = (" + args + "), kwargs = {" + keywords + "})");
  }
  /// What torch.export lists of the module, a line a tensor: "p_w: PARAMETER target='w'\n".
  ModelBuilder& signature(const std::string& lines) {
    ::onnx::StringStringEntryProto entry;
    entry.set_key("pkg.torch.export.ExportedProgram.graph_signature");
    entry.set_value(lines);
    model.mutable_graph()->mutable_unknown_fields()->AddLengthDelimited(field::kGraphMetadata,
                                                                        entry.SerializeAsString());
    return *this;
  }

  ::onnx::ModelProto model;
};

} // namespace titan::frontend::testing
