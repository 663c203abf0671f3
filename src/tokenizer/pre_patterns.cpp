// The expressions are those of the tokenizers that the names were given to; see
// docs/formats/tokenizers.md. A new pre-tokenizer is one entry of `pre_tokenizers`.

#include "tokenizer/pre_patterns.h"

#include <algorithm>

#include "base/fail.h"
#include "tokenizer/vocabulary_check.h"

namespace hearth::tokenizer {
namespace {

// Parts that several expressions share. Macros, because string literals join at compile time.
#define CONTRACTION R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define WORD R"([^\r\n\p{L}\p{N}]?\p{L}+)"
#define MARKS_AND_NEWLINES R"( ?[^\s\p{L}\p{N}]+[\r\n]*)"
#define MARKS_AND_SLASHES R"( ?[^\s\p{L}\p{N}]+[\r\n/]*)"
#define SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define GPT2 R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))"
#define QWEN2 CONTRACTION "|" WORD R"(|\p{N}|)" MARKS_AND_NEWLINES "|" SPACES

// A word in two forms, (lower | Title) and (UPPER | UPPERlower); caseless letters and marks are
// both.
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define TITLE_WORD R"([^\r\n\p{L}\p{N}]?)" UPPER "*" LOWER "+"
#define UPPER_WORD R"([^\r\n\p{L}\p{N}]?)" UPPER "+" LOWER "*"
#define GPT4O \
  TITLE_WORD CONTRACTION "?|" UPPER_WORD CONTRACTION R"(?|\p{N}{1,3}|)" MARKS_AND_SLASHES "|" SPACES

// Chinese characters and what deepseek lists with them.
#define DEEPSEEK_CJK R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)"

// Letters with case that existed when deepseek-llm wrote its list.
#define DEEPSEEK_LETTERS                                                                    \
  R"(\x{41}-\x{5A}\x{61}-\x{7A}\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA})"             \
  R"(\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377})"           \
  R"(\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5})"    \
  R"(\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"      \
  R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B})"                 \
  R"(\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D})"                 \
  R"(\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D})"          \
  R"(\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})"         \
  R"(\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC})"                 \
  R"(\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115})"          \
  R"(\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139})"  \
  R"(\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B})"          \
  R"(\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B})" \
  R"(\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF})"                 \
  R"(\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A})"                 \
  R"(\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2})"         \
  R"(\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943})"
#define BLOOM R"( ?[^(\s|.,!?…。，、।۔،)]+)"

