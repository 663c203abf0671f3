#include "commands.h"

#include <array>

namespace hearth::app {
namespace {

constexpr std::array commands{
    Command{"run", "Chat with a model, or answer one prompt", declare_run},
    Command{"show", "Print what a model holds: metadata, tensors, types, sizes", declare_show},
    Command{"tokenize", "Turn text into token ids, or ids into text", declare_tokenize},
    Command{"bench", "Measure prefill and decode against the memory's read speed", declare_bench},
    Command{"perplexity", "Measure how well a model predicts a text", declare_perplexity},
    Command{"convert", "Write a Hugging Face folder as one GGUF file", declare_convert},
    Command{"selftest", "Compare what a device computes with the reference", declare_selftest},
    Command{"synth", "Write a model of random weights, to try a machine with", declare_synth},
};

}  // namespace

std::span<const Command> all_commands() {
  return commands;
}

}  // namespace hearth::app
