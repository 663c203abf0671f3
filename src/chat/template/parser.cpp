#include "chat/template/parser.h"

#include <array>
#include <initializer_list>
#include <utility>

#include "chat/template/expression_parser.h"
#include "chat/template/token_stream.h"

namespace hearth::chat {
namespace {

// Released templates are under 20 KiB, and the tree takes up to 200 times the memory of its source.
constexpr std::size_t max_source_bytes = 1u << 18;

// Calls match arguments with parameters one by one.
constexpr std::size_t max_parameters = 100;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)), expressions_(tokens_) {}

  Result<Body> run() {
    HEARTH_ASSIGN(auto body, parse_body({}));
    if (!tokens_.at(TokenKind::end)) {
      return tokens_.unexpected("the end of the template");
    }
    return body;
  }

 private:
  using EndNames = std::initializer_list<std::string_view>;

  /// Statements up to the end of the template or a block tag named in `end_names`, whose name is
  /// then current.
  Result<Body> parse_body(EndNames end_names) {
    const DepthGuard guard(depth_);
    if (depth_ > max_syntax_depth) {
      return TokenStream::error(tokens_.line(), "the blocks nest too deep");
    }
    Body body;
    while (!tokens_.at(TokenKind::end)) {
      const Token& token = tokens_.take();
      if (token.kind == TokenKind::data) {
        body.push_back({token.line, Data{Text(token.text, Origin::trusted)}});
      } else if (token.kind == TokenKind::variable_begin) {
        HEARTH_TRY(parse_output(body, token.line));
      } else {
        for (const std::string_view name : end_names) {
          if (tokens_.at_name(name)) {
            return body;
          }
        }
        HEARTH_TRY(parse_statement(body));
        HEARTH_TRY(tokens_.expect(TokenKind::block_end, "'%}'"));
      }
    }
    if (end_names.size() > 0) {
      return tokens_.unexpected(format("'{{% {} %}}'", *end_names.begin()));
    }
    return body;
  }

  /// The body of a block whose opening tag ends here, and its closing tag up to the delimiter.
  Result<Body> parse_block(std::string_view end_name) {
    HEARTH_TRY(tokens_.expect(TokenKind::block_end, "'%}'"));
    HEARTH_ASSIGN(auto body, parse_body({end_name}));
    HEARTH_TRY(tokens_.expect_name(end_name));
    return body;
  }

  Result<void> parse_output(Body& body, int line) {
    Output output;
    HEARTH_ASSIGN(auto expression, expressions_.parse_tuple());
    output.expressions.push_back(std::move(expression));
    HEARTH_TRY(tokens_.expect(TokenKind::variable_end, "'}}'"));
    body.push_back({line, std::move(output)});
    return {};
  }

  Result<void> parse_statement(Body& body) {
    struct Tag {
      std::string_view name;
      Result<Statement::Node> (Parser::*parse)();
    };
    static constexpr std::array tags{Tag{"if", &Parser::parse_if},
                                     Tag{"for", &Parser::parse_for},
                                     Tag{"set", &Parser::parse_set},
                                     Tag{"macro", &Parser::parse_macro},
                                     Tag{"call", &Parser::parse_call_block},
                                     Tag{"filter", &Parser::parse_filter_block},
                                     Tag{"with", &Parser::parse_with},
                                     Tag{"generation", &Parser::parse_generation},
                                     Tag{"print", &Parser::parse_print},
                                     Tag{"break", &Parser::parse_break},
                                     Tag{"continue", &Parser::parse_continue}};
    static constexpr std::array<std::string_view, 6> unsupported_tags{
        "extends", "include", "import", "from", "block", "autoescape"};
    const int line = tokens_.line();
    HEARTH_ASSIGN(const auto name, tokens_.take_identifier());
    for (const Tag& tag : tags) {
      if (name == tag.name) {
        HEARTH_ASSIGN(auto node, (this->*tag.parse)());
        body.push_back({line, std::move(node)});
        return {};
      }
    }
    for (const std::string_view tag : unsupported_tags) {
      if (name == tag) {
        return fail(ErrorCode::unsupported, "chat template line {}: the tag '{}' is not supported",
                    line, name);
      }
    }
    return TokenStream::error(line, format("unexpected tag '{}'", name));
  }

  Result<Statement::Node> parse_if() {
    If statement;
    do {
      HEARTH_ASSIGN(auto condition, expressions_.parse_tuple(false));
      HEARTH_TRY(tokens_.expect(TokenKind::block_end, "'%}'"));
      HEARTH_ASSIGN(auto body, parse_body({"endif", "elif", "else"}));
      statement.branches.push_back({std::move(condition), std::move(body)});
    } while (tokens_.skip_name("elif"));
    if (tokens_.skip_name("else")) {
      HEARTH_TRY(tokens_.expect(TokenKind::block_end, "'%}'"));
      HEARTH_ASSIGN(statement.otherwise, parse_body({"endif"}));
    }
    HEARTH_TRY(tokens_.expect_name("endif"));
    return statement;
  }

  Result<Statement::Node> parse_for() {
    For loop;
    HEARTH_ASSIGN(loop.target, parse_target("in", false));
    HEARTH_TRY(tokens_.expect_name("in"));
    HEARTH_ASSIGN(loop.iterable, expressions_.parse_tuple(false, "recursive"));
    if (tokens_.skip_name("if")) {
      HEARTH_ASSIGN(loop.filter, expressions_.parse_expression());
    }
    loop.is_recursive = tokens_.skip_name("recursive");
    HEARTH_TRY(tokens_.expect(TokenKind::block_end, "'%}'"));
    ++n_open_loops_;
    HEARTH_ASSIGN(loop.body, parse_body({"endfor", "else"}));
    --n_open_loops_;
    if (tokens_.skip_name("else")) {
      HEARTH_TRY(tokens_.expect(TokenKind::block_end, "'%}'"));
      HEARTH_ASSIGN(loop.otherwise, parse_body({"endfor"}));
    }
    HEARTH_TRY(tokens_.expect_name("endfor"));
    return loop;
  }

  Result<Statement::Node> parse_set() {
    HEARTH_ASSIGN(auto target, parse_target({}, true));
    if (tokens_.skip_symbol("=")) {
      HEARTH_ASSIGN(auto value, expressions_.parse_tuple());
      return Set{std::move(target), std::move(value)};
    }
    HEARTH_ASSIGN(auto filter, expressions_.parse_filters(nullptr));
    HEARTH_ASSIGN(auto body, parse_block("endset"));
    return SetBlock{std::move(target), std::move(filter), std::move(body)};
  }

  Result<Statement::Node> parse_macro() {
    Macro macro;
    HEARTH_ASSIGN(macro.name, tokens_.take_identifier());
    HEARTH_ASSIGN(macro.parameters, parse_parameters());
    HEARTH_ASSIGN(macro.body, parse_function_body("endmacro"));
    return macro;
  }

  Result<Statement::Node> parse_call_block() {
    CallBlock block;
    if (tokens_.at_symbol("(")) {
      HEARTH_ASSIGN(block.parameters, parse_parameters());
    }
    const int line = tokens_.line();
    HEARTH_ASSIGN(block.call, expressions_.parse_expression());
    if (!std::holds_alternative<Call>(block.call->node)) {
      return TokenStream::error(line, "a call block needs a call");
    }
    HEARTH_ASSIGN(block.body, parse_function_body("endcall"));
    return block;
  }

  Result<Statement::Node> parse_filter_block() {
    HEARTH_ASSIGN(auto filter, expressions_.parse_filter(nullptr));
    HEARTH_ASSIGN(filter, expressions_.parse_filters(std::move(filter)));
    HEARTH_ASSIGN(auto body, parse_block("endfilter"));
    return FilterBlock{std::move(filter), std::move(body)};
  }

  Result<Statement::Node> parse_with() {
    With with;
    while (!tokens_.at(TokenKind::block_end)) {
      if (!with.assignments.empty()) {
        HEARTH_TRY(tokens_.expect_symbol(","));
      }
      HEARTH_ASSIGN(auto target, parse_target_item(false));
      HEARTH_TRY(tokens_.expect_symbol("="));
      HEARTH_ASSIGN(auto value, expressions_.parse_expression());
      with.assignments.emplace_back(std::move(target), std::move(value));
    }
    HEARTH_ASSIGN(with.body, parse_block("endwith"));
    return with;
  }

  Result<Statement::Node> parse_generation() {
    HEARTH_ASSIGN(auto body, parse_function_body("endgeneration"));
    return Scoped{std::move(body)};
  }

  Result<Statement::Node> parse_print() {
    Output output;
    while (!tokens_.at(TokenKind::block_end)) {
      if (!output.expressions.empty()) {
        HEARTH_TRY(tokens_.expect_symbol(","));
      }
      HEARTH_ASSIGN(auto expression, expressions_.parse_expression());
      output.expressions.push_back(std::move(expression));
    }
    return output;
  }

  Result<Statement::Node> parse_break() { return inside_loop("break", Break{}); }
  Result<Statement::Node> parse_continue() { return inside_loop("continue", Continue{}); }

  Result<Statement::Node> inside_loop(std::string_view tag, Statement::Node node) {
    if (n_open_loops_ == 0) {
      return TokenStream::error(tokens_.line(), format("'{}' outside of a loop", tag));
    }
    return node;
  }

  /// The body of a macro or of a block that Jinja compiles as one: loops around it are out of
  /// reach.
  Result<Body> parse_function_body(std::string_view end_name) {
    const int n_outer_loops = std::exchange(n_open_loops_, 0);
    HEARTH_ASSIGN(auto body, parse_block(end_name));
    n_open_loops_ = n_outer_loops;
    return body;
  }

  Result<std::vector<Parameter>> parse_parameters() {
    HEARTH_TRY(tokens_.expect_symbol("("));
    std::vector<Parameter> parameters;
    while (!tokens_.skip_symbol(")")) {
      if (!parameters.empty()) {
        HEARTH_TRY(tokens_.expect_symbol(","));
      }
      Parameter parameter;
      const int line = tokens_.line();
      HEARTH_ASSIGN(parameter.name, tokens_.take_identifier());
      if (tokens_.skip_symbol("=")) {
        HEARTH_ASSIGN(parameter.default_value, expressions_.parse_expression());
      } else if (!parameters.empty() && parameters.back().default_value) {
        return TokenStream::error(line, "a parameter without default follows one with a default");
      }
      parameters.push_back(std::move(parameter));
      if (parameters.size() > max_parameters) {
        return TokenStream::error(line, format("more than {} parameters", max_parameters));
      }
    }
    return parameters;
  }

  /// One target, or several with commas, up to `end_name` or '='.
  Result<Target> parse_target(std::string_view end_name, bool allows_attribute) {
    const int line = tokens_.line();
    std::vector<Target> items;
    do {
      const bool is_trailing_comma =
          !items.empty() && !end_name.empty() && tokens_.at_name(end_name);
      if (is_trailing_comma || tokens_.at_symbol("=") || tokens_.at_symbol(")")) {
        break;
      }
      HEARTH_ASSIGN(auto item, parse_target_item(allows_attribute));
      items.push_back(std::move(item));
      if (!tokens_.at_symbol(",") && items.size() == 1) {
        return std::move(items.front());
      }
    } while (tokens_.skip_symbol(","));
    if (items.empty()) {
      return tokens_.unexpected("a name to assign to");
    }
    Target target;
    target.line = line;
    target.items = std::move(items);
    return target;
  }

  Result<Target> parse_target_item(bool allows_attribute) {
    const DepthGuard guard(depth_);
    if (depth_ > max_syntax_depth) {
      return TokenStream::error(tokens_.line(), "the target nests too deep");
    }
    if (tokens_.skip_symbol("(")) {
      HEARTH_ASSIGN(auto target, parse_target({}, allows_attribute));
      HEARTH_TRY(tokens_.expect_symbol(")"));
      return target;
    }
    Target target;
    target.line = tokens_.line();
    HEARTH_ASSIGN(target.name, tokens_.take_identifier());
    static constexpr std::array<std::string_view, 6> constants{"true", "false", "none",
                                                               "True", "False", "None"};
    for (const std::string_view constant : constants) {
      if (target.name == constant) {
        return TokenStream::error(target.line, format("cannot assign to '{}'", constant));
      }
    }
    if (allows_attribute && tokens_.skip_symbol(".")) {
      HEARTH_ASSIGN(target.attribute, tokens_.take_identifier());
    }
    return target;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int depth_ = 0;
  int n_open_loops_ = 0;  // around the current place and inside the current macro
};

}  // namespace

Result<Body> parse_template(std::string_view source) {
  if (source.size() > max_source_bytes) {
    return fail(ErrorCode::invalid_file, "the chat template has {} bytes, more than {}",
                source.size(), max_source_bytes);
  }
  HEARTH_ASSIGN(auto tokens, tokenize(source));
  return Parser(std::move(tokens)).run();
}

}  // namespace hearth::chat
