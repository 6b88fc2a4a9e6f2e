#include "compiler/Link/DataObject.h"

#include "llvm/BinaryFormat/ELF.h"

#include <cstring>

namespace titan::link {

namespace {

using namespace llvm::ELF;

enum Section : uint16_t {
  Null,
  Rodata,
  Programs,
  Relocations,
  Symbols,
  Strings,
  SectionNames,
  NoStack,
  Count
};

constexpr uint64_t programBytes = 4 * 8; // table, its size, kernels, their number

uint64_t alignTo(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

template <typename T> void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// Strings one after another, each ended by a zero; the first is empty.
class StringTable {
public:
  uint32_t add(std::string_view text) {
    uint32_t offset = bytes_.size();
    bytes_.append(text);
    bytes_.push_back('\0');
    return offset;
  }
  const std::string& bytes() const { return bytes_; }

private:
  std::string bytes_ = std::string(1, '\0');
};

Elf64_Sym symbol(uint32_t name, uint16_t section, uint64_t value, uint64_t size) {
  Elf64_Sym result{};
  result.st_name = name;
  result.setBindingAndType(STB_GLOBAL, section == SHN_UNDEF ? STT_NOTYPE : STT_OBJECT);
  result.st_other = STV_HIDDEN;
  result.st_shndx = section;
  result.st_value = value;
  result.st_size = size;
  return result;
}

} // namespace

std::string makeDataObject(const JobData& data) {
  // Sizes first, so that they are aligned; then the tables.
  std::string rodata;
  append(rodata, static_cast<uint64_t>(data.programs.size()));
  append(rodata, data.payloadBytes);
  const uint64_t tablesOffset = rodata.size();
  for (const ProgramData& program : data.programs)
    rodata.append(program.table);

  StringTable strings;
  std::string symbols;
  append(symbols, Elf64_Sym{});
  auto define = [&](const char* name, uint16_t section, uint64_t value, uint64_t size) {
    append(symbols, symbol(strings.add(name), section, value, size));
  };
  auto nextSymbol = [&] { return static_cast<uint32_t>(symbols.size() / sizeof(Elf64_Sym)); };
  define("titan_job_program_count", Rodata, 0, 8);
  define("titan_job_payload_size", Rodata, 8, 8);
  const uint32_t tablesSymbol = nextSymbol();
  define("titan_job_tables", Rodata, tablesOffset, rodata.size() - tablesOffset);
  const uint32_t programsSymbol = nextSymbol();
  define("titan_job_programs", Programs, 0, data.programs.size() * programBytes);

  // The programs as runtime/job/JobMain.cpp declares them, then the kernels of each.
  std::string programs, relocations;
  auto point = [&](uint64_t at, uint32_t symbol, uint64_t addend) {
    Elf64_Rela relocation{};
    relocation.r_offset = at;
    relocation.r_addend = static_cast<int64_t>(addend);
    relocation.setSymbolAndType(symbol, R_X86_64_64);
    append(relocations, relocation);
  };
  uint64_t tableAt = 0, kernelsAt = data.programs.size() * programBytes;
  for (const ProgramData& program : data.programs) {
    point(programs.size(), tablesSymbol, tableAt);
    point(programs.size() + 16, programsSymbol, kernelsAt);
    for (uint64_t field : {uint64_t{0}, uint64_t{program.table.size()}, uint64_t{0},
                           uint64_t{program.kernels.size()}})
      append(programs, field);
    tableAt += program.table.size();
    kernelsAt += program.kernels.size() * 8;
  }
  for (const ProgramData& program : data.programs)
    for (const std::string& kernel : program.kernels) {
      point(programs.size(), nextSymbol(), 0);
      append(programs, uint64_t{0});
      append(symbols, symbol(strings.add(kernel), SHN_UNDEF, 0, 0));
    }

  StringTable names;
  Elf64_Shdr sections[Count] = {};
  uint64_t position = sizeof(Elf64_Ehdr);
  auto place = [&](Section index, const char* name, uint32_t type, uint64_t flags, uint64_t size,
                   uint64_t alignment) -> Elf64_Shdr& {
    Elf64_Shdr& header = sections[index];
    header.sh_name = names.add(name);
    header.sh_type = type;
    header.sh_flags = flags;
    header.sh_offset = alignTo(position, alignment);
    header.sh_size = size;
    header.sh_addralign = alignment;
    position = header.sh_offset + size;
    return header;
  };
  place(Rodata, ".rodata", SHT_PROGBITS, SHF_ALLOC, rodata.size(), 16);
  place(Programs, ".data.rel.ro", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, programs.size(), 8);
  Elf64_Shdr& rela =
      place(Relocations, ".rela.data.rel.ro", SHT_RELA, SHF_INFO_LINK, relocations.size(), 8);
  rela.sh_link = Symbols;
  rela.sh_info = Programs;
  rela.sh_entsize = sizeof(Elf64_Rela);
  Elf64_Shdr& symtab = place(Symbols, ".symtab", SHT_SYMTAB, 0, symbols.size(), 8);
  symtab.sh_link = Strings;
  symtab.sh_info = 1; // the first global
  symtab.sh_entsize = sizeof(Elf64_Sym);
  place(Strings, ".strtab", SHT_STRTAB, 0, strings.bytes().size(), 1);
  // Declares that the stack need not be executable.
  place(NoStack, ".note.GNU-stack", SHT_PROGBITS, 0, 0, 1);
  uint32_t namesName = names.add(".shstrtab");
  Elf64_Shdr& nameTable = place(SectionNames, "", SHT_STRTAB, 0, names.bytes().size() + 1, 1);
  nameTable.sh_name = namesName;
  nameTable.sh_size = names.bytes().size();
  position = nameTable.sh_offset + nameTable.sh_size;

  Elf64_Ehdr file{};
  std::memcpy(file.e_ident, ElfMagic, 4);
  file.e_ident[EI_CLASS] = ELFCLASS64;
  file.e_ident[EI_DATA] = ELFDATA2LSB;
  file.e_ident[EI_VERSION] = EV_CURRENT;
  file.e_type = ET_REL;
  file.e_machine = EM_X86_64;
  file.e_version = EV_CURRENT;
  file.e_shoff = alignTo(position, 8);
  file.e_ehsize = sizeof(Elf64_Ehdr);
  file.e_shentsize = sizeof(Elf64_Shdr);
  file.e_shnum = Count;
  file.e_shstrndx = SectionNames;

  std::string object;
  append(object, file);
  auto put = [&](Section index, const std::string& bytes) {
    object.resize(sections[index].sh_offset);
    object += bytes;
  };
  put(Rodata, rodata);
  put(Programs, programs);
  put(Relocations, relocations);
  put(Symbols, symbols);
  put(Strings, strings.bytes());
  put(SectionNames, names.bytes());
  object.resize(file.e_shoff);
  object.append(reinterpret_cast<const char*>(sections), sizeof(sections));
  return object;
}

} // namespace titan::link
