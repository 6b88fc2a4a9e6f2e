#include "runtime/device/cuda/CardAttention.h"

#include "runtime/device/cuda/AttentionTrial.h"

#include <algorithm>

namespace titan::cuda {
namespace {

using Mode = AttentionRequest::Mode;

bool isAttention(const LibraryCall& call) { return call.routine == LibraryRoutine::Attention; }

std::string textOf(const AttentionView& view) {
  return fmt::format("{}+{}:{},{},{}", view.operand, view.offset, view.batch, view.row, view.head);
}

/// What decides which plans there are, as text.
std::string keyOf(const LibraryCall& call) {
  const Attention& a = call.attention;
  std::string views;
  for (const AttentionView* view : {&a.query, &a.key, &a.value, &a.result})
    views += " " + textOf(*view);
  if (a.backward)
    for (const AttentionView* view : {&a.dresult, &a.dquery, &a.dkey, &a.dvalue})
      views += " " + textOf(*view);
  return fmt::format("{} [{}, {} / {}, {}, {}, {} / {}] {}{} scale {}, views{}, {} bytes of "
                     "workspace",
                     a.backward ? "backward" : "forward", a.batch, a.heads, a.keyHeads, a.queries,
                     a.keys, a.width, a.valueWidth, name(a.element), a.causal ? " causal" : "",
                     a.scale, views, call.workspace);
}

/// The library reads 16 bytes at once.
bool isAligned(const Program& program, uint32_t call) {
  constexpr int64_t atOnce = 16;
  int64_t bits = 0;
  for (const Function& function : program.functions)
    for (const Command& command : function.commands)
      if (command.kind == CommandKind::Library && command.target == call)
        for (const Operand& operand : command.operands) {
          bits |= operand.address.base;
          for (const Affine::Term& term : operand.address.terms)
            bits |= term.stride;
        }
  return bits % atOnce == 0;
}

} // namespace

bool hasAttentionCalls(const Program& program) {
  return std::ranges::any_of(program.libraryCalls, isAttention);
}

Result<CardAttention> CardAttention::open(const Driver& driver, const Card& card,
                                          const Program& program, const AttentionRequest& request) {
  CardAttention attention(driver, program, request);
  if (request.mode == Mode::Generated || !hasAttentionCalls(program))
    return attention;
  Result<std::unique_ptr<AttentionLibrary>> library = request.load(card);
  if (!library.ok()) {
    if (request.mode == Mode::Library)
      return library.takeError();
    attention.notes_.push_back("attention is generated: " + library.error().message());
    return attention;
  }
  attention.library_ = library.take();
  attention.choices_.library = libraryName;
  attention.choices_.version = attention.library_->version();
  attention.choices_.device = fmt::format("{}, {}", card.name, card.capability.arch());
  attention.compareSaved();
  return attention;
}

void CardAttention::compareSaved() {
  const LibraryChoices* saved = request_->saved;
  if (saved && saved->library == libraryName && !saved->fit(choices_))
    notes_.push_back(fmt::format("the run's attention was planned for {}, and here is {}: it is "
                                 "planned anew, and the bits may differ from step {} on",
                                 saved->text(), choices_.text(), request_->savedStep + 1));
}

const std::string* CardAttention::savedFor(const std::string& key) const {
  return request_->saved ? request_->saved->find(key, choices_) : nullptr;
}

Status CardAttention::choose(std::span<const AttentionPlace> places, CUstream stream) {
  if (!isOpen())
    return {};
  plans_.resize(places.size());
  Result<BitsDigest> made = BitsDigest::create(*driver_);
  if (!made.ok()) {
    if (request_->mode != Mode::IfThere)
      return made.takeError();
    notes_.push_back("attention is generated, since the library's cannot be tested: " +
                     made.error().message());
    library_.reset();
    return {};
  }
  const BitsDigest digest = made.take();
  for (uint32_t call = 0; call < places.size(); ++call)
    if (places[call].generate && isAttention(program_->libraryCalls[call]))
      TITAN_TRY(chooseOne(call, places[call], digest, stream));
  if (!refused_.empty())
    notes_.push_back(fmt::format("{} of {} attention calls are generated, since {} {} does not "
                                 "compute them: {}",
                                 refused_.size(), choices_.algorithms.size(), libraryName,
                                 choices_.version, refused_.front()));
  return {};
}

Status CardAttention::chooseOne(uint32_t index, const AttentionPlace& place,
                                const BitsDigest& digest, CUstream stream) {
  const LibraryCall& call = program_->libraryCalls[index];
  const std::string key = keyOf(call);
  choices_.algorithms[key] = LibraryChoices::generated;
  const auto refuse = [&](const std::string& why) {
    refused_.push_back(fmt::format("'{}': {}", call.label, why));
    return Status();
  };
  const std::string* saved = savedFor(key);
  if (saved && *saved == LibraryChoices::generated)
    return {};
  if (!isAligned(*program_, index))
    return refuse("an operand is not aligned to 16 bytes");
  const Result<std::vector<AttentionOffer>> offers =
      library_->offers(call.attention, call.workspace);
  if (!offers.ok())
    return refuse(offers.error().message());
  AttentionTrial trial(*driver_, digest, stream, call.attention, place);
  std::string name, why = "it knows no way";
  std::unique_ptr<AttentionPlan> plan =
      saved ? TITAN_TRY(admit(*offers, saved, call, trial, name, why)) : nullptr;
  if (saved && !plan)
    notes_.push_back(fmt::format("{} {} does not take the saved plan of '{}': another one is "
                                 "chosen, and the bits may differ",
                                 libraryName, choices_.version, call.label));
  if (!plan)
    plan = TITAN_TRY(admit(*offers, nullptr, call, trial, name, why));
  if (!plan)
    return refuse(why);
  choices_.algorithms[key] = name;
  plans_[index] = std::move(plan);
  return {};
}

Result<std::unique_ptr<AttentionPlan>>
CardAttention::admit(std::span<const AttentionOffer> offers, const std::string* wanted,
                     const LibraryCall& call, AttentionTrial& trial, std::string& name,
                     std::string& why) const {
  for (const AttentionOffer& offer : offers) {
    if (wanted && offer.name != *wanted)
      continue;
    if (offer.workspace > call.workspace) {
      why = fmt::format("{} needs {} bytes of workspace, and {} are planned", offer.name,
                        offer.workspace, call.workspace);
      continue;
    }
    Result<std::unique_ptr<AttentionPlan>> plan = offer.build();
    if (!plan.ok()) {
      why = fmt::format("{}: {}", offer.name, plan.error().message());
      continue;
    }
    const std::string refusal = TITAN_TRY(trial.refusal(**plan));
    if (refusal.empty()) {
      name = offer.name;
      return plan;
    }
    why = fmt::format("{} {}", offer.name, refusal);
  }
  return std::unique_ptr<AttentionPlan>();
}

} // namespace titan::cuda
