#include "backend/gpu/emulator/fiber.h"

#include <array>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::backend::gpu::emulator {
namespace {

/// Fibers that take turns, each of which has run some way into a recursion.
struct Round {
  Fiber thread;
  std::array<Fiber, 3> fibers;
  std::size_t turn = 0;
  std::vector<std::size_t> log;
};
Round* round = nullptr;

/// Calls itself `depth` times and logs a number of every frame on the way back, a turn for each.
void count_down(std::size_t self, std::size_t depth) {
  std::array<std::size_t, 64> frame{};
  std::iota(frame.begin(), frame.end(), 100 * self + depth);
  if (depth > 0) {
    count_down(self, depth - 1);
  }
  round->log.push_back(frame.back() - 63);
  Fiber::switch_between(round->fibers[self], round->thread);
}

void run_fiber() {
  Fiber::entered();
  hide_accesses();
  for (;;) {
    count_down(round->turn, 3);
  }
}

TEST(Fiber, GoesOnWhereItStoodWithItsOwnStack) {
  const HiddenFromRaceDetection hidden;
  Round turns;
  round = &turns;
  for (unsigned i = 0; i < turns.fibers.size(); ++i) {
    turns.fibers[i].start(run_fiber, i);
  }
  for (int i = 0; i < 4; ++i) {
    for (turns.turn = 0; turns.turn < turns.fibers.size(); ++turns.turn) {
      Fiber::switch_between(turns.thread, turns.fibers[turns.turn]);
    }
  }
  EXPECT_THAT(turns.log, testing::ElementsAre(0, 100, 200, 1, 101, 201, 2, 102, 202, 3, 103, 203));
}

TEST(Fiber, MayBeDestroyedWhereItStandsOrBeforeItRan) {
  const HiddenFromRaceDetection hidden;
  for (int i = 0; i < 3; ++i) {
    Round turns;
    round = &turns;
    turns.fibers[0].start(run_fiber, 0);
    turns.fibers[1].start(run_fiber, 1);
    Fiber::switch_between(turns.thread, turns.fibers[0]);
    EXPECT_THAT(turns.log, testing::ElementsAre(0));
  }
}

}  // namespace
}  // namespace hearth::backend::gpu::emulator
