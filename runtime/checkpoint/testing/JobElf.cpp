#include "runtime/checkpoint/testing/JobElf.h"

#include <cstring>

#include <elf.h>

namespace titan::checkpoint {
namespace {

template <typename T> void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

} // namespace

std::string JobElf::bytes() const {
  enum : uint16_t { Null, Data, Symbols, Strings, Count };
  std::string data, all;
  append(data, uint64_t{tables.size()});
  for (size_t i = 0; i < tables.size(); ++i)
    for (const uint64_t field :
         {uint64_t{0}, tables[i].size() + (i == 0 ? tooMany : 0), uint64_t{0}, uint64_t{0}})
      append(data, field);
  const uint64_t programsAt = sizeof(uint64_t), tablesAt = data.size();
  for (const std::string& table : tables)
    all += table;
  data += all;

  std::string strings(1, '\0'), symbols;
  append(symbols, Elf64_Sym{});
  const auto define = [&](const std::string& name, uint64_t at, uint64_t size) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<uint32_t>(strings.size());
    symbol.st_shndx = Data;
    symbol.st_value = sectionAddress + at;
    symbol.st_size = size;
    append(symbols, symbol);
    strings += name + '\0';
  };
  define(countName, 0, sizeof(uint64_t));
  define("titan_job_programs", programsAt, tablesAt - programsAt);
  define("titan_job_tables", tablesAt, all.size());

  Elf64_Shdr sections[Count] = {};
  uint64_t position = sizeof(Elf64_Ehdr) + sizeof sections;
  const auto place = [&](uint16_t index, uint32_t type, const std::string& content) {
    sections[index].sh_type = type;
    sections[index].sh_offset = position;
    sections[index].sh_size = content.size();
    position += content.size();
  };
  place(Data, SHT_PROGBITS, data);
  place(Symbols, SHT_SYMTAB, symbols);
  place(Strings, SHT_STRTAB, strings);
  sections[Data].sh_addr = sectionAddress;
  sections[Symbols].sh_link = Strings;

  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_shoff = sizeof head;
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = Count;
  std::string file;
  append(file, head);
  file.append(reinterpret_cast<const char*>(sections), sizeof sections);
  return file + data + symbols + strings;
}

} // namespace titan::checkpoint
