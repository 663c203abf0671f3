#include "graph/ops/all_ops.h"

#include <cctype>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace hearth::graph {
namespace {

/// "rms_norm" -> "RmsNorm"; "matmul" -> "Matmul"
std::string suite_of(std::string_view op) {
  std::string suite;
  bool upper = true;
  for (const char c : op) {
    if (c != '_') {
      suite += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    }
    upper = c == '_';
  }
  return suite;
}

template <class... Ops>
std::vector<std::string_view> names_of(const std::variant<Ops...>* /*list*/) {
  return {Ops::name...};
}

TEST(AllOps, HaveATestSuiteEachAndNamesOfTheirOwn) {
  std::set<std::string> suites;
  const auto& tests = *testing::UnitTest::GetInstance();
  for (int i = 0; i < tests.total_test_suite_count(); ++i) {
    suites.insert(tests.GetTestSuite(i)->name());
  }
  std::set<std::string_view> seen;
  for (const auto name : names_of(static_cast<const AnyOp*>(nullptr))) {
    EXPECT_TRUE(suites.contains(suite_of(name))) << name << " has no tests";
    EXPECT_TRUE(seen.insert(name).second) << name << " occurs twice";
  }
}

}  // namespace
}  // namespace hearth::graph
