#pragma once
/// The values a chat template computes with: JSON's kinds, plus undefined and host objects.
///
/// Values are cheap handles: text, lists and dicts are shared and never change after they are built
/// (the sandbox has no mutating methods), so a conversation is converted once and copied by
/// pointer.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "chat/template/text.h"

namespace hearth::chat {

class Value;
class Dict;
class Runtime;
struct Arguments;

/// Python's kinds of ordered collections. All are kept in full; templates can tell them apart.
enum class ListKind : std::uint8_t {
  list,
  tuple,      // prints with (), equals and extends only other tuples
  view,       // of a dict's keys, values or items: has a length, but no indices and no JSON
  generator,  // what filters like map and select give: not even a length, and always true
};

struct List {
  std::vector<Value> items;
  ListKind kind = ListKind::list;
  std::shared_ptr<const void> lease;  // returns the list's share of a render's memory; may be null

  [[nodiscard]] bool is_tuple() const { return kind == ListKind::tuple; }
  /// Whether items can be asked for by index.
  [[nodiscard]] bool is_indexed() const { return kind <= ListKind::tuple; }
};

/// Something with behaviour that lives for one render: a function, a macro, a namespace, the `loop`
/// variable. Templates see only what these functions return; no other host object exists.
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  /// Python's name of the kind, for messages and printing: "function", "namespace".
  [[nodiscard]] virtual std::string_view kind() const = 0;
  [[nodiscard]] virtual std::optional<Value> attribute(std::string_view name) const;
  /// False when this object's attributes cannot be set; only a namespace's can.
  virtual bool set_attribute(std::string_view name, Value value);
  [[nodiscard]] virtual bool is_callable() const { return false; }
  virtual Result<Value> call(Runtime& runtime, const Arguments& arguments);
  /// See Value::height().
  [[nodiscard]] virtual int height() const { return 0; }
  /// Lets go of every value held, so that objects that hold each other can be freed.
  virtual void release() {}
};

/// What a missing name or key evaluates to; prints as nothing, fails on most uses.
struct Undefined {
  std::shared_ptr<const std::string> reason;  // "'tools' is undefined"; never null
};

/// One value. Copies share text, lists, dicts and objects.
/// Scalars carry an origin as text does, so a number from the request still prints as untrusted
/// text.
class Value {
 public:
  using Data = std::variant<Undefined, std::monostate, bool, std::int64_t, double,
                            std::shared_ptr<const Text>, std::shared_ptr<const List>,
                            std::shared_ptr<const Dict>, std::shared_ptr<Object>>;

  Value() : data_(std::monostate{}) {}  // none
  Value(bool b, Origin origin = Origin::untrusted) : data_(b), origin_(origin) {}
  Value(std::int64_t i, Origin origin = Origin::untrusted) : data_(i), origin_(origin) {}
  Value(int i, Origin origin = Origin::untrusted) : Value(std::int64_t{i}, origin) {}
  Value(double d, Origin origin = Origin::untrusted) : data_(d), origin_(origin) {}
  Value(const void* pointer) = delete;  // which would become a bool
  Value(std::string text, Origin origin = Origin::untrusted);
  Value(const char* text, Origin origin = Origin::untrusted) : Value(std::string(text), origin) {}
  Value(Text text);
  Value(List list);
  Value(std::vector<Value> items) : Value(List{.items = std::move(items)}) {}
  Value(Dict dict);
  Value(std::shared_ptr<Object> object);

  static Value none(Origin origin);
  static Value undefined(std::string reason);
  static Value tuple(std::vector<Value> items) {
    return {List{std::move(items), ListKind::tuple, nullptr}};
  }
  /// A count or flag made by the interpreter itself.
  static Value trusted(std::int64_t i) { return {i, Origin::trusted}; }
  static Value trusted(bool b) { return {b, Origin::trusted}; }

  [[nodiscard]] bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  [[nodiscard]] bool is_none() const { return std::holds_alternative<std::monostate>(data_); }
  [[nodiscard]] bool is_string() const { return as_text() != nullptr; }

  /// Each returns null when the value is of another kind. The pointer lives as long as the value.
  [[nodiscard]] const bool* as_bool() const { return std::get_if<bool>(&data_); }
  [[nodiscard]] const std::int64_t* as_integer() const { return std::get_if<std::int64_t>(&data_); }
  [[nodiscard]] const double* as_real() const { return std::get_if<double>(&data_); }
  [[nodiscard]] const Text* as_text() const;
  [[nodiscard]] const List* as_list() const;
  [[nodiscard]] const Dict* as_dict() const;
  [[nodiscard]] Object* as_object() const;
  [[nodiscard]] const std::string* undefined_reason() const;

  /// Python's view of numbers: a bool is the integer 0 or 1.
  [[nodiscard]] std::optional<std::int64_t> to_integer() const;
  [[nodiscard]] std::optional<double> to_real() const;
  [[nodiscard]] bool is_number() const { return to_real().has_value(); }

  /// The origin of a scalar. (Text has origins per character; see Text.)
  [[nodiscard]] Origin origin() const { return origin_; }

  /// Marks text as already escaped for HTML: the `safe` filter. Only `+` looks at it, as in Python.
  [[nodiscard]] bool is_markup() const { return is_markup_; }
  [[nodiscard]] Value as_markup() const;

  /// Python's truth: none, undefined, false, zero and everything empty are false.
  [[nodiscard]] bool is_truthy() const;
  /// Python's type name, for messages: "str", "int", "dict".
  [[nodiscard]] std::string_view type_name() const;
  /// How deep lists, dicts and bound methods nest below this handle; a scalar or a text is 0.
  [[nodiscard]] int height() const { return height_; }
  /// Whether both handles point at the same thing: `is sameas`.
  [[nodiscard]] bool is_same(const Value& other) const;

 private:
  Data data_;
  Origin origin_ = Origin::untrusted;
  bool is_markup_ = false;
  int height_ = 0;
};

/// A mapping that keeps insertion order. Keys are strings, numbers, booleans or none.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  /// Null when absent. Errors never: a key that no dict can have is simply absent.
  [[nodiscard]] const Value* find(const Value& key) const;
  /// The same for a string key.
  [[nodiscard]] const Value* find_name(std::string_view name) const;

  /// Adds or replaces; a replaced entry keeps its place. Requires is_key(key).
  void set(const Value& key, Value value);

  [[nodiscard]] static bool is_key(const Value& key);
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  /// Keeps `lease` alive with the dict: see List::lease.
  void hold(std::shared_ptr<const void> lease) { lease_ = std::move(lease); }

 private:
  struct KeyLess {
    using is_transparent = void;
    bool operator()(const Value& a, const Value& b) const;
    bool operator()(const Value& a, std::string_view b) const;
    bool operator()(std::string_view a, const Value& b) const;
  };
  std::shared_ptr<const void> lease_;
  std::vector<Entry> entries_;
  std::map<Value, std::size_t, KeyLess> index_;
};

/// The deepest nesting of lists, dicts and bound methods that a template may build. Freeing and
/// printing recurse.
inline constexpr int max_value_height = 100;

}  // namespace hearth::chat
