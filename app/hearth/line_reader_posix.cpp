#include <array>

#include <poll.h>
#include <unistd.h>

#include "line_reader.h"

namespace hearth::app {

LineReader::Event LineReader::next() {
  while (!take_line()) {
    if (at_end_) {
      return Event::end;
    }
    std::array<pollfd, 2> events{
        pollfd{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
        pollfd{.fd = interrupts_.descriptor(), .events = POLLIN, .revents = 0}};
    poll(events.data(), events.size(), -1);
    if (interrupts_.happened()) {
      buffer_.clear();
      return Event::interrupted;
    }
    if (events[0].revents != 0) {
      std::array<char, 4096> bytes;
      const auto n = read(STDIN_FILENO, bytes.data(), bytes.size());
      if (n > 0) {
        buffer_.append(bytes.data(), static_cast<std::size_t>(n));
      }
      at_end_ = n <= 0;
    }
  }
  return Event::line;
}

bool LineReader::take_line() {
  const auto end = buffer_.find('\n');
  if (end == std::string::npos && (!at_end_ || buffer_.empty())) {
    return false;
  }
  line_ = buffer_.substr(0, end);
  buffer_.erase(0, end == std::string::npos ? end : end + 1);
  return true;
}

}  // namespace hearth::app
