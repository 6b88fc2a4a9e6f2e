// One instruction on given values: the PTX around it, and what comes out.
#pragma once

#include "runtime/device/cuda/testing/ptx/TestKernel.h"

namespace titan::ptx {

/// A value in a register of type b16, b32, b64 or pred, or an immediate (imm).
struct TestValue {
  std::string type;
  uint64_t bits = 0;
};

struct TestCase {
  std::string name;
  std::vector<TestValue> sources, results;
};

/// The case as a kernel: sources at p0, each in 8 bytes; results of thread t at p1, from
/// 8 * t * results.
inline std::string caseText(const TestCase& test) {
  std::string body, names, separator;
  int registers = 0;
  auto name = [&](const std::string& type) {
    const char* prefix = type == "pred"  ? "%p"
                         : type == "b16" ? "%rs"
                         : type == "b32" ? "%r"
                                         : "%rd";
    return prefix + std::to_string(type == "pred" ? ++registers % 8 : 4 + registers++);
  };
  bool packs = test.name.starts_with("mov") && test.results.size() + test.sources.size() > 2;
  auto list = [&](const std::vector<TestValue>& values, std::vector<std::string>& into) {
    std::string text;
    for (const TestValue& value : values) {
      into.push_back(value.type == "imm" ? std::to_string(value.bits) : name(value.type));
      text += (text.empty() ? "" : ", ") + into.back();
    }
    return packs && values.size() > 1 ? "{" + text + "}" : text;
  };
  std::vector<std::string> results, sources;
  std::string to = list(test.results, results), from = list(test.sources, sources);
  if (!packs && results.size() == 2)
    to = results[0] + "|" + results[1];
  for (size_t i = 0; i < sources.size(); ++i) {
    std::string type = test.sources[i].type;
    if (type == "pred")
      body += fmt::format("ld.global.b32 %r30, [%rd0+{}];\nsetp.ne.b32 {}, %r30, 0;\n", 8 * i,
                          sources[i]);
    else if (type != "imm")
      body += fmt::format("ld.global.{} {}, [%rd0+{}];\n", type, sources[i], 8 * i);
  }
  body += fmt::format("{} {}{}{};\n", test.name, to, from.empty() ? "" : ", ", from);
  body += fmt::format("mul.wide.u32 %rd30, %r0, {};\nadd.s64 %rd31, %rd1, %rd30;\n",
                      8 * test.results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    std::string type = test.results[i].type, held = results[i];
    if (type == "pred") {
      body += fmt::format("selp.b32 %r30, 1, 0, {};\n", held);
      type = "b32";
      held = "%r30";
    }
    body += fmt::format("st.global.{} [%rd31+{}], {};\n", type, 8 * i, held);
  }
  return kernelText(2, body);
}

/// Runs it with a whole warp, and with some lanes of one.
inline void checkCase(const TestCase& test) {
  std::string text = caseText(test);
  SCOPED_TRACE(text);
  std::shared_ptr<const Module> module = parsed(text);
  if (!module)
    return;
  std::vector<uint64_t> values;
  for (const TestValue& source : test.sources)
    values.push_back(source.bits);
  values.push_back(0);
  for (uint32_t threads : {32u, 5u}) {
    Memory memory;
    uint64_t count = threads * test.results.size();
    std::vector<uint64_t> zeros(count);
    uint64_t in = put(memory, values), out = put(memory, zeros);
    Result<Counters> done =
        run(*module, {.entry = "k", .block = {threads, 1, 1}, .arguments = {in, out}}, memory);
    ASSERT_TRUE(done.ok()) << done.error().message();
    std::vector<uint64_t> found = get<uint64_t>(memory, out, static_cast<int64_t>(count));
    for (size_t i = 0; i < count; ++i)
      ASSERT_EQ(fmt::format("{:x}", found[i]),
                fmt::format("{:x}", test.results[i % test.results.size()].bits))
          << "thread " << i / test.results.size();
  }
}

/// `add.s32: b32 7fffffff, b32 1 = b32 80000000`, values hexadecimal.
inline TestCase caseOf(const std::string& line) {
  TestCase test;
  size_t colon = line.find(':'), equals = line.find('=');
  test.name = line.substr(0, colon);
  auto values = [](std::string text) {
    std::vector<TestValue> result;
    for (size_t start = 0; start < text.size();) {
      size_t end = std::min(text.find(',', start), text.size());
      std::string one = text.substr(start, end - start);
      one = one.substr(one.find_first_not_of(' '));
      size_t space = one.find(' ');
      result.push_back({one.substr(0, space), std::stoull(one.substr(space + 1), nullptr, 16)});
      start = end + 1;
    }
    return result;
  };
  test.sources = values(line.substr(colon + 1, equals - colon - 1));
  test.results = values(line.substr(equals + 1));
  return test;
}

} // namespace titan::ptx
