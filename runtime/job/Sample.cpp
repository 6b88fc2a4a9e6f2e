#include "runtime/job/Sample.h"

#include "runtime/job/Evaluate.h"
#include "runtime/job/Sampler.h"
#include "runtime/job/TokenPredictor.h"

#include <cerrno>
#include <charconv>
#include <cstring>

namespace titan {
namespace {

constexpr int64_t byteVocabulary = 256;

std::vector<int64_t> bytesOf(std::string_view text) {
  std::vector<int64_t> tokens;
  for (char c : text)
    tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

/// "464, 2068 7586"
Result<std::vector<int64_t>> idsOf(std::string_view text, int64_t vocabulary) {
  std::vector<int64_t> tokens;
  constexpr std::string_view separators = ", \t\n";
  for (size_t at = text.find_first_not_of(separators); at != std::string_view::npos;
       at = text.find_first_not_of(separators, at)) {
    const std::string_view word = text.substr(at, text.find_first_of(separators, at) - at);
    int64_t token = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), token);
    const bool isNumber = error != std::errc::invalid_argument && end == word.data() + word.size();
    if (!isNumber)
      return Error::usage("--prompt: '{}' is no token id; the vocabulary is {} tokens, not bytes",
                          word, vocabulary);
    if (error != std::errc() || token < 0 || token >= vocabulary)
      return Error::usage("--prompt: token {} is not in [0, {})", word, vocabulary);
    tokens.push_back(token);
    at += word.size();
  }
  return tokens;
}

/// Tokens on stdout, as they come.
class TokenWriter {
public:
  explicit TokenWriter(bool bytes) : bytes_(bytes) {}

  Status write(int64_t token) {
    if (bytes_)
      std::fputc(static_cast<int>(token), stdout);
    else
      fmt::print("{}{}", std::exchange(first_, false) ? "" : " ", token);
    return flush();
  }
  Status finish() {
    std::fputc('\n', stdout);
    return flush();
  }

private:
  static Status flush() {
    if (std::fflush(stdout) != 0)
      return Error::environment("stdout cannot be written: {}", std::strerror(errno));
    return {};
  }

  bool bytes_;
  bool first_ = true;
};

Result<std::vector<int64_t>> promptTokens(const JobOptions& options, bool bytes,
                                          int64_t vocabulary) {
  if (bytes && options.prompt && options.prompt->empty())
    return Error::usage("--prompt is empty: a model continues at least one byte");
  if (bytes) // a text starts where a line starts
    return bytesOf(options.prompt.value_or("\n"));
  std::vector<int64_t> tokens = TITAN_TRY(idsOf(options.prompt.value_or(""), vocabulary));
  if (tokens.empty())
    return Error::usage("--prompt is needed: token ids in [0, {}), such as \"0 1\"", vocabulary);
  return tokens;
}

} // namespace

Status sampleJob(Session& session) {
  const JobOptions& options = session.options();
  Peers& peers = session.peers();
  TokenModel model =
      TITAN_TRY(peers.agree("the model", TokenModel::create(session.program(), session.recipe())));
  const bool bytes = model.vocabulary == byteVocabulary && !options.ids;
  std::vector<int64_t> tokens =
      TITAN_TRY(peers.agree("the prompt", promptTokens(options, bytes, model.vocabulary)));
  TITAN_TRY(startForReading(session));
  TokenPredictor predictor = TITAN_TRY(TokenPredictor::create(session, std::move(model)));
  Sampler sampler({.temperature = options.temperature,
                   .topK = options.topK,
                   .seed = static_cast<uint64_t>(options.sampleSeed)});

  TokenWriter writer(bytes);
  const auto write = [&](int64_t token) {
    return peers.isFirst() ? writer.write(token) : Status();
  };
  for (int64_t token : tokens)
    TITAN_TRY(write(token));
  for (int64_t i = 0; i < options.tokens; ++i) {
    const std::span<const float> logits = TITAN_TRY(predictor.next(tokens));
    const int64_t token = TITAN_TRY(sampler.draw(logits, static_cast<uint64_t>(i)));
    // All ranks run one text; should their logits differ, that of rank 0 counts.
    tokens.push_back(TITAN_TRY(peers.fromFirst("the next token", token)));
    TITAN_TRY(write(tokens.back()));
  }
  return peers.isFirst() ? writer.finish() : Status();
}

} // namespace titan
