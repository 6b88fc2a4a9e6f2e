// The serialized Program, little-endian:
//
//   file    : "TITANPRG", u32 version, Program; nothing follows
//   struct  : its members, in the order of ProgramFields.h
//   integer : its width; bool and enum: u8
//   double  : its IEEE bits, u64
//   string  : u64 length, bytes
//   vector  : u64 count, elements
#include "runtime/program/ProgramFields.h"
#include "runtime/program/Text.h"

#include <bit>
#include <concepts>
#include <type_traits>

namespace titan {

namespace {

constexpr std::string_view magic = "TITANPRG";

using serialization::fields;
using serialization::last;

class Writer {
public:
  template <typename T> void operator()(const char*, const T& value) { write(value); }
  std::string take() { return std::move(bytes_); }

  template <std::unsigned_integral T> void write(T value) {
    for (size_t i = 0; i < sizeof value; ++i)
      bytes_ += static_cast<char>(static_cast<uint64_t>(value) >> 8 * i);
  }
  void write(bool value) { write(static_cast<uint8_t>(value)); }
  void write(int64_t value) { write(static_cast<uint64_t>(value)); }
  void write(double value) { write(std::bit_cast<uint64_t>(value)); }
  void write(const std::string& value) {
    write(uint64_t{value.size()});
    bytes_ += value;
  }
  template <typename T> void write(const std::vector<T>& values) {
    write(uint64_t{values.size()});
    for (const T& value : values)
      write(value);
  }
  template <typename T>
    requires std::is_enum_v<T>
  void write(T value) {
    write(static_cast<uint8_t>(value));
  }
  template <typename T>
    requires std::is_class_v<T>
  void write(const T& value) {
    fields(*this, value);
  }
  void writeMagic() { bytes_ += magic; }

private:
  std::string bytes_;
};

/// Reads until the first error; from then on nothing is read or allocated.
class Reader {
public:
  explicit Reader(std::string_view rest) : rest_(rest) {}

  template <typename T> void operator()(const char* name, T& value) {
    if (error_)
      return;
    const size_t length = path_.size();
    path_ += path_.empty() ? "" : ".";
    path_ += name;
    read(value);
    path_.resize(length);
  }

  std::optional<Error> takeError() { return std::move(error_); }
  std::string_view rest() const { return rest_; }

private:
  template <typename... Args> void fail(fmt::format_string<Args...> format, Args&&... args) {
    if (!error_)
      error_ = Error::badInput("damaged program: {}: {}", path_,
                               fmt::format(format, std::forward<Args>(args)...));
  }

  template <std::unsigned_integral T> void read(T& value) {
    if (rest_.size() < sizeof value)
      return fail("needs {} bytes, {} are left", sizeof value, rest_.size());
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof value; ++i)
      bits |= uint64_t{static_cast<unsigned char>(rest_[i])} << 8 * i;
    value = static_cast<T>(bits);
    rest_.remove_prefix(sizeof value);
  }
  /// A byte in [0, last], so that equal programs have one form.
  uint8_t readByte(uint8_t last) {
    uint8_t byte = 0;
    read(byte);
    if (byte <= last)
      return byte;
    fail("value {} is above {}", byte, last);
    return 0;
  }
  void read(bool& value) { value = readByte(1) != 0; }
  void read(int64_t& value) {
    uint64_t bits = 0;
    read(bits);
    value = static_cast<int64_t>(bits);
  }
  void read(double& value) {
    uint64_t bits = 0;
    read(bits);
    value = std::bit_cast<double>(bits);
  }
  /// A count of elements, each of at least one byte.
  uint64_t readCount() {
    uint64_t count = 0;
    read(count);
    if (count <= rest_.size())
      return count;
    fail("count {} is more than the {} bytes left", count, rest_.size());
    return 0;
  }
  void read(std::string& value) {
    const uint64_t length = readCount();
    value = rest_.substr(0, length);
    rest_.remove_prefix(length);
  }
  template <typename T> void read(std::vector<T>& values) {
    const uint64_t count = readCount();
    const size_t length = path_.size();
    // Grown as elements arrive: a wrong count costs no more memory than the bytes that are there.
    for (uint64_t i = 0; i < count && !error_; ++i) {
      path_ += fmt::format("[{}]", i);
      read(values.emplace_back());
      path_.resize(length);
    }
  }
  template <typename T>
    requires std::is_enum_v<T>
  void read(T& value) {
    value = static_cast<T>(readByte(last(T{})));
  }
  template <typename T>
    requires std::is_class_v<T>
  void read(T& value) {
    fields(*this, value);
  }

  std::string_view rest_;
  std::string path_;
  std::optional<Error> error_;
};

} // namespace

std::string serialize(const Program& program) {
  Writer writer;
  writer.writeMagic();
  writer.write(Program::currentVersion);
  writer.write(program);
  return writer.take();
}

Result<Program> deserialize(std::string_view bytes) {
  if (!bytes.starts_with(magic))
    return Error::badInput("damaged program: {} bytes that do not start with '{}'", bytes.size(),
                           magic);
  Reader reader(bytes.substr(magic.size()));
  uint32_t version = 0;
  reader("version", version);
  if (auto error = reader.takeError())
    return std::move(*error);
  if (version != Program::currentVersion)
    return Error::badInput("the program has format version {}, this build reads version {}: "
                           "compile the model again",
                           version, Program::currentVersion);
  Program program;
  fields(reader, program);
  if (auto error = reader.takeError())
    return std::move(*error);
  if (!reader.rest().empty())
    return Error::badInput("damaged program: {} bytes follow its end", reader.rest().size());
  TITAN_TRY(verify(program));
  return program;
}

std::string fingerprint(const Program& program) { return digest128(serialize(program)); }

} // namespace titan
