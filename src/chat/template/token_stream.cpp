#include "chat/template/token_stream.h"

namespace hearth::chat {

std::string TokenStream::describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::data:
      return "text";
    case TokenKind::variable_begin:
      return "'{{'";
    case TokenKind::variable_end:
      return "'}}'";
    case TokenKind::block_begin:
      return "'{%'";
    case TokenKind::block_end:
      return "'%}'";
    case TokenKind::end:
      return "the end of the template";
    case TokenKind::string:
      return "a string";
    default:
      return format("'{}'", token.text);
  }
}

}  // namespace hearth::chat
