// The directives of a PTX module. See PTX ISA 8.0, chapters 4, 5 and 11.
#include "runtime/device/cuda/testing/ptx/Declaration.h"
#include "runtime/device/cuda/testing/ptx/Decode.h"

#include <algorithm>
#include <cstring>

namespace titan::ptx {
namespace {

/// Bytes of a type of memory; 0: there is none of that name.
uint32_t bytesOf(std::string_view type) {
  for (auto [suffix, bytes] : {std::pair{"8", 1}, {"16", 2}, {"32", 4}, {"64", 8}})
    for (const char* kind : {".b", ".u", ".s", ".f"})
      if (type == std::string(kind) + suffix && type != ".f8" && type != ".f16")
        return bytes;
  return 0;
}

class Parser {
public:
  explicit Parser(const std::vector<Token>& tokens) : cursor_(tokens) {}

  Result<std::shared_ptr<const Module>> run() {
    while (!cursor_.atEnd())
      TITAN_TRY(directive());
    for (const auto& [name, found] : declarations_)
      if (!module_->find(name))
        return errorAt(found.second, "the titan line is of entry {}, which is not here", name);
    return std::shared_ptr<const Module>(std::move(module_));
  }

private:
  Status directive() {
    const Token& token = cursor_.peek();
    if (token.kind == Token::Kind::Declaration)
      return declaration();
    if (token.kind == Token::Kind::ImplicitDef) {
      cursor_.next();
      return {};
    }
    if (token.is(".version") || token.is(".address_size") || token.is(".file")) {
      if (token.is(".address_size") && !cursor_.peek(1).text.starts_with("64"))
        return errorAt(token.line, "addresses have 64 bits, not {}", cursor_.peek(1).text);
      cursor_.skipLine();
      return {};
    }
    if (token.is(".target")) {
      cursor_.skipLine();
      return {};
    }
    if (token.is(".section"))
      return section();
    bool external = false;
    for (; isLinkage(); cursor_.next())
      external |= cursor_.peek().is(".extern");
    if (cursor_.accept(".entry"))
      return entry();
    if (cursor_.accept(".shared"))
      return sharedVariable(external, nullptr);
    if (cursor_.peek().is(".global") || cursor_.peek().is(".const"))
      return dataVariable(external);
    return errorAt(cursor_.line(), "the interpreter has no directive '{}'", cursor_.peek().text);
  }

  bool isLinkage() const {
    const Token& token = cursor_.peek();
    return token.is(".visible") || token.is(".weak") || token.is(".extern") || token.is(".common");
  }

  /// Debug information: skipped up to its brace.
  Status section() {
    while (!cursor_.atEnd() && !cursor_.accept("}"))
      cursor_.next();
    return {};
  }

  Status declaration() {
    const Token& token = cursor_.next();
    Declaration found = TITAN_TRY(parseDeclaration(token.text, token.line));
    std::string name = found.entry;
    if (!declarations_.emplace(name, std::pair(std::move(found), token.line)).second)
      return errorAt(token.line, "entry {} has two titan lines", name);
    return {};
  }

  /// `.align 16 .b8 name[4][8]`, up to what follows.
  struct Shape {
    std::string name{};
    uint32_t line = 0, elementBytes = 0, elements = 1, alignment = 1;
    bool open = false; ///< name[]
  };

  Result<Shape> shape() {
    Shape result{.line = cursor_.line()};
    if (cursor_.accept(".align")) {
      uint64_t alignment = TITAN_TRY(cursor_.number("an alignment"));
      if (alignment == 0 || alignment > 1024 || (alignment & (alignment - 1)))
        return errorAt(result.line, "{} is not an alignment", alignment);
      result.alignment = static_cast<uint32_t>(alignment);
    }
    std::string_view type = TITAN_TRY(cursor_.word("a type"));
    result.elementBytes = bytesOf(type);
    if (result.elementBytes == 0)
      return errorAt(result.line, "the interpreter has no variables of type {}", type);
    result.alignment = std::max(result.alignment, result.elementBytes);
    result.name = TITAN_TRY(cursor_.word("a variable's name"));
    while (cursor_.accept("[")) {
      if (cursor_.accept("]")) {
        result.open = true;
        continue;
      }
      uint64_t count = TITAN_TRY(cursor_.number("a number of elements"));
      TITAN_TRY(cursor_.expect("]"));
      if (count > 1 << 24 || result.elements * count > 1 << 24)
        return errorAt(result.line, "variable {} is larger than 16 Mi elements", result.name);
      result.elements *= static_cast<uint32_t>(count);
    }
    return result;
  }

