#include "runtime/checkpoint/JobFile.h"

#include <cstring>
#include <map>

#include <elf.h>

namespace titan::checkpoint {
namespace {

constexpr const char* countSymbol = "titan_job_program_count";
constexpr const char* programsSymbol = "titan_job_programs";
constexpr const char* tablesSymbol = "titan_job_tables";
constexpr size_t programBytes = 4 * sizeof(uint64_t), tableSizeAt = sizeof(uint64_t);

class ElfFile {
public:
  static Result<ElfFile> open(const std::string& path, Env& env) {
    ElfFile elf;
    elf.file_ = TITAN_TRY(env.openFile(path));
    Elf64_Ehdr head;
    const auto isElf = [&] {
      return std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
             head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_ident[EI_DATA] == ELFDATA2LSB &&
             head.e_shentsize == sizeof(Elf64_Shdr);
    };
    const bool isLongEnough = elf.file_->size() >= static_cast<int64_t>(sizeof head);
    if (isLongEnough)
      TITAN_TRY(elf.file_->read(0, reinterpret_cast<char*>(&head), sizeof head));
    if (!isLongEnough || !isElf())
      return Error::badInput("it is no ELF file");
    const std::string bytes =
        TITAN_TRY(elf.read(head.e_shoff, uint64_t{head.e_shnum} * sizeof(Elf64_Shdr)));
    elf.sections_.resize(head.e_shnum);
    std::memcpy(elf.sections_.data(), bytes.data(), bytes.size());
    TITAN_TRY(elf.readSymbols());
    return elf;
  }

  /// The bytes that the symbol names.
  Result<std::string> contentOf(const char* symbol) const {
    const auto found = symbols_.find(symbol);
    if (found == symbols_.end())
      return Error::badInput("it has no symbol {}: it was stripped, or is another program", symbol);
    const Elf64_Sym& at = found->second;
    if (at.st_shndx >= sections_.size() || sections_[at.st_shndx].sh_type != SHT_PROGBITS)
      return Error::badInput("its symbol {} lies in no section with data", symbol);
    const Elf64_Shdr& section = sections_[at.st_shndx];
    const uint64_t offset = at.st_value - section.sh_addr;
    if (offset > section.sh_size || at.st_size > section.sh_size - offset)
      return Error::badInput("its symbol {} leaves its section", symbol);
    return read(section.sh_offset + offset, at.st_size);
  }

private:
  Result<std::string> read(uint64_t offset, uint64_t bytes) const {
    const auto size = static_cast<uint64_t>(file_->size());
    if (offset > size || bytes > size - offset)
      return Error::badInput("it has {} bytes, and {} at {} were expected", size, bytes, offset);
    std::string content(bytes, '\0');
    TITAN_TRY(
        file_->read(static_cast<int64_t>(offset), content.data(), static_cast<int64_t>(bytes)));
    return content;
  }

  /// Those of a job's data; there are none where the table of symbols is missing.
  Status readSymbols() {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections_.size())
        continue;
      const Elf64_Shdr& strings = sections_[section.sh_link];
      const std::string names = TITAN_TRY(read(strings.sh_offset, strings.sh_size));
      const std::string table = TITAN_TRY(read(section.sh_offset, section.sh_size));
      for (size_t at = 0; at + sizeof(Elf64_Sym) <= table.size(); at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        std::memcpy(&symbol, table.data() + at, sizeof symbol);
        if (symbol.st_name >= names.size())
          continue;
        const std::string name = names.c_str() + symbol.st_name;
        if (name == countSymbol || name == programsSymbol || name == tablesSymbol)
          symbols_[name] = symbol;
      }
    }
    return {};
  }

  std::unique_ptr<ReadableFile> file_;
  std::vector<Elf64_Shdr> sections_;
  std::map<std::string, Elf64_Sym> symbols_;
};

uint64_t numberAt(const std::string& bytes, size_t at) {
  uint64_t number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

Result<std::vector<Program>> readPrograms(const std::string& path, Env& env) {
  const ElfFile elf = TITAN_TRY(ElfFile::open(path, env));
  const std::string count = TITAN_TRY(elf.contentOf(countSymbol));
  const std::string rows = TITAN_TRY(elf.contentOf(programsSymbol));
  const std::string tables = TITAN_TRY(elf.contentOf(tablesSymbol));
  if (count.size() != sizeof(uint64_t) || numberAt(count, 0) == 0 ||
      numberAt(count, 0) != rows.size() / programBytes)
    return Error::badInput("it has {} bytes for the addresses of its programs", rows.size());
  std::vector<Program> programs;
  size_t begin = 0;
  for (size_t row = 0; row < rows.size() / programBytes; ++row) {
    const uint64_t bytes = numberAt(rows, row * programBytes + tableSizeAt);
    if (bytes > tables.size() - begin)
      return Error::badInput("it has {} bytes of tables, and {} at {} were expected", tables.size(),
                             bytes, begin);
    programs.push_back(TITAN_TRY(deserialize(std::string_view(tables).substr(begin, bytes))));
    begin += bytes;
  }
  TITAN_TRY(verifyJob(programs));
  return programs;
}

} // namespace

Result<std::vector<Program>> readJobFile(const std::string& path, Env& env) {
  auto programs = readPrograms(path, env);
  if (!programs.ok() && programs.error().code() == ErrorCode::BadInput)
    return programs.takeError().withContext(fmt::format("'{}' is no job that can be read", path));
  return programs;
}

} // namespace titan::checkpoint
