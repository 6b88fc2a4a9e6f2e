#include "runtime/checkpoint/JobFile.h"

#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/JobElf.h"
#include "runtime/device/testing/LinearProgram.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include <elf.h>

namespace titan::checkpoint {
namespace {

class JobFile : public ::testing::Test {
protected:
  Result<std::vector<Program>> read(const std::string& bytes) {
    const std::string path = fmt::format("job-{}", ++files_);
    EXPECT_TRUE((*env_.createFile(path))->append(bytes).ok());
    return readJobFile(path, env_);
  }

  void expectRefused(const std::string& bytes, const std::string& reason) {
    const auto programs = read(bytes);
    ASSERT_FALSE(programs.ok()) << "expected: " << reason;
    EXPECT_EQ(programs.error().exitCode(), 1);
    EXPECT_EQ(programs.error().message().find(
                  fmt::format("'job-{}' is no job that can be read: ", files_)),
              0u);
    EXPECT_NE(programs.error().message().find(reason), std::string::npos)
        << programs.error().message();
  }

  const Program program_ = titan::testing::linearProgram();
  CrashEnv env_;
  int files_ = 0;
};

TEST_F(JobFile, HasItsPrograms) {
  const auto one = read(JobElf{.tables = {serialize(program_)}}.bytes());
  ASSERT_TRUE(one.ok()) << one.error().message();
  EXPECT_EQ(*one, std::vector<Program>{program_});
  Program other = program_;
  other.compilerVersion = "another";
  const auto two = read(JobElf{.tables = {serialize(program_), serialize(other)}}.bytes());
  ASSERT_TRUE(two.ok()) << two.error().message();
  EXPECT_EQ(*two, (std::vector<Program>{program_, other}));
}

TEST_F(JobFile, OfSomethingElseIsRefused) {
  for (const std::string& bytes : {std::string(), std::string("text"), std::string(200, 'x')})
    expectRefused(bytes, "it is no ELF file");
  const std::string table = serialize(program_);
  expectRefused(JobElf{.tables = {table}, .countName = "main"}.bytes(),
                "it has no symbol titan_job_program_count: it was stripped, or is another program");
  expectRefused(JobElf{.tables = {table}, .tooMany = 1}.bytes(),
                fmt::format("it has {} bytes of tables, and {} at {} were expected", table.size(),
                            table.size() + 1, 0));
  expectRefused(JobElf{.tables = {table}}.bytes().substr(0, 100),
                fmt::format("it has {} bytes, and {} at {} were expected", 100, 256, 64));
  expectRefused(JobElf{.tables = {}}.bytes(), "0 bytes for the addresses of its programs");
  expectRefused(JobElf{.tables = {table + "x"}}.bytes(), "1 bytes follow its end");
  std::string older = table;
  older[8] = 1;
  expectRefused(JobElf{.tables = {older}}.bytes(), "format version 1");
}

// Every cut and every flipped byte ends in a program or in an error.
TEST_F(JobFile, SurvivesDamage) {
  const std::string bytes = JobElf{.tables = {serialize(program_)}}.bytes();
  for (size_t size = 0; size < bytes.size(); size += 1 + size / 40)
    EXPECT_FALSE(read(bytes.substr(0, size)).ok()) << size;
  for (size_t at = 0; at < bytes.size(); at += at < 400 ? 1 : 97) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    if (const auto programs = read(changed); !programs.ok())
      EXPECT_EQ(programs.error().exitCode(), 1) << programs.error().message();
  }
}

TEST_F(JobFile, LeavesItsSection) {
  std::string bytes = JobElf{.tables = {serialize(program_)}}.bytes();
  // The address of the data's section, which symbols count from.
  const uint64_t address = 0x2000;
  std::string moved = bytes;
  std::memcpy(moved.data() + sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr) +
                  offsetof(Elf64_Shdr, sh_addr),
              &address, sizeof address);
  expectRefused(moved, "its symbol titan_job_program_count leaves its section");
  const uint32_t none = SHT_NOBITS;
  std::memcpy(bytes.data() + sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr) +
                  offsetof(Elf64_Shdr, sh_type),
              &none, sizeof none);
  expectRefused(bytes, "its symbol titan_job_program_count lies in no section with data");
}

} // namespace
} // namespace titan::checkpoint