  /// Of the module, or of `decoder`'s entry.
  Status sharedVariable(bool external, Decoder* decoder) {
    Shape found = TITAN_TRY(shape());
    TITAN_TRY(cursor_.expect(";"));
    if (external != found.open)
      return errorAt(found.line, "shared memory without a size is .extern, and other is not: {}",
                     found.name);
    Variable variable{.space = Space::Shared,
                      .bytes = found.elementBytes * found.elements,
                      .alignment = found.alignment,
                      .dynamic = external};
    bool isNew = decoder ? decoder->declareVariable(found.name, variable)
                         : variables_.emplace(found.name, variable).second;
    if (!isNew)
      return errorAt(found.line, "variable {} is declared twice", found.name);
    return {};
  }

  Status dataVariable(bool external) {
    Space space = cursor_.accept(".const") ? Space::Constant : Space::Global;
    if (space == Space::Global)
      TITAN_TRY(cursor_.expect(".global"));
    Shape found = TITAN_TRY(shape());
    if (external || found.open || !cursor_.accept("="))
      return errorAt(found.line, "variable {} has no initial value: only shared memory is without",
                     found.name);
    size_t at = (module_->data.size() + found.alignment - 1) / found.alignment * found.alignment;
    uint32_t bytes = found.elementBytes * found.elements;
    module_->data.resize(at + bytes);
    TITAN_TRY(values(found, module_->data.data() + at));
    Variable variable{.space = space, .address = moduleBase + at, .bytes = bytes};
    if (!variables_.emplace(found.name, variable).second)
      return errorAt(found.line, "variable {} is declared twice", found.name);
    return cursor_.expect(";");
  }

  /// Nested braces are passed over: elements follow each other in the order of the text.
  Status values(const Shape& shape, char* to) {
    uint32_t count = 0;
    for (int depth = 0;;) {
      if (cursor_.accept("{")) {
        ++depth;
      } else if (cursor_.accept("}")) {
        --depth;
      } else if (!cursor_.accept(",")) {
        uint64_t bits = TITAN_TRY(value());
        if (count++ == shape.elements)
          return errorAt(shape.line, "variable {} has more values than {}", shape.name,
                         shape.elements);
        std::memcpy(to, &bits, shape.elementBytes);
        to += shape.elementBytes;
      }
      if (depth <= 0)
        return {};
    }
  }

  Result<uint64_t> value() {
    bool negative = cursor_.accept("-");
    std::string_view text = cursor_.peek().text;
    bool isFloat = text.size() > 2 && (text.starts_with("0f") || text.starts_with("0F") ||
                                       text.starts_with("0d") || text.starts_with("0D"));
    if (isFloat) {
      std::optional<uint64_t> bits = unsignedOf("0x" + std::string(text.substr(2)));
      if (!bits)
        return errorAt(cursor_.line(), "{} is not a float", text);
      cursor_.next();
      return *bits;
    }
    uint64_t bits = TITAN_TRY(cursor_.number("a number"));
    return negative ? uint64_t{0} - bits : bits;
  }

  Status entry() {
    Entry made;
    made.line = cursor_.line();
    made.name = TITAN_TRY(cursor_.word("an entry's name"));
    if (module_->find(made.name))
      return errorAt(made.line, "entry {} is there twice", made.name);
    if (cursor_.accept("(") && !cursor_.accept(")")) {
      do
        TITAN_TRY(parameter(made));
      while (cursor_.accept(","));
      TITAN_TRY(cursor_.expect(")"));
    }
    while (!cursor_.peek().is("{"))
      TITAN_TRY(tuning(made));
    TITAN_TRY(applyDeclaration(made));
    Decoder decoder(made, variables_);
    TITAN_TRY(body(decoder));
    module_->entries.push_back(std::move(made));
    return {};
  }

  /// `.param .u64 .ptr .global .align 16 name`
  Status parameter(Entry& into) {
    TITAN_TRY(cursor_.expect(".param"));
    uint32_t line = cursor_.line();
    if (cursor_.accept(".align"))
      TITAN_TRY(cursor_.number("an alignment"));
    uint32_t bytes = bytesOf(TITAN_TRY(cursor_.word("a type")));
    if (cursor_.accept(".ptr")) {
      for (const char* space : {".global", ".shared", ".const", ".local"})
        cursor_.accept(space);
      if (cursor_.accept(".align"))
        TITAN_TRY(cursor_.number("an alignment"));
    }
    std::string name(TITAN_TRY(cursor_.word("a parameter's name")));
    if (bytes == 0 || cursor_.peek().is("["))
      return errorAt(line, "parameter {} is no number: the interpreter has no others", name);
    uint32_t offset = (into.parameterBytes + bytes - 1) / bytes * bytes;
    into.parameters.push_back({name, offset, bytes});
    into.parameterBytes = offset + bytes;
    return {};
  }