constexpr std::array pre_tokenizers{
    PreTokenizer{.names = {"default"},
                 .stages = {R"([\p{P}\$\+<=>\^~\|]+)", GPT2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
    PreTokenizer{.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral",
                           "midm-2.0", "lfm2", "jina-v5-nano"},
                 .stages = {CONTRACTION "|" WORD R"(|\p{N}{1,3}|)" MARKS_AND_NEWLINES "|" SPACES},
                 .ignore_merges = true,
                 .add_bos = true},
    PreTokenizer{.names = {"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"},
                 .stages = {CONTRACTION "|" WORD R"(|\p{N}{1,3}|)" MARKS_AND_NEWLINES "|" SPACES}},
    PreTokenizer{.names = {"qwen2"}, .stages = {QWEN2}, .normalize_nfc = true},
    PreTokenizer{.names = {"deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan",
                           "solar-open", "grok-2"},
                 .stages = {QWEN2}},
    PreTokenizer{.names = {"qwen35"},
                 .stages = {CONTRACTION R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
                                        R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" SPACES},
                 .normalize_nfc = true},
    PreTokenizer{.names = {"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de",
                           "gigachat", "a.x-4.0", "mellum", "modern-bert", "exaone4", "mpt", "olmo",
                           "jais", "trillion", "granite-docling"},
                 .stages = {GPT2}},
    PreTokenizer{.names = {"jina-v1-en", "jina-v2-code", "roberta-bpe"},
                 .stages = {GPT2},
                 .add_separator = true},
    PreTokenizer{.names = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone",
                           "minerva-7b", "mellum2"},
                 .stages = {R"(\p{N})", GPT2}},
    PreTokenizer{.names = {"falcon"},
                 .stages = {R"([\p{P}\$\+<=>\^~\|`]+)", GPT2, "[0-9][0-9][0-9]"}},
    PreTokenizer{.names = {"deepseek-llm"},
                 .stages = {R"([\r\n])", R"(\s?[)" DEEPSEEK_LETTERS "]+",
                            R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E})"
                            R"(\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
                            // Published as \s+$, which is quadratic for long runs of spaces.
                            R"((?<!\s)\s++\z)", DEEPSEEK_CJK, R"(\p{N}+)"}},
    PreTokenizer{.names = {"deepseek-coder"},
                 .stages = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", DEEPSEEK_CJK, R"(\p{N})"}},
    PreTokenizer{
        .names = {"deepseek-v3", "hunyuan-dense", "joyai-llm"},
        .stages = {R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
                   R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)"
                   R"([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)" SPACES}},
    PreTokenizer{.names = {"tekken"},
                 .stages = {TITLE_WORD "|" UPPER_WORD R"(|\p{N}|)" MARKS_AND_SLASHES "|" SPACES},
                 .ignore_merges = true,
                 .add_bos = true},
    PreTokenizer{.names = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"},
                 .stages = {GPT4O}},
    PreTokenizer{
        .names = {"tiny_aya", "cohere2moe"},
        // Published as \d{1,3}(?=(?:\d{3})*\b), which is quadratic for long numbers.
        // The same in linear time: whole numbers; the digits before a last multiple of three.
        .stages = {R"((?<!\p{Nd})\p{Nd}++(?![\p{L}\p{M}\p{N}\p{Pc}]))",
                   R"(\A\p{Nd}{1,2}(?=(?:\p{Nd}{3})++\z))", GPT4O}},
    PreTokenizer{.names = {"seed-coder"},
                 .stages = {CONTRACTION "|" WORD R"(|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|)" SPACES}},
    PreTokenizer{.names = {"bailingmoe", "bailingmoe2", "llada-moe"},
                 .stages = {R"('(?i:[sdmt]|ll|ve|re)|)" WORD R"(|\p{N}|)" MARKS_AND_NEWLINES
                            R"(|\s*[\r\n]|\s+(?!\S)|\s+)"}},
    PreTokenizer{.names = {"minicpm5"},
                 .stages = {R"(\p{N}{1,3})",
                            CONTRACTION "|" WORD R"(|\p{N}+|)" MARKS_AND_NEWLINES "|" SPACES},
                 .ignore_merges = true},
    PreTokenizer{.names = {"bloom", "poro-chat", "gpt3-finnish"}, .stages = {BLOOM}},
    PreTokenizer{.names = {"viking"}, .stages = {BLOOM, R"(\p{N})"}},
    PreTokenizer{.names = {"gemma4", "granite-embed-multi-311m", "sarvam-moe"},
                 .stages = {R"([^\n]+|[\n]+)"},
                 .spelling = Spelling::visible_spaces},
    PreTokenizer{.names = {"whitespace"}, .stages = {R"(\S+)"}, .spelling = Spelling::characters},
};

#undef CONTRACTION
#undef WORD
#undef MARKS_AND_NEWLINES
#undef MARKS_AND_SLASHES
#undef SPACES
#undef GPT2
#undef QWEN2
#undef UPPER
#undef LOWER
#undef TITLE_WORD
#undef UPPER_WORD
#undef GPT4O
#undef DEEPSEEK_CJK
#undef DEEPSEEK_LETTERS
#undef BLOOM

/// Names whose rule no expression can state.
struct Unhandled {
  std::string_view name;
  std::string_view reason;
};
constexpr std::array unhandled{
    Unhandled{"kimi-k2", "it treats Han script apart"},
    Unhandled{"afmoe", "it groups digits by rules of its own"},
};

}  // namespace

Result<const PreTokenizer*> find_pre_tokenizer(std::string_view name) {
  const std::string_view wanted = name.empty() ? "default" : name;
  for (const PreTokenizer& pre_tokenizer : pre_tokenizers) {
    if (std::ranges::find(pre_tokenizer.names, wanted) != pre_tokenizer.names.end()) {
      return &pre_tokenizer;
    }
  }
  for (const Unhandled& known : unhandled) {
    if (known.name == wanted) {
      return fail(ErrorCode::unsupported, "pre: the pre-tokenizer {} is not handled yet: {}",
                  in_quotes(wanted), known.reason);
    }
  }
  return fail(ErrorCode::unsupported, "pre: no pre-tokenizer is known by the name {}",
              in_quotes(wanted));
}

const PreTokenizer* find_pre_tokenizer(std::span<const std::string_view> stages,
                                       bool ignore_merges) {
  std::array<std::string_view, 6> wanted;  // as the table has them: padded with empty ones
  if (stages.size() > wanted.size()) {
    return nullptr;
  }
  std::ranges::copy(stages, wanted.begin());
  const auto* found = std::ranges::find_if(pre_tokenizers, [&](const PreTokenizer& pre_tokenizer) {
    return pre_tokenizer.stages == wanted && pre_tokenizer.ignore_merges == ignore_merges &&
           pre_tokenizer.spelling == Spelling::byte_alphabet;
  });
  return found == pre_tokenizers.end() ? nullptr : found;
}

}  // namespace hearth::tokenizer
