#pragma once
/// Rows of a step sorted by the experts that they chose, with activations laid out for products.

#include <array>
#include <cstdint>
#include <span>

#include "backend/cpu/carver.h"
#include "backend/cpu/kernels/kernel_set.h"
#include "backend/cpu/packed_weights.h"

namespace hearth::backend::cpu {

/// The matrices of all experts for one product.
struct ExpertMatrices {
  DType dtype;
  WeightMatrix weights;
  std::int64_t row_bytes;
  std::int64_t n_in;
  std::int64_t rows_per_expert;
  std::int64_t first_row;
  std::int64_t n_out;
  int activation_block;  // 0: float activations
};

/// One of the products that a step needs: the slot of a row, and the expert chosen for it.
struct Pair {
  std::int64_t index;  // row * n_used + slot
  std::int64_t expert;
};

/// The pairs of a step sorted by expert, then by row. Lives in scratch.
struct PairOrder {
  std::int32_t* begins;  // [n_experts + 1]: where an expert's pairs begin in `pairs`
  std::int32_t* pairs;   // [n_pairs], pair indices
  std::int32_t* places;  // [n_pairs], by pair index: its place in `pairs`

  PairOrder(Carver& carver, std::int64_t n_experts, std::int64_t max_pairs);

  /// Sorts by the routing [n_rows, 2 n_used] of a step.
  void sort(const float* routing, std::int64_t n_rows, std::int64_t n_used,
            std::int64_t n_experts) const;

  [[nodiscard]] std::int64_t n_rows_of(std::int64_t expert) const {
    return begins[expert + 1] - begins[expert];
  }
};

/// How the activations of pairs lie, in every form that some products need, those of one expert
/// together.
class GatheredRows {
 public:
  /// The products have inputs of one length.
  explicit GatheredRows(std::span<const ExpertMatrices> products);

  /// Memory of one run.
  struct Store {
    float* values = nullptr;                 // [places, n_in]
    std::array<ActivationStep*, 2> steps{};  // by activation block; of each expert [n_steps][rows]
  };
  [[nodiscard]] Store carve(Carver& carver, std::int64_t n_places) const;

  /// Puts x [n_in] where `pair` belongs.
  void put(const KernelSet& kernels, const Store& store, const PairOrder& order, const Pair& pair,
           const float* x) const;
  /// Puts what pair `from` has where pair `to` belongs.
  void copy(const Store& store, const PairOrder& order, const Pair& from, const Pair& to) const;

  /// The rows of `expert` for a product.
  [[nodiscard]] ActivationRows rows(const Store& store, const PairOrder& order, std::int64_t expert,
                                    const ExpertMatrices& product) const;

 private:
  [[nodiscard]] std::int64_t n_steps() const;
  [[nodiscard]] ActivationStep* first_step(const Store& store, std::size_t form,
                                           const PairOrder& order, std::int64_t expert) const;
  /// Its steps follow each other at a distance of as many as its expert has rows.
  [[nodiscard]] ActivationStep* steps_of(const Store& store, std::size_t form,
                                         const PairOrder& order, const Pair& pair) const;

  std::int64_t n_in_;
  bool needs_values_ = false;
  std::array<bool, 2> needs_steps_{};
};

}  // namespace hearth::backend::cpu
