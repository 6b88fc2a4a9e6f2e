#include "compiler/Link/DataObject.h"

#include "llvm/BinaryFormat/ELF.h"

#include <cstring>

namespace titan::link {

namespace {

using namespace llvm::ELF;

enum Section : uint16_t {
  Null,
  Rodata,
  Payload,
  Kernels,
  Relocations,
  Symbols,
  Strings,
  SectionNames,
  NoStack,
  Count
};

constexpr uint64_t pageSize = 4096;

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

DataObject makeDataObject(const JobData& data) {
  uint64_t payloadSize = 0;
  for (std::string_view part : data.payload)
    payloadSize += part.size();
  const uint64_t kernelCount = data.kernels.size();

  // Sizes first, so that they are aligned; then the program.
  std::string rodata;
  append(rodata, static_cast<uint64_t>(data.program.size()));
  append(rodata, kernelCount);
  append(rodata, payloadSize);
  const uint64_t programOffset = rodata.size();
  rodata.append(data.program);

  StringTable strings;
  std::string symbols;
  append(symbols, Elf64_Sym{});
  auto define = [&](const char* name, uint16_t section, uint64_t value, uint64_t size) {
    append(symbols, symbol(strings.add(name), section, value, size));
  };
  define("titan_job_program_size", Rodata, 0, 8);
  define("titan_job_kernel_count", Rodata, 8, 8);
  define("titan_job_payload_size", Rodata, 16, 8);
  define("titan_job_program", Rodata, programOffset, data.program.size());
  define("titan_job_payload", Payload, 0, payloadSize);
  define("titan_job_kernels", Kernels, 0, kernelCount * 8);
  std::string relocations;
  for (uint64_t i = 0; i < kernelCount; ++i) {
    Elf64_Rela relocation{};
    relocation.r_offset = i * 8;
    relocation.setSymbolAndType(symbols.size() / sizeof(Elf64_Sym), R_X86_64_64);
    append(relocations, relocation);
    append(symbols, symbol(strings.add(data.kernels[i]), SHN_UNDEF, 0, 0));
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
  place(Payload, ".rodata.payload", SHT_PROGBITS, SHF_ALLOC, payloadSize, pageSize);
  place(Kernels, ".data.rel.ro", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, kernelCount * 8, 8);
  Elf64_Shdr& rela =
      place(Relocations, ".rela.data.rel.ro", SHT_RELA, SHF_INFO_LINK, relocations.size(), 8);
  rela.sh_link = Symbols;
  rela.sh_info = Kernels;
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

  DataObject object;
  append(object.head, file);
  object.head.resize(sections[Rodata].sh_offset);
  object.head += rodata;
  object.head.resize(sections[Payload].sh_offset);
  // From here on positions are relative to the payload's end.
  const uint64_t base = sections[Payload].sh_offset + payloadSize;
  auto put = [&](Section index, const std::string& bytes) {
    object.tail.resize(sections[index].sh_offset - base);
    object.tail += bytes;
  };
  put(Kernels, std::string(kernelCount * 8, '\0'));
  put(Relocations, relocations);
  put(Symbols, symbols);
  put(Strings, strings.bytes());
  put(SectionNames, names.bytes());
  object.tail.resize(file.e_shoff - base);
  object.tail.append(reinterpret_cast<const char*>(sections), sizeof(sections));
  return object;
}

} // namespace titan::link