  /// What stands between the parameters and the body.
  Status tuning(Entry& into) {
    uint32_t line = cursor_.line();
    bool required = cursor_.peek().is(".reqntid");
    if (cursor_.accept(".reqntid") || cursor_.accept(".maxntid")) {
      if (into.maxThreads)
        return errorAt(line, "conflicting directives: .maxntid and .reqntid of one entry");
      uint64_t threads = 1;
      do
        threads *= TITAN_TRY(cursor_.number("a number of threads")) & 0xffff;
      while (cursor_.accept(","));
      into.maxThreads = static_cast<uint32_t>(threads);
      into.threadsRequired = required;
      return {};
    }
    if (cursor_.accept(".minnctapersm") || cursor_.accept(".maxnreg")) {
      TITAN_TRY(cursor_.number("a number"));
      return {};
    }
    if (cursor_.accept(".pragma"))
      return pragma();
    return errorAt(line, "the interpreter has no directive '{}'", cursor_.peek().text);
  }

  Status pragma() {
    while (!cursor_.atEnd() && !cursor_.accept(";"))
      cursor_.next();
    return {};
  }

  Status applyDeclaration(Entry& into) {
    auto found = declarations_.find(into.name);
    if (found == declarations_.end())
      return {};
    const auto& [declared, line] = found->second;
    auto operands = static_cast<int64_t>(declared.windows.size());
    auto parameters = static_cast<int64_t>(into.parameters.size());
    if (operands + declared.scalars != parameters)
      return errorAt(line, "{} operands and {} scalars are not the {} parameters of entry {}",
                     operands, declared.scalars, parameters, into.name);
    for (int64_t i = 0; i < operands; ++i)
      if (into.parameters[i].bytes != 8)
        return errorAt(line, "parameter {} is no address", into.parameters[i].name);
    into.windows = declared.windows;
    into.windowed = true;
    return {};
  }

  Status body(Decoder& decoder) {
    TITAN_TRY(cursor_.expect("{"));
    for (int depth = 1; depth > 0;) {
      if (cursor_.atEnd())
        return errorAt(cursor_.line(), "an entry that does not end");
      if (cursor_.accept("{"))
        ++depth;
      else if (cursor_.peek().is("}") && --depth == 0)
        TITAN_TRY(decoder.finish(cursor_.line()));
      else if (!cursor_.accept("}"))
        TITAN_TRY(statement(decoder));
    }
    return cursor_.expect("}");
  }

  Status statement(Decoder& decoder) {
    const Token token = cursor_.peek();
    if (token.kind == Token::Kind::ImplicitDef)
      return decoder.implicitDef(cursor_.next().text, token.line);
    if (token.kind == Token::Kind::Declaration)
      return declaration();
    if (cursor_.accept(".reg"))
      return decoder.declareRegisters(cursor_);
    if (cursor_.accept(".shared"))
      return sharedVariable(false, &decoder);
    if (cursor_.accept(".pragma"))
      return pragma();
    if (token.is(".loc")) {
      cursor_.skipLine();
      return {};
    }
    if (token.kind == Token::Kind::Word && token.text[0] == '.')
      return errorAt(token.line, "the interpreter has no directive '{}'", token.text);
    if (token.kind == Token::Kind::Word && cursor_.peek(1).is(":")) {
      cursor_.next();
      cursor_.next();
      return decoder.label(token.text, token.line);
    }
    return decoder.instruction(cursor_);
  }

  Cursor cursor_;
  std::shared_ptr<Module> module_ = std::make_shared<Module>();
  Variables variables_;
  std::map<std::string, std::pair<Declaration, uint32_t>> declarations_;
};

} // namespace

Result<std::shared_ptr<const Module>> parse(std::string_view text) {
  std::vector<Token> tokens = TITAN_TRY(tokenize(text));
  return Parser(tokens).run();
}

std::vector<std::string> entries(const Module& module) {
  std::vector<std::string> names;
  for (const Entry& entry : module.entries)
    names.push_back(entry.name);
  return names;
}

std::optional<EntryInfo> info(const Module& module, std::string_view name) {
  const Entry* entry = module.find(name);
  if (!entry)
    return std::nullopt;
  return EntryInfo{.parameters = static_cast<int64_t>(entry->parameters.size()),
                   .maxThreads = entry->maxThreads,
                   .threadsRequired = entry->threadsRequired,
                   .sharedBytes = entry->sharedBytes};
}

} // namespace titan::ptx
