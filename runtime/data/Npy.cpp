#include "runtime/data/Npy.h"

#include "runtime/data/Array.h"

#include <charconv>

namespace titan {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr size_t alignment = 64;

/// numpy's type strings without the byte order.
constexpr std::pair<std::string_view, DType> typeStrings[] = {
    {"f8", DType::F64}, {"f4", DType::F32}, {"f2", DType::F16}, {"i8", DType::I64},
    {"i4", DType::I32}, {"i2", DType::I16}, {"i1", DType::I8},  {"u4", DType::U32},
    {"u2", DType::U16}, {"u1", DType::U8},  {"b1", DType::Bool}};

Result<DType> parseDescr(std::string_view descr) {
  if (descr.empty())
    return Error::badInput("the dtype is empty");
  const std::string_view type = descr.substr(1);
  if (descr[0] == '>' && type != "u1" && type != "i1" && type != "b1")
    return Error::badInput("dtype '{}' is big-endian: save it with .astype('<{}')", descr, type);
  for (const auto& [name, dtype] : typeStrings)
    if (type == name)
      return dtype;
  return Error::badInput("dtype '{}' is not supported: use float, int, bool or an unsigned type "
                         "of up to 32 bits",
                         descr);
}

/// Just enough of Python's literals for the header's dict.
class DictParser {
public:
  explicit DictParser(std::string_view text) : rest_(text) {}

  Result<NpyHeader> parse() {
    TITAN_TRY(expect('{'));
    while (!accept('}')) {
      const std::string_view key = TITAN_TRY(parseString());
      TITAN_TRY(expect(':'));
      TITAN_TRY(parseValue(key));
      if (!accept(',')) {
        TITAN_TRY(expect('}'));
        break;
      }
    }
    skipSpace();
    if (!rest_.empty())
      return Error::badInput("the header goes on after its dict");
    if (seen_ != (descrSeen | orderSeen | shapeSeen))
      return Error::badInput("the header needs 'descr', 'fortran_order' and 'shape'");
    return header_;
  }

private:
  enum Seen : unsigned { descrSeen = 1, orderSeen = 2, shapeSeen = 4 };

  void skipSpace() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size())); }
  bool accept(char c) {
    skipSpace();
    if (!rest_.starts_with(c))
      return false;
    rest_.remove_prefix(1);
    return true;
  }
  Status expect(char c) {
    if (!accept(c))
      return Error::badInput("the header is not a dict of descr, fortran_order and shape: '{}' "
                             "expected",
                             c);
    return {};
  }
  bool acceptWord(std::string_view word) {
    skipSpace();
    if (!rest_.starts_with(word))
      return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  Result<std::string_view> parseString() {
    skipSpace();
    if (rest_.starts_with('['))
      return Error::badInput("structured dtypes are not supported: save one array a field");
    const char quote = rest_.empty() ? 0 : rest_[0];
    const size_t end = rest_.find(quote, 1);
    if ((quote != '\'' && quote != '"') || end == std::string_view::npos)
      return Error::badInput("the header has no string where one is expected");
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  Status once(Seen what, std::string_view key) {
    if (seen_ & what)
      return Error::badInput("the header has '{}' twice", key);
    seen_ |= what;
    return {};
  }

  Status parseValue(std::string_view key) {
    if (key == "descr") {
      TITAN_TRY(once(descrSeen, key));
      header_.dtype = TITAN_TRY(parseDescr(TITAN_TRY(parseString())));
      return {};
    }
    if (key == "fortran_order") {
      TITAN_TRY(once(orderSeen, key));
      if (acceptWord("True"))
        return Error::badInput("the array is in Fortran order: save numpy.ascontiguousarray(x)");
      if (!acceptWord("False"))
        return Error::badInput("fortran_order is neither True nor False");
      return {};
    }
    if (key == "shape") {
      TITAN_TRY(once(shapeSeen, key));
      return parseShape();
    }
    return Error::badInput("the header has an unknown key");
  }

  Status parseShape() {
    TITAN_TRY(expect('('));
    while (!accept(')')) {
      skipSpace();
      int64_t extent = 0;
      const auto [end, status] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      if (status != std::errc() || extent < 0)
        return Error::badInput("the shape has an extent that is no size");
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      header_.shape.push_back(extent);
      if (!accept(',')) {
        TITAN_TRY(expect(')'));
        break;
      }
    }
    return {};
  }

  std::string_view rest_;
  NpyHeader header_;
  unsigned seen_ = 0;
};

/// Bytes before the dict and of the dict.
Result<std::pair<size_t, size_t>> headerRange(std::string_view bytes) {
  const auto byte = [&](size_t i) { return size_t{static_cast<unsigned char>(bytes[i])}; };
  if (!bytes.starts_with(magic) || bytes.size() < 10)
    return Error::badInput("not a .npy file: it does not start with \\x93NUMPY");
  const size_t major = byte(6);
  if (major < 1 || major > 3)
    return Error::badInput("version {} of the .npy format is not known", major);
  const size_t start = major == 1 ? 10 : 12;
  if (bytes.size() < start)
    return Error::badInput("the file ends in the .npy header");
  size_t length = byte(8) | byte(9) << 8;
  if (major > 1)
    length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - start)
    return Error::badInput("the .npy header of {} bytes is cut: {} are left", length,
                           bytes.size() - start);
  return std::pair(start, length);
}

} // namespace

Result<NpyHeader> parseNpyHeader(std::string_view bytes) {
  const auto [start, length] = TITAN_TRY(headerRange(bytes));
  NpyHeader header = TITAN_TRY(DictParser(bytes.substr(start, length)).parse());
  header.dataStart = start + length;
  int64_t size = byteSize(header.dtype);
  for (int64_t extent : header.shape)
    if (__builtin_mul_overflow(size, extent, &size))
      return Error::badInput("shape {} overflows", toString(header.shape));
  const size_t left = bytes.size() - header.dataStart;
  if (left != static_cast<size_t>(size))
    return Error::badInput("{} {} needs {} bytes of data, the file has {}", name(header.dtype),
                           toString(header.shape), size, left);
  return header;
}

Result<std::string> formatNpyHeader(DType dtype, std::span<const int64_t> shape) {
  std::string_view type;
  for (const auto& [name, known] : typeStrings)
    if (known == dtype)
      type = name;
  if (type.empty())
    return Error::badInput("numpy has no dtype for {}", name(dtype));
  std::string extents;
  for (int64_t extent : shape)
    extents += fmt::format("{}, ", extent);
  // Python's form of a tuple: (), (3,), (3, 4)
  if (shape.size() > 1)
    extents.resize(extents.size() - 2);
  else if (shape.size() == 1)
    extents.pop_back();
  std::string dict = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 byteSize(dtype) == 1 ? '|' : '<', type, extents);
  const size_t unpadded = magic.size() + 4 + dict.size() + 1;
  dict.append((alignment - unpadded % alignment) % alignment, ' ');
  dict += '\n';
  std::string header(magic);
  header += '\1';
  header += '\0';
  header += static_cast<char>(dict.size());
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

Result<Array> parseNpy(std::span<const char> bytes, std::string name,
                       std::shared_ptr<const void> storage) {
  NpyHeader header = TITAN_TRY(parseNpyHeader({bytes.data(), bytes.size()}));
  return Array{std::move(name), header.dtype, std::move(header.shape),
               bytes.subspan(header.dataStart), std::move(storage)};
}

} // namespace titan
