#include "frontend/nn/Models.h"

#include <gtest/gtest.h>

namespace titan::nn {
namespace {

Error refused(std::string_view text) {
  Result<ModelRequest> request = parseModelRequest(text);
  EXPECT_FALSE(request.ok()) << text;
  return request.ok() ? Error::internal("accepted") : request.takeError();
}

TEST(ModelRequest, OptionsHaveDefaults) {
  ModelRequest request = parseModelRequest("nn:gpt?layers=3,dropout=0.25,tied=false").take();
  EXPECT_EQ(request.model->name, "gpt");
  EXPECT_FALSE(request.help);
  EXPECT_EQ(request.options.integer("layers"), 3);
  EXPECT_EQ(request.options.integer("width"), 768);
  EXPECT_EQ(request.options.real("dropout"), 0.25);
  EXPECT_EQ(request.options.real("epsilon"), 1e-5);
  EXPECT_FALSE(request.options.flag("tied"));
  EXPECT_EQ(parseModelRequest("nn:mlp").take().options.text("activation"), "relu");
  EXPECT_EQ(parseModelRequest("nn:mlp?").take().options.integer("layers"), 2);
}

TEST(ModelRequest, DefaultsAreValues) {
  for (const KnownModel* model : knownModels())
    for (const Option& option : model->options) {
      const std::string text =
          fmt::format("nn:{}?{}={}", model->name, option.name, option.otherwise);
      EXPECT_TRUE(parseModelRequest(text).ok()) << text;
    }
}

TEST(ModelRequest, HelpListsEachOption) {
  for (const KnownModel* model : knownModels()) {
    EXPECT_TRUE(parseModelRequest(fmt::format("nn:{}?help", model->name)).take().help);
    const std::string help = helpOf(*model);
    for (const Option& option : model->options)
      EXPECT_NE(help.find(fmt::format("\n  {} ", option.name)), std::string::npos) << help;
  }
}

TEST(ModelRequest, WhatIsNoRequest) {
  struct {
    std::string_view text;
    ErrorCode code;
    std::string_view says;
  } cases[] = {
      {"nn:", ErrorCode::Usage, "nn: names no model; there are: gpt, llama, mlp, resnet"},
      {"nn:gtp", ErrorCode::Usage,
       "nn:gtp: no model of this name; did you mean 'gpt'? There are: gpt, llama, mlp, resnet"},
      {"nn:gpt?layer=1", ErrorCode::Usage,
       "nn:gpt: no option 'layer'; did you mean 'layers'? (nn:gpt?help lists them)"},
      {"nn:gpt?layers", ErrorCode::Usage, "nn:gpt: 'layers' has no value: layers=12"},
      {"nn:gpt?layers=", ErrorCode::Usage, "nn:gpt: 'layers' has no value: layers=12"},
      {"nn:gpt?layers=1,", ErrorCode::Usage,
       "nn:gpt: no option ''; did you mean 'tied'? (nn:gpt?help lists them)"},
      {"nn:gpt?layers=1,layers=1", ErrorCode::Usage, "nn:gpt: 'layers' is given twice"},
      {"nn:gpt?layers=two", ErrorCode::Usage, "nn:gpt: layers = two: an integer is expected"},
      {"nn:gpt?layers=1.5", ErrorCode::Usage, "nn:gpt: layers = 1.5: an integer is expected"},
      {"nn:gpt?layers=99999999999999999999", ErrorCode::Usage,
       "nn:gpt: layers = 99999999999999999999: an integer is expected"},
      {"nn:gpt?dropout=nan", ErrorCode::Usage, "nn:gpt: dropout = nan: a number is expected"},
      {"nn:gpt?dropout=-1", ErrorCode::BadInput, "nn:gpt: dropout = -1: at least 0 is expected"},
      {"nn:gpt?tied=yes", ErrorCode::Usage, "nn:gpt: tied = yes: true or false is expected"},
      {"nn:gpt?length=0", ErrorCode::BadInput, "nn:gpt: length = 0: at least 1 is expected"},
      {"nn:gpt?vocab=1", ErrorCode::BadInput, "nn:gpt: vocab = 1: at least 2 is expected"},
      {"nn:resnet?depth=20", ErrorCode::BadInput,
       "nn:resnet: depth = 20: there are 18, 34, 50, 101, 152"},
      {"nn:mlp?activation=selu", ErrorCode::BadInput,
       "nn:mlp: activation = selu: there are relu, gelu, tanh, silu"},
  };
  for (const auto& [text, code, says] : cases) {
    const Error error = refused(text);
    EXPECT_EQ(error.code(), code) << text;
    EXPECT_EQ(error.message(), says);
  }
}

} // namespace
} // namespace titan::nn
