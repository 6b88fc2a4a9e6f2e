#include "frontend/onnx/read/Tensor.h"

#include "frontend/onnx/read/ExternalData.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <vector>

namespace titan::frontend {

std::optional<DType> elementType(int64_t type) {
  using P = ::onnx::TensorProto;
  switch (type) {
  case P::FLOAT:
    return DType::F32;
  case P::DOUBLE:
    return DType::F64;
  case P::FLOAT16:
    return DType::F16;
  case P::BFLOAT16:
    return DType::BF16;
  case P::INT64:
    return DType::I64;
  case P::INT32:
    return DType::I32;
  case P::INT16:
    return DType::I16;
  case P::INT8:
    return DType::I8;
  case P::UINT32:
    return DType::U32;
  case P::UINT16:
    return DType::U16;
  case P::UINT8:
    return DType::U8;
  case P::BOOL:
    return DType::Bool;
  default:
    return std::nullopt;
  }
}

std::string onnxTypeName(int64_t type) {
  static const std::map<int64_t, const char*> younger = {
      {17, "FLOAT8E4M3FN"}, {18, "FLOAT8E4M3FNUZ"}, {19, "FLOAT8E5M2"}, {20, "FLOAT8E5M2FNUZ"},
      {21, "UINT4"},        {22, "INT4"},           {23, "FLOAT4E2M1"}, {24, "FLOAT8E8M0"}};
  if (auto it = younger.find(type); it != younger.end())
    return it->second;
  const auto number = static_cast<int32_t>(type);
  if (number == type && ::onnx::TensorProto_DataType_IsValid(number))
    return ::onnx::TensorProto_DataType_Name(static_cast<::onnx::TensorProto_DataType>(number));
  return fmt::format("type {}", type);
}

uint64_t Tensor::byteCount() const {
  return static_cast<uint64_t>(elementCount(shape)) * static_cast<uint64_t>(byteSize(dtype));
}

Result<std::string> Tensor::read() const { return readPart(0, byteCount()); }

Result<std::string> Tensor::readPart(uint64_t from, uint64_t count) const {
  if (inlineBytes)
    return inlineBytes->substr(from, count);
  if (restored)
    return std::string(count, '\0');
  if (!file)
    return Error::badInput("tensor '{}': {}", printable(name), missing);
  return file->read(span->offset + from, count);
}

Result<std::shared_ptr<const std::string>> Tensor::bytes() const {
  if (inlineBytes)
    return inlineBytes;
  return std::make_shared<const std::string>(TITAN_TRY(read()));
}

Result<uint64_t> Tensor::digest() const {
  if (inlineBytes)
    return XXH3_64bits(inlineBytes->data(), inlineBytes->size());
  if (!file)
    return Error::badInput("tensor '{}': {}", printable(name), missing);
  // What is hashed is still in the cache that it was read into.
  constexpr uint64_t kPiece = 256 << 10;
  std::vector<char> buffer(std::min(kPiece, span->bytes));
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                 &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  for (uint64_t done = 0; done < span->bytes; done += kPiece) {
    const std::span<char> piece(buffer.data(), std::min(kPiece, span->bytes - done));
    TITAN_TRY(file->readInto(span->offset + done, piece));
    XXH3_64bits_update(state.get(), piece.data(), piece.size());
  }
  return XXH3_64bits_digest(state.get());
}

/// `field` narrowed to elements of type T, appended as bytes.
template <typename T, typename Field> static std::string narrow(const Field& field) {
  std::string bytes(static_cast<size_t>(field.size()) * sizeof(T), '\0');
  char* out = bytes.data();
  for (auto value : field) {
    T element = static_cast<T>(value);
    std::memcpy(out, &element, sizeof(T));
    out += sizeof(T);
  }
  return bytes;
}

/// The data of the typed field that ONNX prescribes for `dtype`.
static std::string typedBytes(const ::onnx::TensorProto& proto, DType dtype) {
  switch (dtype) {
  case DType::F32:
    return narrow<float>(proto.float_data());
  case DType::F64:
    return narrow<double>(proto.double_data());
  case DType::I64:
    return narrow<int64_t>(proto.int64_data());
  case DType::U32:
    return narrow<uint32_t>(proto.uint64_data());
  case DType::I32:
    return narrow<int32_t>(proto.int32_data());
  case DType::I16:
    return narrow<int16_t>(proto.int32_data());
  case DType::U16:
    return narrow<uint16_t>(proto.int32_data());
  case DType::F16:
    return narrow<uint16_t>(proto.int32_data());
  case DType::BF16:
    return narrow<uint16_t>(proto.int32_data());
  case DType::I8:
    return narrow<int8_t>(proto.int32_data());
  case DType::U8:
    return narrow<uint8_t>(proto.int32_data());
  case DType::Bool:
    return narrow<uint8_t>(proto.int32_data());
  }
  return {};
}

Result<Tensor> takeTensor(::onnx::TensorProto& proto, const std::string& what) {
  std::optional<DType> dtype = elementType(proto.data_type());
  if (!dtype)
    return Error::badInput("{}: element type {} is not supported", what,
                           onnxTypeName(proto.data_type()));
  if (proto.has_segment())
    return Error::badInput("{}: segmented tensors are not supported", what);

  Tensor tensor;
  tensor.name = proto.name();
  tensor.dtype = *dtype;
  tensor.shape.assign(proto.dims().begin(), proto.dims().end());
  int64_t count = TITAN_TRY(checkedElementCount(tensor.shape, what));
  uint64_t expected = static_cast<uint64_t>(count) * static_cast<uint64_t>(byteSize(*dtype));

  bool external = proto.data_location() == ::onnx::TensorProto::EXTERNAL;
  int typed = proto.float_data_size() + proto.double_data_size() + proto.int32_data_size() +
              proto.int64_data_size() + proto.uint64_data_size() + proto.string_data_size();
  if (external && (typed || proto.has_raw_data()))
    return Error::badInput("{}: has both external and inline data", what);
  if (external)
    return tensor;
  if (typed && proto.has_raw_data() && !proto.raw_data().empty())
    return Error::badInput("{}: has both raw_data and a typed data field", what);

  std::string bytes = typed ? typedBytes(proto, *dtype) : std::move(*proto.mutable_raw_data());
  if (bytes.size() != expected)
    return Error::badInput("{}: {} bytes of data, but {} elements of {} need {}", what,
                           bytes.size(), count, titan::name(*dtype), expected);
  if (*dtype == DType::Bool)
    for (char& byte : bytes)
      byte = byte != 0;
  tensor.inlineBytes = std::make_shared<const std::string>(std::move(bytes));
  return tensor;
}

} // namespace titan::frontend
