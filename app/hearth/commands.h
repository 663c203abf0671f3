#pragma once
/// The subcommands, one file each. A new one is a file, its line here and its line in commands.cpp.

#include <functional>
#include <span>

#include "base/result.h"
#include "console.h"

namespace CLI {
class App;
}

namespace hearth::app {

/// Runs a command whose options have been parsed; the value is the exit code.
using Action = std::function<Result<int>(Console&)>;

/// Each adds its options to `app`, the parser of the subcommand, and returns what to run.
Action declare_bench(CLI::App& app);
Action declare_convert(CLI::App& app);
Action declare_perplexity(CLI::App& app);
Action declare_run(CLI::App& app);
Action declare_selftest(CLI::App& app);
Action declare_show(CLI::App& app);
Action declare_synth(CLI::App& app);
Action declare_tokenize(CLI::App& app);

struct Command {
  const char* name;
  const char* summary;
  Action (*declare)(CLI::App& app);
};

/// In the order of the help text.
std::span<const Command> all_commands();

}  // namespace hearth::app
