#include "runtime/device/cuda/CudaDevice.h"

#include "runtime/device/cuda/testing/CudaRun.h"
#include "runtime/device/cuda/testing/MarkProgram.h"

#include <cstring>
#include <thread>

namespace titan {
namespace {

using testing::CudaRun;
using testing::FakeVariable;
using testing::kernelCommand;
using testing::LinearRun;
using testing::LinearShape;
using testing::markPtx;
using testing::ptxEntry;
using testing::ptxHeader;
using testing::ptxProgram;
using testing::Record;
using testing::textOf;

TEST(CudaDevice, TrainsWithTheBitsOfTheCpu) {
  LinearRun cpu;
  const std::vector<float> losses = cpu.train(20);
  const std::pair<const char*, const char*> settings[] = {
      {"ascending", "0"}, {"descending", "1"}, {"random", "7"}};
  for (const auto& [order, seed] : settings) {
    const FakeVariable orderVariable("ORDER", order), seedVariable("SEED", seed);
    CudaRun card;
    EXPECT_EQ(card.train(20), losses) << order;
    EXPECT_EQ(card.stateBytes(), cpu.stateBytes()) << order;
    EXPECT_EQ(card.counter("samples"), 20 * LinearShape::batch);
  }
}

TEST(CudaDevice, EvaluatesWithTheBitsOfTheCpu) {
  LinearRun cpu;
  CudaRun card;
  std::vector<double> losses;
  for (LinearRun* run : {&cpu, static_cast<LinearRun*>(&card)}) {
    std::vector<float> x(LinearShape::micro * LinearShape::features, 0.5f);
    std::vector<float> y(LinearShape::micro * LinearShape::outputs, 0.25f);
    ASSERT_TRUE(run->access->write(*run->access->binding("eval", "x"), 0, run->bytesOf(x)).ok());
    ASSERT_TRUE(
        run->access->write(*run->access->binding("eval", "targets"), 0, run->bytesOf(y)).ok());
    run->scalar("eval", "valid_rows").write(3);
    const Scalar loss = run->scalar("eval", "loss_sum"), count = run->scalar("eval", "count");
    ASSERT_TRUE(run->run("eval").ok());
    EXPECT_EQ(count.count(), 3 * LinearShape::outputs);
    losses.push_back(loss.read());
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_GT(losses[0], 0);
}

TEST(CudaDevice, NonFiniteStepsAreSkippedByTheProgram) {
  CudaRun run;
  run.train(2);
  const State& weight = *run.program.findState("linear.weight");
  const std::string before = run.bytesOfState(weight);
  run.fill(2, INFINITY);
  ASSERT_TRUE(run.run("step").ok());
  EXPECT_EQ(run.bytesOfState(weight), before);
  EXPECT_EQ(run.counter("skipped"), 1);
}

TEST(CudaDevice, OperandsAndScalarsFollowBothRepeats) {
  Program program = ptxProgram(markPtx(), {"mark"});
  const auto repeat = [](CommandKind kind, int64_t units) {
    Command command;
    command.kind = kind, command.launch.units = units;
    return command;
  };
  Command mark;
  mark.operands = {{{8, {{0, 24}, {1, 8}}}, 8, Access::Both}};
  mark.scalars = {{5, {{0, 100}, {1, 10}}}};
  Command copy;
  copy.kind = CommandKind::Copy;
  copy.operands = {{{512}, 64, Access::Write}, {{0}, 64, Access::Read}};
  program.functions[0].commands = {
      repeat(CommandKind::Repeat, 2),    repeat(CommandKind::Repeat, 3),    mark,
      repeat(CommandKind::EndRepeat, 1), repeat(CommandKind::EndRepeat, 1), copy};
  auto device = CudaDevice::create(program, markPtx()).take();
  ASSERT_TRUE(device->fill(0, 64, 0).ok());
  ASSERT_TRUE(device->run(0, nullptr).ok());
  std::vector<int64_t> values(8);
  ASSERT_TRUE(device->download(512, {reinterpret_cast<char*>(values.data()), 64}).ok());
  ASSERT_TRUE(device->wait(device->record()).ok());
  EXPECT_EQ(values, (std::vector<int64_t>{0, 5, 15, 25, 105, 115, 125, 0}));
  EXPECT_TRUE(device->window(0, 64).empty());
  EXPECT_GE(device->bytes(), program.arenaBytes);
}

/// Fills temporaries that are not live, as the poisoner does, and reads the loss after each
/// command.
struct Filler : CommandObserver {
  Device& device;
  int64_t loss;
  std::vector<std::string> seen;
  std::vector<float> losses;

  Filler(Device& device, int64_t loss) : device(device), loss(loss) {}

  void fillDead(const Function& function, uint32_t command, bool before) {
    for (const LiveRange& range : function.temporaries)
      if (before ? range.first == command : range.last == command)
        EXPECT_TRUE(device.fill(range.offset, range.bytes, '\xff').ok());
  }
  void beforeFunction(const Function& function) override { seen.push_back("begin"); }
  void before(const Function& function, uint32_t command) override {
    fillDead(function, command, true);
  }
  void after(const Function& function, uint32_t command) override {
    float value = 0;
    EXPECT_TRUE(device.download(loss, {reinterpret_cast<char*>(&value), sizeof value}).ok());
    EXPECT_TRUE(device.wait(device.record()).ok());
    losses.push_back(value);
    seen.push_back(std::to_string(command));
    fillDead(function, command, false);
  }
  void afterFunction(const Function& function) override { seen.push_back("end"); }
};

TEST(CudaDevice, AnObserverSeesFinishedCommands) {
  LinearRun plain;
  plain.train(3);
  CudaRun run;
  run.train(2);
  const int64_t loss = run.access->binding("step", "loss")->offset;
  Filler filler(*run.device, loss);
  run.observer = &filler;
  const std::vector<float> last = [&] {
    run.fill(2);
    EXPECT_TRUE(run.run("step").ok());
    return std::vector<float>{static_cast<float>(run.scalar("step", "loss").read())};
  }();
  EXPECT_EQ(filler.seen, (std::vector<std::string>{"begin", "0", "1", "3", "4", "5", "6", "3", "4",
                                                   "5", "6", "7", "8", "9", "10", "end"}));
  // The loss is the step's from command 8 on, and that of the step before until then.
  EXPECT_EQ(filler.losses.size(), 14);
  EXPECT_NE(filler.losses[10], last[0]);
  EXPECT_EQ(filler.losses[11], last[0]);
  EXPECT_EQ(run.stateBytes(), plain.stateBytes());
}

TEST(CudaDevice, ARunWaitsForNothing) {
  const Record record;
  CudaRun run;
  run.train(2); // what the scalars say is on the card by now, and the graph is there
  const auto waits = [&] {
    return record.count("cuStreamSynchronize") + record.count("cuEventSynchronize") +
           record.count("cuEventQuery");
  };
  const int64_t launched = record.count("cuLaunchKernel"), waited = waits();
  ASSERT_TRUE(run.device->run(0, nullptr).ok());
  EXPECT_EQ(waits(), waited);
  EXPECT_EQ(record.count("cuLaunchKernel"), launched);
  EXPECT_EQ(record.count("# titan_kernel_0 ran"), 4); // of the steps before
  ASSERT_TRUE(run.device->wait(run.device->record()).ok());
  EXPECT_EQ(record.count("# titan_kernel_0 ran"), 6);
}

TEST(CudaDevice, AFunctionIsOneLaunchFromItsSecondRunOn) {
  const Record record;
  CudaRun run;
  run.train(1);
  // Four commands of two microbatches, one of them two launches, and three of the update.
  EXPECT_EQ(record.count("cuLaunchKernel"), 13);
  EXPECT_EQ(record.count("cuStreamBeginCapture"), 0);
  run.train(19);
  EXPECT_EQ(record.count("cuLaunchKernel"), 26) << "walked, and captured";
  EXPECT_EQ(record.count("cuGraphInstantiate"), 1);
  EXPECT_EQ(record.count("cuGraphLaunch"), 19);
  EXPECT_EQ(record.count("# titan_kernel_0 ran"), 40);
}

TEST(CudaDevice, AGraphHasTheBitsOfTheWalk) {
  CudaRun walked, graph;
  CommandObserver nobody;
  walked.observer = &nobody;
  EXPECT_EQ(walked.train(20), graph.train(20));
  EXPECT_EQ(walked.stateBytes(), graph.stateBytes());
}

TEST(CudaDevice, GraphsCanBeLeftOut) {
  CudaRun graph;
  graph.train(5);
  setenv("TITAN_CUDA_GRAPHS", "0", 1);
  const Record record;
  CudaRun walked;
  walked.train(5);
  unsetenv("TITAN_CUDA_GRAPHS");
  EXPECT_EQ(record.count("cuStreamBeginCapture"), 0);
  EXPECT_EQ(walked.stateBytes(), graph.stateBytes());
}

TEST(CudaDevice, TheHostMayReadScalarsBeforeTheyAreWritten) {
  const Record record;
  CudaRun run;
  EXPECT_GT(record.count("cuMemsetD8Async"), 0);
}

TEST(CudaDevice, NothingOfTheHostIsInTheGraph) {
  LinearRun cpu;
  CudaRun card;
  for (LinearRun* run : {&cpu, static_cast<LinearRun*>(&card)})
    for (int step = 0; step < 8; ++step) {
      run->fill(step);
      run->scalar("step", "optimizer.lr").write(0.01 * (step + 1));
      ASSERT_TRUE(run->run("step").ok());
    }
  EXPECT_EQ(card.stateBytes(), cpu.stateBytes());
}

TEST(CudaDevice, AnObserversRunIsAWalkThatLoads) {
  const Record record;
  CudaRun run;
  CommandObserver nobody;
  run.observer = &nobody;
  run.train(2);
  EXPECT_EQ(record.count("cuStreamBeginCapture"), 0);
  run.observer = nullptr;
  run.train(1); // has loaded all that the graph launches
  EXPECT_EQ(record.count("cuGraphLaunch"), 1);
}

TEST(CudaDevice, ALongFunctionIsWalked) {
  Program program = ptxProgram(markPtx(), {"mark"});
  Command mark = kernelCommand(0, 0, 8), repeat, end;
  mark.scalars = {{1}};
  repeat.kind = CommandKind::Repeat, end.kind = CommandKind::EndRepeat;
  for (const auto& [times, launches] :
       {std::pair{CudaDevice::mostGraphNodes, 1}, std::pair{CudaDevice::mostGraphNodes + 1, 0}}) {
    repeat.launch.units = end.launch.units = times;
    program.functions[0].commands = {repeat, mark, end};
    const Record record;
    auto device = CudaDevice::create(program, markPtx()).take();
    ASSERT_TRUE(device->fill(0, 8, 0).ok());
    ASSERT_TRUE(device->run(0, nullptr).ok());
    ASSERT_TRUE(device->run(0, nullptr).ok());
    int64_t count = 0;
    ASSERT_TRUE(device->download(0, {reinterpret_cast<char*>(&count), 8}).ok());
    ASSERT_TRUE(device->wait(device->record()).ok());
    EXPECT_EQ(count, 2 * times);
    EXPECT_EQ(record.count("cuGraphLaunch"), launches);
  }
}

TEST(CudaDevice, WhatFailsWhileAGraphIsMadeIsNamed) {
  Program program = ptxProgram(markPtx(), {"mark"});
  program.functions[0].commands = {kernelCommand(0, 0, 8)};
  program.functions[0].commands[0].scalars = {{1}};
  for (const auto& [call, text] :
       {std::pair{"cuStreamBeginCapture_v2:1:901", "exit 4: recording for card 0"},
        std::pair{"cuLaunchKernel:2:701", "exit 4: 'mark' (command 0 of step) on card 0"},
        std::pair{"cuStreamEndCapture:1:901", "exit 4: recording for card 0"},
        std::pair{"cuGraphInstantiateWithFlags:1:2", "exit 3: preparing a graph for card 0"},
        std::pair{"cuGraphLaunch:1:719", "exit 4: a command of step failed on card 0"}}) {
    const FakeVariable fail("FAIL", call);
    auto device = CudaDevice::create(program, markPtx()).take();
    ASSERT_TRUE(device->fill(0, 8, 0).ok());
    ASSERT_TRUE(device->run(0, nullptr).ok());
    const std::string error = textOf(device->run(0, nullptr));
    EXPECT_TRUE(error.starts_with(text)) << error;
    EXPECT_EQ(textOf(device->run(0, nullptr)), error);
  }
}

TEST(CudaDevice, CopiesOfPinnedMemoryAreLate) {
  Program program;
  program.arenaBytes = 4096;
  program = ptxProgram(markPtx(), {"mark"});
  auto device = CudaDevice::create(program, markPtx()).take();
  const std::span<char> from = device->hostBuffer(64).take(), into = device->hostBuffer(64).take();
  EXPECT_EQ(std::ranges::count(from, '\0'), 64);
  std::ranges::fill(from, 'a');
  ASSERT_TRUE(device->upload(100, from).ok());
  ASSERT_TRUE(device->download(100, into).ok());
  EXPECT_NE(into[0], 'a');
  from[0] = 'b'; // too early: nobody has waited for the upload
  ASSERT_TRUE(device->wait(device->record()).ok());
  EXPECT_EQ(into[0], 'b');
  EXPECT_EQ(into[63], 'a');
}

TEST(CudaDevice, InputsTravelByAStreamOfTheirOwn) {
  const Record record;
  CudaRun run;
  run.train(2);
  const Place x = *run.access->binding("step", "x");
  const std::span<char> batch = run.device->hostBuffer(x.bytes).take();
  const size_t before = record.lines().size();
  ASSERT_TRUE(run.device->run(0, nullptr).ok());
  ASSERT_TRUE(run.device->upload(x.offset, batch).ok());
  ASSERT_TRUE(run.device->upload(x.offset + 4, batch.subspan(4)).ok());
  std::vector<std::string> calls;
  const std::vector<std::string> lines = record.lines();
  for (const std::string& line : std::span(lines).subspan(before))
    if (!line.starts_with("cuCtxSetCurrent"))
      calls.push_back(line.substr(0, line.find('(')) + line[line.rfind(')') - 1]);
  const std::vector<std::string> upload = {"cuStreamWaitEvent2",    "cuMemcpyHtoDAsync_v22",
                                           "cuEventRecord2",        "cuStreamWaitEvent1",
                                           "cuMemcpyDtoDAsync_v21", "cuEventRecord1"};
  std::vector<std::string> expected = {"cuGraphLaunch1"};
  for (int i = 0; i < 2; ++i)
    expected.insert(expected.end(), upload.begin(), upload.end());
  EXPECT_EQ(calls, expected);
}

TEST(CudaDevice, UploadsToInputsTakeEffectInTheirOrder) {
  for (const char* seed : {"0", "1", "2", "3", "4", "5", "6", "7"}) {
    const FakeVariable variable("SEED", seed);
    CudaRun run;
    const Place x = *run.access->binding("step", "x");
    const auto size = static_cast<size_t>(x.bytes);
    std::vector<std::span<char>> from, into;
    for (char value = 'a'; value < 'f'; ++value) {
      from.push_back(run.device->hostBuffer(x.bytes).take());
      into.push_back(run.device->hostBuffer(x.bytes).take());
      std::ranges::fill(from.back(), value);
      ASSERT_TRUE(run.device->upload(x.offset, from.back()).ok());
      ASSERT_TRUE(run.device->download(x.offset, into.back()).ok());
    }
    ASSERT_TRUE(run.device->wait(run.device->record()).ok());
    for (size_t i = 0; i < from.size(); ++i)
      EXPECT_EQ(std::memcmp(from[i].data(), into[i].data(), size), 0) << seed;
  }
}

TEST(CudaDevice, CopiesOfOtherMemoryAreWhole) {
  Program program = ptxProgram(markPtx(), {"mark"});
  program.arenaBytes = 5 << 20;
  auto device = CudaDevice::create(program, markPtx()).take();
  std::vector<char> bytes(4'000'001), read(bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * 31 + i / 251);
  ASSERT_TRUE(device->upload(77, bytes).ok());
  ASSERT_TRUE(device->upload(77, {}).ok());
  ASSERT_TRUE(device->download(77, read).ok());
  ASSERT_TRUE(device->download(77, {}).ok());
  ASSERT_TRUE(device->fill(78, 3'999'999, 5).ok());
  ASSERT_TRUE(device->fill(78, 0, 6).ok());
  ASSERT_TRUE(device->wait(device->record()).ok());
  EXPECT_EQ(bytes, read);
  ASSERT_TRUE(device->download(77, read).ok());
  ASSERT_TRUE(device->wait(device->record()).ok());
  EXPECT_EQ(std::ranges::count(read, 5), 3'999'999 + (bytes[0] == 5) + (bytes.back() == 5));
}

TEST(CudaDevice, WaitsForAnyEvent) {
  Program program = ptxProgram(markPtx(), {"mark"});
  program.functions[0].commands = {kernelCommand(0, 0, 8)};
  program.functions[0].commands[0].scalars = {{1}};
  auto device = CudaDevice::create(program, markPtx()).take();
  ASSERT_TRUE(device->fill(0, 8, 0).ok());
  EXPECT_TRUE(device->wait({}).ok());
  std::vector<Device::Event> events;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(device->run(0, nullptr).ok());
    events.push_back(device->record());
  }
  const std::span<char> count = device->hostBuffer(8).take();
  ASSERT_TRUE(device->download(0, count).ok());
  ASSERT_TRUE(device->wait(events[3]).ok()); // its event was recorded again since
  ASSERT_TRUE(device->wait(events[199]).ok());
  EXPECT_NE(count[0], static_cast<char>(200)); // the copy came later
  ASSERT_TRUE(device->wait(device->record()).ok());
  EXPECT_EQ(count[0], static_cast<char>(200));
}

TEST(CudaDevice, MayBeCalledByAnotherThread) {
  CudaRun run;
  std::thread([&] { run.train(2); }).join();
  LinearRun cpu;
  cpu.train(2);
  EXPECT_EQ(run.stateBytes(), cpu.stateBytes());
}

TEST(CudaDevice, CardsDoNotShareMemory) {
  const FakeVariable devices("DEVICES", "2");
  const Program program = ptxProgram(markPtx(), {"mark"});
  auto first = CudaDevice::create(program, markPtx(), 0).take();
  auto second = CudaDevice::create(program, markPtx(), 1).take();
  EXPECT_EQ(second->card().number, 1);
  ASSERT_TRUE(first->fill(0, 1, 1).ok());
  ASSERT_TRUE(second->fill(0, 1, 2).ok());
  char read = 0;
  ASSERT_TRUE(first->download(0, {&read, 1}).ok());
  ASSERT_TRUE(first->wait(first->record()).ok());
  EXPECT_EQ(read, 1);
}

TEST(CudaDevice, GivesEverythingBack) {
  const Record record;
  {
    CudaRun run;
    run.train(2);
    ASSERT_TRUE(run.device->hostBuffer(100).ok());
  }
  EXPECT_EQ(record.count("cuMemAlloc_v2"), 2) << "arena and staging";
  for (const auto& [takes, gives] :
       {std::pair{"cuMemHostAlloc", "cuMemFreeHost"}, std::pair{"cuMemAlloc", "cuMemFree_v2"},
        std::pair{"cuStreamCreate", "cuStreamDestroy"},
        std::pair{"cuStreamEndCapture", "cuGraphDestroy"},
        std::pair{"cuGraphInstantiate", "cuGraphExecDestroy"},
        std::pair{"cuEventCreate", "cuEventDestroy"}, std::pair{"cuModuleLoad", "cuModuleUnload"},
        std::pair{"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease"}}) {
    EXPECT_GE(record.count(takes), 1) << takes;
    EXPECT_EQ(record.count(takes), record.count(gives)) << takes;
  }
  EXPECT_EQ(record.count("# "), 26) << "only launches that ran";
  for (const std::string& line : record.lines())
    EXPECT_TRUE(line.starts_with("# ") || line.ends_with("CUDA_SUCCESS")) << line;
}

std::string addPtx() {
  return ptxHeader() + ptxEntry("add", "read 8, write 8", 1, 1,
                                "  ld.global.u64 %d0, [%p0];\n  add.s64 %d0, %d0, %p2;\n"
                                "  st.global.u64 [%p1], %d0;\n");
}

/// Three commands with two temporaries at one offset, the second in the place of the first: adds 1
/// to the input, 10 to the first, and 100 to the second for the output.
Program inPlaceProgram() {
  Program program = ptxProgram(addPtx(), {"add"});
  const auto add = [](int64_t from, int64_t to, int64_t value) {
    Command command;
    command.operands = {{{from}, 8, Access::Read}, {{to}, 8, Access::Write}};
    command.scalars = {{value}};
    return command;
  };
  Function& function = program.functions[0];
  function.commands = {add(0, 512, 1), add(512, 512, 10), add(512, 256, 100)};
  function.temporaries = {{512, 8, 0, 1}, {512, 8, 1, 2}};
  Binding in;
  in.role = Binding::Role::Input, in.name = "x", in.dtype = DType::I64;
  in.offset = 0, in.bytes = 8;
  Binding out = in;
  out.role = Binding::Role::Output, out.name = "y", out.offset = 256;
  function.bindings = {in, out};
  return program;
}

TEST(CudaDevice, ASplitArenaHasAPlaceForEachPart) {
  const Program program = inPlaceProgram();
  setenv("TITAN_CUDA_SPLIT_ARENA", "1", 1);
  const Record record;
  auto device = CudaDevice::create(program, addPtx()).take();
  unsetenv("TITAN_CUDA_SPLIT_ARENA");
  EXPECT_EQ(record.count("cuMemAlloc_v2(8)"), 4); // x, y and two temporaries
  int64_t value = 1000;
  ASSERT_TRUE(device->upload(0, {reinterpret_cast<const char*>(&value), 8}).ok());
  for (int run = 0; run < 3; ++run) {
    ASSERT_TRUE(device->run(0, nullptr).ok());
    ASSERT_TRUE(device->download(256, {reinterpret_cast<char*>(&value), 8}).ok());
    ASSERT_TRUE(device->wait(device->record()).ok());
    EXPECT_EQ(value, 1111);
  }
  EXPECT_EQ(textOf(device->fill(512, 8, 0)),
            "exit 2: TITAN_CUDA_SPLIT_ARENA=1: bytes [512, 520) of the arena are of no single "
            "state or binding: leave the variable out for --poison and compare");
}

} // namespace
} // namespace titan
