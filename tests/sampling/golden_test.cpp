// The whole chain against a numpy implementation: tests/golden/sampling/PROVENANCE.md.

#include <cstdint>
#include <filesystem>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/mapped_file.h"
#include "sampling/sampler.h"

namespace hearth::sampling {
namespace {

class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) : bytes_(bytes) {}

  template <class T>
  T next() {
    EXPECT_LE(offset_ + sizeof(T), bytes_.size());
    const T value = load<T>(bytes_.data(), offset_);
    offset_ += sizeof(T);
    return value;
  }

  [[nodiscard]] bool is_at_end() const { return offset_ == bytes_.size(); }

 private:
  Bytes bytes_;
  std::size_t offset_ = 0;
};

struct Case {
  SamplingParams params;
  std::vector<float> logits;
  std::vector<TokenId> tokens;
  std::size_t n_prompt = 0;
  std::int64_t position = 0;
  Choice expected;
};

Case read_case(ByteReader& reader, int n_vocab) {
  Case result;
  SamplingParams& params = result.params;
  for (double* field : {&params.temperature, &params.top_p, &params.min_p, &params.typical_p,
                        &params.repeat_penalty, &params.frequency_penalty, &params.presence_penalty,
                        &result.expected.log_probability}) {
    *field = reader.next<double>();
  }
  for (std::int64_t* field :
       {&params.top_k, &params.min_keep, &params.repeat_last_n, &result.position}) {
    *field = reader.next<std::int64_t>();
  }
  params.seed = reader.next<std::uint64_t>();
  params.count_scope = reader.next<int>() == 1 ? CountScope::output : CountScope::window;
  const int n_bias = reader.next<int>();
  const int n_history = reader.next<int>();
  result.n_prompt = static_cast<std::size_t>(reader.next<int>());
  result.expected.token = TokenId{reader.next<int>()};
  for (int i = 0; i < n_bias; ++i) {
    const TokenId token{reader.next<int>()};
    params.logit_bias.push_back({token, reader.next<double>()});
  }
  for (int i = 0; i < n_history; ++i) {
    result.tokens.push_back(TokenId{reader.next<int>()});
  }
  for (int i = 0; i < n_vocab; ++i) {
    result.logits.push_back(reader.next<float>());
  }
  return result;
}

TEST(SamplerGolden, ChoosesWhatTheNumpyImplementationChooses) {
  const auto file =
      MappedFile::open(std::filesystem::path(HEARTH_TESTS_DIR) / "golden/sampling/chains.golden");
  ASSERT_TRUE(file) << file.error().message;
  ByteReader reader(file->bytes());
  const int n_cases = reader.next<int>();
  const int n_vocab = reader.next<int>();
  ASSERT_EQ(n_cases, 300);
  Sampler sampler(static_cast<std::size_t>(n_vocab));
  for (int i = 0; i < n_cases; ++i) {
    const Case c = read_case(reader, n_vocab);
    ASSERT_TRUE(validate(c.params, n_vocab));
    const auto choice = sampler.sample(c.params, c.logits,
                                       {.tokens = c.tokens, .n_prompt = c.n_prompt}, c.position);
    ASSERT_TRUE(choice) << choice.error().message;
    EXPECT_EQ(choice->token, c.expected.token) << "case " << i;
    EXPECT_NEAR(choice->log_probability, c.expected.log_probability, 1e-5) << "case " << i;
  }
  EXPECT_TRUE(reader.is_at_end());
}

}  // namespace
}  // namespace hearth::sampling
