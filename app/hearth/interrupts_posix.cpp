#include <atomic>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/assert.h"
#include "interrupts.h"

namespace hearth::app {
namespace {

// A signal handler reaches nothing but globals.
std::atomic<int> handler_pipe = -1;
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int /*number*/) {
  const int saved_errno = errno;
  const char byte = 0;
  // A full pipe is fine: it already says what there is to say.
  [[maybe_unused]] const auto written = write(handler_pipe, &byte, 1);
  errno = saved_errno;
}

void set_handler(Interrupts::Of of, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  if (of == Interrupts::Of::ctrl_c_and_termination) {
    sigaction(SIGTERM, &action, nullptr);
  }
}

}  // namespace

Interrupts::Interrupts(Of of) : of_(of) {
  HEARTH_ASSERT(handler_pipe == -1);
  HEARTH_ASSERT(pipe(pipe_) == 0);
  for (const int end : pipe_) {
    fcntl(end, F_SETFL, O_NONBLOCK);
    fcntl(end, F_SETFD, FD_CLOEXEC);
  }
  handler_pipe = pipe_[1];
  set_handler(of_, on_signal);
}

Interrupts::~Interrupts() {
  set_handler(of_, SIG_DFL);
  handler_pipe = -1;
  close(pipe_[0]);
  close(pipe_[1]);
}

bool Interrupts::happened() const {
  pollfd event{.fd = pipe_[0], .events = POLLIN, .revents = 0};
  return poll(&event, 1, 0) > 0;
}

void Interrupts::clear() {
  char bytes[16];
  while (read(pipe_[0], bytes, sizeof bytes) > 0) {
  }
}

}  // namespace hearth::app
