#include "runtime/job/DeviceKind.h"

#include "runtime/data/Loader.h"
#include "runtime/device/cpu/OneDnn.h"

#include <algorithm>
#include <charconv>

namespace titan {
namespace {

/// What runs faster first.
const DeviceKind* const kinds[] = {&cudaKind, &cpuKind};

const DeviceKind* findKind(std::string_view name) {
  for (const DeviceKind* kind : kinds)
    if (kind->name == name)
      return kind;
  return nullptr;
}

/// What --device calls the CPU where it walks the table of a card.
constexpr const char* reference = "reference";

bool hasHostKernels(const Program& program) {
  return std::ranges::any_of(program.images,
                             [](const Image& image) { return image.kind == Image::Kind::Object; });
}

Result<const DeviceKind*> kindOf(const Program& program) {
  if (const DeviceKind* kind = findKind(program.target.kind))
    return kind;
  std::vector<std::string> known;
  for (const DeviceKind* kind : kinds)
    known.emplace_back(kind->name);
  return Error::environment("the job is compiled for {}, and this version runs jobs for {}",
                            program.target.kind, fmt::join(known, ", "));
}

/// The first program that this machine can run, in the order of the kinds.
Result<ChosenProgram> chooseRunnable(std::span<const Program> programs) {
  ChosenProgram chosen;
  for (const DeviceKind* kind : kinds)
    for (chosen.index = 0; chosen.index < programs.size(); ++chosen.index) {
      const Program& program = programs[chosen.index];
      if (program.target.kind != kind->name)
        continue;
      chosen.device = kind->name;
      Status fits = kind->check(program, 0);
      if (fits.ok())
        return chosen;
      chosen.note = fmt::format("not on {}: {}", kind->name, fits.error().message());
    }
  return Error::environment("{}", chosen.note.empty() ? "the job has no program" : chosen.note);
}

} // namespace

Result<DeviceWish> DeviceWish::parse(const std::string& text) {
  if (text == "auto")
    return DeviceWish();
  DeviceWish wish;
  const size_t colon = text.find(':');
  wish.kind = text.substr(0, colon);
  bool isKnown = findKind(wish.kind) != nullptr;
  if (colon != std::string::npos) {
    const char *first = text.data() + colon + 1, *last = text.data() + text.size();
    const auto [end, failure] = std::from_chars(first, last, wish.number);
    isKnown =
        isKnown && wish.kind != "cpu" && failure == std::errc() && end == last && wish.number >= 0;
  }
  if (!isKnown && text != reference)
    return Error::usage("--device={}: use auto, cpu, cuda or cuda:N", text);
  return wish;
}

Result<ChosenDevice> chooseDevice(const DeviceRequest& request) {
  return findKind(request.device)->open(request);
}

Result<ChosenProgram> chooseProgram(std::span<const Program> programs, const DeviceWish& wish) {
  if (wish.kind.empty() && programs.size() == 1)
    return ChosenProgram{0, TITAN_TRY(kindOf(programs[0]))->name, {}};
  if (wish.kind.empty())
    return chooseRunnable(programs);
  if (wish.kind == reference) {
    for (size_t i = 0; i < programs.size(); ++i)
      if (programs[i].target.kind != cpuKind.name && hasHostKernels(programs[i]))
        return ChosenProgram{i, cpuKind.name, {}};
    return Error::environment("--device=reference: the job has no reference kernels: compile it "
                              "with --target=cuda --reference-kernels");
  }
  std::vector<std::string> targets;
  for (size_t i = 0; i < programs.size(); ++i) {
    if (programs[i].target.kind == wish.kind)
      return ChosenProgram{i, wish.kind, {}};
    targets.push_back(programs[i].target.kind);
  }
  return Error::environment("--device={0}: the job is compiled for {1}: compile it with "
                            "--target={0}",
                            wish.kind, fmt::join(targets, ", "));
}

Status checkMachine(const Program& program, const std::string& device, int64_t number) {
  return findKind(device)->check(program, number);
}

nlohmann::ordered_json describeMachine(const Program& program, const DescribeRequest& request) {
  return findKind(program.target.kind)->describe(program, request);
}

std::string describeMachineText(const Program& program, const nlohmann::ordered_json& info) {
  return findKind(program.target.kind)->describeText(info);
}

std::optional<DeviceMemory> deviceMemory(const Program& program) {
  const DeviceKind* kind = findKind(program.target.kind);
  return kind->memory ? std::optional(kind->memory(program)) : std::nullopt;
}

DType productType(const Program& program) {
  const bool readsBf16 = std::ranges::any_of(program.libraryCalls, [](const LibraryCall& call) {
    return call.routine == LibraryRoutine::Gemm && call.gemm.a == DType::BF16;
  });
  return readsBf16 ? DType::BF16 : DType::F32;
}

OutsideBytes outsideBytes(const Program& program, int threads, bool library) {
  OutsideBytes outside;
  if (library && !program.libraryCalls.empty() && program.target.kind == cpuKind.name)
    outside.gemm = threads * OneDnn::outsideBytesPerThread;
  int64_t batch = 0;
  if (const Function* step = program.findFunction("step"))
    for (const Binding& binding : step->bindings)
      if (binding.role == Binding::Role::Input)
        batch += binding.bytes;
  const bool travels = program.target.kind != cpuKind.name;
  outside.batches =
      (PrefetchLoader::depthFor(batch) + (travels ? PrefetchLoader::mostOnTheWay : 0)) * batch;
  return outside;
}

} // namespace titan
