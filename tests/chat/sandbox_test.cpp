/// Hostile templates end with an error that names the line, in bounded time and memory.
#include <string>

#include <gtest/gtest.h>

#include "tests/chat/render.h"

namespace hearth::chat {
namespace {

/// Little enough to be reached quickly in builds with sanitizers.
constexpr Limits few_steps{.n_steps = 200'000};

constexpr Limits small_texts{.output_bytes = 1u << 20};

ErrorCode code_of(std::string_view source, const Limits& limits = {}) {
  const auto rendered = render(source, {}, limits);
  EXPECT_FALSE(rendered) << source;
  return rendered ? ErrorCode{} : rendered.error().code;
}

std::string repeated(std::string_view text, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) {
    all += text;
  }
  return all;
}

TEST(TemplateSandbox, StopsEndlessLoops) {
  const std::string loop = "{% for x in range(20000) %}";
  EXPECT_EQ(code_of(loop + loop + loop + "{% endfor %}{% endfor %}{% endfor %}", few_steps),
            ErrorCode::out_of_memory);
}

TEST(TemplateSandbox, StopsEndlessRecursion) {
  EXPECT_EQ(rendered_text("\n{% macro m() %}\n{{ m() }}{% endmacro %}{{ m() }}"),
            "error: chat template line 3: the template nests calls more than 64 deep");
  EXPECT_EQ(rendered_text("{% macro m() %}{{ [[[[[[[[m()]]]]]]]] }}{% endmacro %}{{ m() }}"),
            "error: chat template line 1: the template nests more than 300 levels deep");
  EXPECT_EQ(code_of("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
            ErrorCode::out_of_memory);
  EXPECT_EQ(code_of("{{ 'ab' | map(*(['map'] * 1000)) | list }}"), ErrorCode::out_of_memory);
}

TEST(TemplateSandbox, StopsHugeTexts) {
  EXPECT_EQ(rendered_text("{{ 'a' * 10**9 }}"),
            "error: chat template line 1: the template makes a text of more than 16777216 bytes");
  EXPECT_EQ(code_of("{{ 'a' | center(10**12) }}", small_texts), ErrorCode::out_of_memory);
  EXPECT_EQ(code_of("{{ '%999999999d' % 1 }}", small_texts), ErrorCode::out_of_memory);
  EXPECT_EQ(code_of("{{ '{:>2000000000}'.format(1) }}", small_texts), ErrorCode::out_of_memory);
  EXPECT_EQ(code_of("{{ 'a\nb' | indent(10**10) }}", small_texts), ErrorCode::out_of_memory);
  EXPECT_EQ(code_of("{{ ('a' * 10000).replace('a', 'b' * 10000) }}", small_texts),
            ErrorCode::out_of_memory);
  EXPECT_EQ(code_of("{{ ('a' * 10000).replace('', 'b' * 10000) }}", small_texts),
            ErrorCode::out_of_memory);
  EXPECT_EQ(code_of("{{ ('a' * 10000) | list | join('b' * 10000) }}", small_texts),
            ErrorCode::out_of_memory);
  EXPECT_EQ(code_of("{% for x in range(1000) %}{{ 'a' * 100000 }}{% endfor %}", small_texts),
            ErrorCode::out_of_memory);
  EXPECT_EQ(code_of("{% set ns = namespace(s='a') %}{% for x in range(100) %}"
                    "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
                    small_texts),
            ErrorCode::out_of_memory);
}

TEST(TemplateSandbox, BoundsTheMemoryOfAllValuesTogether) {
  Limits limits;
  limits.live_bytes = 1u << 20;
  const std::string_view hoarding =
      "{% set ns = namespace(all=[]) %}{% for x in range(100) %}"
      "{% set ns.all = ns.all + ['a' * 100000] %}{% endfor %}";
  EXPECT_EQ(code_of(hoarding, limits), ErrorCode::out_of_memory);
  EXPECT_EQ(code_of("{% set ns = namespace(all=[]) %}{% for x in range(100) %}"
                    "{% set ns.all = ns.all + [range(1000)] %}{% endfor %}",
                    limits),
            ErrorCode::out_of_memory);
  // The same amount one after the other is no problem.
  const std::string_view frugal = "{% for x in range(100) %}{% set a = 'a' * 100000 %}{% endfor %}";
  EXPECT_EQ(rendered_text(frugal, {}, limits), "");
}

TEST(TemplateSandbox, StopsHugeLists) {
  EXPECT_EQ(rendered_text("{{ range(10**12) | length }}"),
            "error: chat template line 1: the template makes a list of 1000000000000 items, more "
            "than 100000");
  EXPECT_EQ(code_of("{{ range(-9223372036854775807, 9223372036854775807) }}"),
            ErrorCode::out_of_memory);
  EXPECT_EQ(code_of("{{ [0] * 10**9 }}"), ErrorCode::out_of_memory);
  EXPECT_EQ(code_of("{{ ('a' * 1000000) | list }}"), ErrorCode::out_of_memory);
  EXPECT_EQ(code_of("{{ ('a,' * 1000000).split(',') }}"), ErrorCode::out_of_memory);
}

TEST(TemplateSandbox, StopsSharedListsThatUnfoldExponentially) {
  const std::string doubling =
      "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% "
      "endfor %}";
  EXPECT_EQ(code_of(doubling + "{{ ns.x }}", few_steps), ErrorCode::out_of_memory);
  EXPECT_EQ(code_of(doubling + "{{ ns.x | tojson }}", few_steps), ErrorCode::out_of_memory);
  const std::string twice =
      doubling +
      "{% set ns.y = [1] %}{% for i in range(60) %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}";
  EXPECT_EQ(code_of(twice + "{{ ns.x == ns.y }}", few_steps), ErrorCode::out_of_memory);
  EXPECT_EQ(code_of(twice + "{{ ns.x < ns.y }}", few_steps), ErrorCode::out_of_memory);
}

TEST(TemplateSandbox, StopsDeepValues) {
  const std::string_view nested =
      "{% set ns = namespace(x=[]) %}{% for i in range(90000) %}{% set ns.x = [ns.x] %}{% endfor "
      "%}";
  EXPECT_EQ(rendered_text(nested),
            "error: chat template line 1: the template nests lists or dicts more than 100 deep");
  EXPECT_EQ(code_of("{% set ns = namespace(x={}) %}{% for i in range(90000) %}"
                    "{% set ns.x = {'a': ns.x.get} %}{% endfor %}"),
            ErrorCode::out_of_memory);
}

TEST(TemplateSandbox, FreesCyclesAndLongChainsOfNamespaces) {
  EXPECT_EQ(rendered_text("{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = b %}"
                          "{% set a.self = [a] %}ok"),
            "ok");
  EXPECT_EQ(rendered_text("{% set ns = namespace() %}{% for i in range(50000) %}"
                          "{% set ns.x = namespace(x=ns.x) %}{% endfor %}ok"),
            "ok");
  EXPECT_EQ(rendered_text("{% set ns = namespace() %}{% for i in [1] %}{% set ns.l = loop %}"
                          "{% set x = loop.changed(loop) %}{% endfor %}{{ ns.l.length }}ok"),
            "0ok");
  EXPECT_EQ(rendered_text("{% set ns = namespace() %}{% macro m() %}{% macro k() %}x{% endmacro %}"
                          "{% set ns.k = k %}{% endmacro %}{{ m() }}{{ ns.k() }}"),
            "x");
}

TEST(TemplateSandbox, BoundsTheNumberOfNamespaces) {
  Limits limits;
  limits.n_objects = 1000;
  EXPECT_EQ(code_of("{% for i in range(2000) %}{% set x = namespace() %}{% endfor %}", limits),
            ErrorCode::out_of_memory);
}

TEST(TemplateSandbox, RefusesDeepSyntax) {
  for (const auto& [open, close] : {std::pair{"(", ")"},
                                    {"[", "]"},
                                    {"{1:", "}"},
                                    {"-", ""},
                                    {"not ", ""},
                                    {"f(", ")"},
                                    {"x[", "]"},
                                    {"1 if 1 else ", ""}}) {
    const std::string source = "{{ " + repeated(open, 20000) + "1" + repeated(close, 20000) + " }}";
    EXPECT_EQ(code_of(source), ErrorCode::invalid_file) << open;
  }
  EXPECT_EQ(code_of("{{ x" + repeated(".a", 20000) + " }}"), ErrorCode::invalid_file);
  EXPECT_EQ(code_of("{{ x" + repeated("|e", 20000) + " }}"), ErrorCode::invalid_file);
  EXPECT_EQ(code_of("{{ x" + repeated(" if 1", 20000) + " }}"), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(repeated("{% if 1 %}", 50000)), ErrorCode::invalid_file);
  EXPECT_EQ(code_of("{% set " + repeated("(", 20000) + "x"), ErrorCode::invalid_file);
}

TEST(TemplateSandbox, TakesLongButFlatSyntax) {
  EXPECT_EQ(rendered_text("{{ 0" + repeated(" + 1", 10000) + " }}"), "10000");
  EXPECT_EQ(rendered_text("{{ 'a'" + repeated(" ~ 'b'", 1000) + " }}"), "a" + repeated("b", 1000));
  EXPECT_EQ(
      rendered_text("{% if 0 %}" + repeated("{% elif 0 %}", 10000) + "{% else %}x{% endif %}"),
      "x");
}

TEST(TemplateSandbox, RefusesHugeSources) {
  EXPECT_EQ(code_of(std::string(2u << 20, 'a')), ErrorCode::invalid_file);
  EXPECT_EQ(code_of("{{ " + std::string(1000, 'a') + " }}"), ErrorCode::invalid_file);
  EXPECT_EQ(code_of("{% macro m(" + repeated("a,", 1000) + ") %}"), ErrorCode::invalid_file);
}

TEST(TemplateSandbox, FailsOnIntegerOverflowInsteadOfWrapping) {
  for (const char* expression :
       {"9223372036854775807 + 1", "-9223372036854775807 - 2", "9223372036854775807 * 2", "2 ** 63",
        "(-9223372036854775807 - 1) // -1", "-(-9223372036854775807 - 1)",
        "(-9223372036854775807 - 1) | abs", "[9223372036854775807, 1] | sum",
        "99999999999999999999", "3 ** 1000000000000"}) {
    EXPECT_EQ(code_of("{{ " + std::string(expression) + " }}"), ErrorCode::invalid_file)
        << expression;
  }
  EXPECT_EQ(rendered_text("{{ (-9223372036854775807 - 1) % -1 }}"), "0");
  EXPECT_EQ(rendered_text("{{ (-9223372036854775807 - 1) is divisibleby(-1) }}"), "True");
  EXPECT_EQ(rendered_text("{{ 'abc'[-9223372036854775807 - 1:9223372036854775807] }}"), "abc");
  EXPECT_EQ(rendered_text("{{ 'abc'[::9223372036854775807] }}{{ 'abc'[::-9223372036854775807] }}"),
            "ac");
}

TEST(TemplateSandbox, SearchesInLinearTime) {
  // Needle and haystack that make the naive search quadratic: 2 x 10^11 comparisons here.
  EXPECT_EQ(rendered_text("{{ ('a' * 300000 + 'b') in ('a' * 1000000) }}"), "False");
  EXPECT_EQ(rendered_text("{{ ('a' * 1000000).rfind('b' + 'a' * 300000) }}"), "-1");
  EXPECT_EQ(rendered_text("{{ ('a' * 1000000).rsplit('a' * 20) | length }}"), "50001");
}

TEST(TemplateSandbox, ChargesForComparingLongTexts) {
  const std::string long_texts =
      "{% set a = 'x' * 1000000 ~ 'a' %}{% set b = 'x' * 1000000 ~ 'b' %}";
  for (const char* expression :
       {"b in [a] * 50000", "b.startswith((a,) * 50000)", "([a] * 50000) | max",
        "([a] * 50000) | unique | list", "([a] * 50000) | select('eq', b) | list"}) {
    EXPECT_EQ(code_of(long_texts + "{{ " + expression + " }}"), ErrorCode::out_of_memory)
        << expression;
  }
  EXPECT_EQ(
      code_of(long_texts +
              "{% set d = {a: 1} %}{% for i in range(50000) %}{% set x = d[b] %}{% endfor %}"),
      ErrorCode::out_of_memory);
}

TEST(TemplateSandbox, HasNoWayToHostObjects) {
  for (const char* expression :
       {"''.__class__.__mro__", "range.__globals__.x", "(0).__class__.__base__", "[].__class__()",
        "m.__func__.x", "namespace.__init__.x", "cycler.__init__.x", "self.x", "lipsum.x",
        "config.x", "request.x"}) {
    EXPECT_EQ(code_of("{{ " + std::string(expression) + " }}"), ErrorCode::invalid_file)
        << expression;
  }
}

TEST(TemplateSandbox, RefusesTagsThatNeedOtherTemplates) {
  for (const char* tag :
       {"include 'x'", "import 'x' as y", "from 'x' import y", "extends 'x'", "block x"}) {
    EXPECT_EQ(code_of("{% " + std::string(tag) + " %}"), ErrorCode::unsupported) << tag;
  }
}

TEST(TemplateErrors, NameTheLineOfTheInnermostPlace) {
  EXPECT_EQ(rendered_text("a\n\n{{ missing.name }}"),
            "error: chat template line 3: 'missing' is undefined");
  EXPECT_EQ(rendered_text("{% macro m(x) %}\n{{ x.y.z }}\n{% endmacro %}\n{{ m({}) }}"),
            "error: chat template line 2: 'dict object' has no attribute 'y'");
  EXPECT_EQ(rendered_text("a\n{% if 1 %}\n{{ 1 + }}"),
            "error: chat template line 3: expected an expression, found '}}'");
  EXPECT_EQ(rendered_text("{% if 1 %}\n\nx"),
            "error: chat template line 3: expected '{% endif %}', found the end of the template");
  EXPECT_EQ(rendered_text("x\n{{ 'abc }}"),
            "error: chat template line 2: the string is never closed");
}

TEST(TemplateErrors, OfRaiseExceptionAreTheTemplatesOwnWords) {
  const auto rendered = render("\n{{ raise_exception('No user query: ' ~ 5) }}");
  ASSERT_FALSE(rendered);
  EXPECT_EQ(rendered.error(), (Error{ErrorCode::invalid_argument, "No user query: 5"}));
}

TEST(TemplateErrors, OfMissingFeaturesAreUnsupported) {
  EXPECT_EQ(rendered_text("{{ 'x' | from_json }}"),
            "error: chat template line 1: there is no filter named 'from_json'");
  EXPECT_EQ(code_of("{{ 'x' | from_json }}"), ErrorCode::unsupported);
  EXPECT_EQ(code_of("{{ 'x' is nonsense }}"), ErrorCode::unsupported);
}

}  // namespace
}  // namespace hearth::chat
