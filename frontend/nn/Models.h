// The models that Titan knows by name, and their options: `nn:gpt?layers=12,width=768`.
#pragma once

#include "frontend/nn/Model.h"

#include <map>
#include <span>
#include <string_view>

namespace titan::nn {

enum class OptionKind { Integer, Real, Flag, Word };

struct Option {
  std::string_view name;
  OptionKind kind;
  std::string_view otherwise; ///< the default, as one writes it
  std::string_view meaning;
  double least = 0;            ///< of numbers
  std::string_view words = {}; ///< of words and of numbers: what there is, "18|34|50"; empty: any
};

/// A value for each option of a model, each of its kind and in its range.
class OptionValues {
public:
  OptionValues() = default;
  explicit OptionValues(std::map<std::string, std::string, std::less<>> values)
      : values_(std::move(values)) {}

  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  bool flag(std::string_view name) const { return text(name) == "true"; }
  const std::string& text(std::string_view name) const { return values_.find(name)->second; }

private:
  std::map<std::string, std::string, std::less<>> values_;
};

struct KnownModel {
  std::string_view name;
  std::string_view summary; ///< a line for a list of models
  std::span<const Option> options;
  void (*build)(Model& model, const OptionValues& options);
  /// Sets what a starter recipe for the model has other than the defaults.
  void (*suggest)(Recipe& recipe, const OptionValues& options);
};

extern const KnownModel gptModel, llamaModel, mlpModel, resnetModel;

/// In alphabetical order.
std::span<const KnownModel* const> knownModels();

/// A model and its options as a command line names them.
struct ModelRequest {
  std::string text; ///< as it was given
  const KnownModel* model = nullptr;
  OptionValues options;
  bool help = false; ///< "nn:gpt?help": the table of options is asked for

  ModelFunction builder() const {
    return [model = model, options = options](Model& m) { model->build(m, options); };
  }
};

/// Does `text` ask for a model of this frontend ("nn:...")?
bool isModelRequest(std::string_view text);
/// Errors: Usage for an unknown model or option (with the nearest one), a missing, doubled or
/// mistyped value; BadInput for one out of range.
Result<ModelRequest> parseModelRequest(std::string_view text);

/// The table of the model's options: what `nn:gpt?help` prints.
std::string helpOf(const KnownModel& model);

} // namespace titan::nn
