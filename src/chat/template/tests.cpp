#include "chat/template/tests.h"

#include <algorithm>
#include <array>

#include "base/fail.h"
#include "chat/template/argument_types.h"
#include "chat/template/compare.h"
#include "chat/template/filters.h"
#include "chat/template/print.h"
#include "chat/template/sequence.h"
#include "chat/template/text_methods.h"

namespace hearth::chat {
namespace {

using Test = Result<bool> (*)(Runtime&, const Value&, const Arguments&);
using Property = bool (*)(const Value&);

/// A test without arguments that only looks at the value.
template <Property property>
Result<bool> property_test(Runtime& /*runtime*/, const Value& subject, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("this test", arguments, {}));
  return property(subject);
}

bool is_defined(const Value& v) {
  return !v.is_undefined();
}
bool is_undefined(const Value& v) {
  return v.is_undefined();
}
bool is_none(const Value& v) {
  return v.is_none();
}
bool is_boolean(const Value& v) {
  return v.as_bool() != nullptr;
}
bool is_true(const Value& v) {
  return v.as_bool() && *v.as_bool();
}
bool is_false(const Value& v) {
  return v.as_bool() && !*v.as_bool();
}
bool is_integer(const Value& v) {
  return v.as_integer() != nullptr;
}
bool is_float(const Value& v) {
  return v.as_real() != nullptr;
}
bool is_number(const Value& v) {
  return v.is_number();
}
bool is_string(const Value& v) {
  return v.is_string();
}
bool is_mapping(const Value& v) {
  return v.as_dict() != nullptr;
}
bool is_sequence(const Value& v) {
  return length(v).has_value() && (!v.as_list() || v.as_list()->is_indexed());
}
bool is_iterable(const Value& v) {
  return length(v).has_value() || v.as_list();
}
bool is_callable(const Value& v) {
  return v.as_object() && v.as_object()->is_callable();
}
bool is_escaped(const Value& v) {
  return v.is_markup();
}
bool is_filter_name(const Value& v) {
  return v.is_string() && has_filter(v.as_text()->bytes());
}
bool is_test_name(const Value& v) {
  return v.is_string() && has_test(v.as_text()->bytes());
}

template <bool (*is_case)(const Text&)>
Result<bool> case_test(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("this test", arguments, {}));
  HEARTH_ASSIGN(const Value text, to_string(runtime, subject));
  return is_case(*text.as_text());
}

/// Whether `subject` leaves `remainder` when divided by `divisor`, as Python's % does.
Result<bool> leaves(const Value& subject, std::int64_t divisor, std::int64_t remainder) {
  HEARTH_ASSIGN(const auto number, integer_or(subject, 0));
  if (divisor == 0) {
    return fail(ErrorCode::invalid_file, "division by zero");
  }
  // INT64_MIN % -1 overflows; every number is divisible by -1.
  const std::int64_t rest = divisor == -1 ? 0 : number % divisor;
  return (rest < 0 ? rest + std::abs(divisor) : rest) == remainder;
}

template <std::int64_t remainder>
Result<bool> parity_test(Runtime& /*runtime*/, const Value& subject, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("this test", arguments, {}));
  return leaves(subject, 2, remainder);
}

Result<bool> divisible_test(Runtime& /*runtime*/, const Value& subject,
                            const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("divisibleby", arguments, {"num"}, 1));
  HEARTH_ASSIGN(const auto divisor, integer_or(bound[0], 1));
  return leaves(subject, divisor, 0);
}

Result<bool> same_test(Runtime& /*runtime*/, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("sameas", arguments, {"other"}, 1));
  return subject.is_same(bound[0]);
}

Result<bool> in_test(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("in", arguments, {"seq"}, 1));
  return contains(runtime.budget(), bound[0], subject);
}

enum class Relation : std::uint8_t { eq, ne, lt, le, gt, ge };

template <Relation relation>
Result<bool> relation_test(Runtime& runtime, const Value& a, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("this test", arguments, {"other"}, 1));
  const Value& b = bound[0];
  Budget& budget = runtime.budget();
  switch (relation) {
    case Relation::eq:
    case Relation::ne:
      return equal(budget, a, b).transform([](bool is) {
        return is == (relation == Relation::eq);
      });
    case Relation::lt:
    case Relation::ge:
      return less(budget, a, b).transform([](bool is) { return is == (relation == Relation::lt); });
    default:
      return less(budget, b, a).transform([](bool is) { return is == (relation == Relation::gt); });
  }
}

struct NamedTest {
  std::string_view name;
  Test test;
};

constexpr std::array tests{
    NamedTest{"defined", property_test<is_defined>},
    NamedTest{"undefined", property_test<is_undefined>},
    NamedTest{"none", property_test<is_none>},
    NamedTest{"boolean", property_test<is_boolean>},
    NamedTest{"true", property_test<is_true>},
    NamedTest{"false", property_test<is_false>},
    NamedTest{"integer", property_test<is_integer>},
    NamedTest{"float", property_test<is_float>},
    NamedTest{"number", property_test<is_number>},
    NamedTest{"string", property_test<is_string>},
    NamedTest{"mapping", property_test<is_mapping>},
    NamedTest{"sequence", property_test<is_sequence>},
    NamedTest{"iterable", property_test<is_iterable>},
    NamedTest{"callable", property_test<is_callable>},
    NamedTest{"escaped", property_test<is_escaped>},
    NamedTest{"filter", property_test<is_filter_name>},
    NamedTest{"test", property_test<is_test_name>},
    NamedTest{"upper", case_test<is_upper>},
    NamedTest{"lower", case_test<is_lower>},
    NamedTest{"odd", parity_test<1>},
    NamedTest{"even", parity_test<0>},
    NamedTest{"divisibleby", divisible_test},
    NamedTest{"sameas", same_test},
    NamedTest{"in", in_test},
    NamedTest{"==", relation_test<Relation::eq>},
    NamedTest{"eq", relation_test<Relation::eq>},
    NamedTest{"equalto", relation_test<Relation::eq>},
    NamedTest{"!=", relation_test<Relation::ne>},
    NamedTest{"ne", relation_test<Relation::ne>},
    NamedTest{"<", relation_test<Relation::lt>},
    NamedTest{"lt", relation_test<Relation::lt>},
    NamedTest{"lessthan", relation_test<Relation::lt>},
    NamedTest{"<=", relation_test<Relation::le>},
    NamedTest{"le", relation_test<Relation::le>},
    NamedTest{">", relation_test<Relation::gt>},
    NamedTest{"gt", relation_test<Relation::gt>},
    NamedTest{"greaterthan", relation_test<Relation::gt>},
    NamedTest{">=", relation_test<Relation::ge>},
    NamedTest{"ge", relation_test<Relation::ge>},
};

const NamedTest* find_test(std::string_view name) {
  const auto at = std::find_if(tests.begin(), tests.end(),
                               [name](const NamedTest& test) { return test.name == name; });
  return at == tests.end() ? nullptr : &*at;
}

}  // namespace

bool has_test(std::string_view name) {
  return find_test(name) != nullptr;
}

Result<bool> apply_test(Runtime& runtime, std::string_view name, const Value& subject,
                        const Arguments& arguments) {
  const NamedTest* found = find_test(name);
  if (!found) {
    return fail(ErrorCode::unsupported, "there is no test named '{}'", name);
  }
  return found->test(runtime, subject, arguments);
}

}  // namespace hearth::chat
