#include "interrupts.h"

#include <csignal>

#include <gtest/gtest.h>

namespace hearth::app {
namespace {

TEST(Interrupts, AreAnEventUntilCleared) {
  Interrupts interrupts;
  EXPECT_FALSE(interrupts.happened());
  std::raise(SIGINT);
  EXPECT_TRUE(interrupts.happened());
  interrupts.clear();
  EXPECT_FALSE(interrupts.happened());
}

// Of a half-written file: `kill` has to find its end as Ctrl-C does.
TEST(Interrupts, HearTheWishToEndTheProcessWhereAsked) {
  const Interrupts interrupts(Interrupts::Of::ctrl_c_and_termination);
  std::raise(SIGTERM);
  EXPECT_TRUE(interrupts.happened());
}

TEST(InterruptsDeathTest, LeaveTheWishToEndTheProcessAloneOtherwise) {
  EXPECT_EXIT(
      {
        const Interrupts interrupts;
        std::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace hearth::app
