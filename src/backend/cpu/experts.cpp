/// ExpertGate and ExpertDown: products in which each row of a step has experts of its own choice.
/// Pairs of row and slot are sorted by expert, and their activations laid side by side, so that an
/// expert's matrix meets all its rows at once. The threads share out the panels of every expert:
/// the work is even however the choice falls, and each result is one thread's alone.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "backend/cpu/carver.h"
#include "backend/cpu/expert_rows.h"
#include "backend/cpu/launch_kernel.h"
#include "base/checked.h"
#include "base/fail.h"
#include "graph/ops/router.h"
#include "quant/integer_form.h"
#include "quant/registry.h"

namespace hearth::backend::cpu {
namespace {

Result<ExpertMatrices> bind_matrices(const graph::ExpertMatMul& product,
                                     const BindContext& context) {
  const auto& [name, tensor, origin] = context.weights[graph::index(product.weight)];
  if (context.kernels.matmul_for(tensor.dtype, 1) == nullptr) {
    return fail(ErrorCode::unsupported, "tensor '{}': the CPU backend cannot multiply with type {}",
                name, quant::name(tensor.dtype));
  }
  const auto* layout = quant::integer_layout(tensor.dtype);
  HEARTH_ASSIGN(const auto matrix, context.packed.matrix(product.weight, product.n_out));
  return ExpertMatrices{.dtype = tensor.dtype,
                        .weights = matrix,
                        .row_bytes = quant::row_bytes(tensor.dtype, tensor.shape.back()),
                        .n_in = tensor.shape.back(),
                        .rows_per_expert = tensor.shape[1],
                        .first_row = product.first_row,
                        .n_out = product.n_out,
                        .activation_block = layout != nullptr ? layout->activation_block : 0};
}

/// Rows [begin, begin + n) of an expert's matrix with all its activation rows.
void multiply(const KernelSet& kernels, const ExpertMatrices& product, std::int64_t expert,
              std::int64_t begin, std::int64_t n, const ActivationRows& x, std::int64_t n_rows,
              float* out, std::int64_t stride, std::byte* scratch) {
  const std::int64_t row = expert * product.rows_per_expert + product.first_row + begin;
  kernels.matmul_for(product.dtype,
                     n_rows)({.weights = product.weights.data + row * product.row_bytes,
                              .weight_row_bytes = product.row_bytes,
                              .is_tiled = product.weights.is_tiled,
                              .n_in = product.n_in,
                              .n_out = n,
                              .x = x,
                              .n_rows = n_rows,
                              .out = out,
                              .out_stride = stride,
                              .scratch = scratch});
}

/// What both launches share: the routing, its order, and the gathered activations.
class ExpertKernel : public LaunchKernel {
 public:
  [[nodiscard]] std::int64_t shared_bytes() const override {
    Carver measure(nullptr);
    (void)gathered_.carve(measure, max_pairs());
    return measure.used();
  }
  [[nodiscard]] std::int64_t private_bytes() const override {
    Carver measure(nullptr);
    (void)carve_private(measure);
    (void)gathered_.carve(measure, max_private_rows * n_used_);
    return measure.used();
  }

 protected:
  ExpertKernel(const BindContext& context, graph::ValueId input, graph::ValueId routing,
               std::vector<ExpertMatrices> products, std::int64_t n_experts)
      : kernels_(context.kernels),
        input_(context.values, input),
        routing_(context.values, routing),
        products_(std::move(products)),
        gathered_(products_),
        n_experts_(n_experts),
        n_used_(routing_.desc.features / 2) {
    for (const auto& product : products_) {
      matmul_bytes_ = std::max(
          matmul_bytes_, matmul_scratch_bytes(product.row_bytes, product.n_in, input_.desc.rows));
    }
  }

  /// One thread's memory.
  struct Private {
    PairOrder order;
    std::byte* matmul;
    float* values;  // value_floats()
  };
  Private carve_private(Carver& carver) const {
    return {PairOrder(carver, n_experts_, max_pairs()), carver.take<std::byte>(matmul_bytes_),
            carver.take<float>(value_floats())};
  }
  [[nodiscard]] virtual std::int64_t value_floats() const = 0;

  /// Gathers the activations of all rows, in private scratch if they are few; `prepare(row, store)`
  /// does one.
  template <class Prepare>
  GatheredRows::Store gather(const Worker& worker, const RunContext& run, Carver& own,
                             Prepare&& prepare) const {
    const std::int64_t n_rows = input_.rows(run.step);
    const bool is_private = n_rows <= max_private_rows;
    Carver shared(run.shared_scratch);
    const auto store = gathered_.carve(is_private ? own : shared,
                                       is_private ? max_private_rows * n_used_ : max_pairs());
    const auto share = is_private ? Worker::Range{0, n_rows} : worker.share(n_rows);
    for (std::int64_t row = share.begin; row < share.end; ++row) {
      prepare(row, store);
    }
    if (!is_private) {
      worker.wait_for_all();
    }
    return store;
  }

  [[nodiscard]] graph::Routing routing_of(const RunContext& run, std::int64_t row) const {
    return {routing_.data(run) + row * routing_.desc.features, n_used_};
  }
  [[nodiscard]] Pair pair_of(const RunContext& run, std::int64_t row, std::int64_t slot) const {
    return {row * n_used_ + slot, routing_of(run, row).expert(slot)};
  }
  [[nodiscard]] std::int64_t max_pairs() const { return input_.desc.rows * n_used_; }

  const KernelSet& kernels_;
  ValueRef input_, routing_;
  std::vector<ExpertMatrices> products_;
  GatheredRows gathered_;
  std::int64_t n_experts_;
  std::int64_t n_used_;
  std::int64_t matmul_bytes_ = 0;
};

class ExpertGateKernel final : public ExpertKernel {
 public:
  ExpertGateKernel(const plan::ExpertGate& gate, const BindContext& context,
                   std::vector<ExpertMatrices> products, std::int64_t n_experts)
      : ExpertKernel(context, gate.input, gate.routing, std::move(products), n_experts),
        kind_(gate.kind),
        output_(context.values, gate.output) {
    if (gate.norm) {
      norm_weight_ = graph::f32_data(context.weights, gate.norm->weight);
      norm_eps_ = gate.norm->eps;
    }
  }

  void run(const Worker& worker, const RunContext& run) const override {
    Carver scratch(run.scratch_of(worker));
    const Private own = carve_private(scratch);
    own.order.sort(routing_.data(run), input_.rows(run.step), n_used_, n_experts_);
    const auto store = gather(worker, run, scratch, [&](std::int64_t row, const auto& to) {
      prepare_row(run, own, row, to);
    });
    const std::int64_t bytes = products_[0].row_bytes + products_[1].row_bytes;
    worker.share_out(
        n_experts_,
        [&](std::int64_t expert) {
          const std::int64_t n_rows = own.order.n_rows_of(expert);
          return n_rows == 0 ? Pieces{0, 1}
                             : panel_pieces(kernels_, worker, n_out(), bytes, n_rows);
        },
        [&](std::int64_t expert, std::int64_t begin, std::int64_t end) {
          const std::int64_t most = weight_rows_together(kernels_, own.order.n_rows_of(expert));
          const std::int64_t stop = std::min(end * panel_rows, n_out());
          for (std::int64_t at = begin * panel_rows; at < stop; at += most) {
            run_panels(run, own, store, expert, {at, std::min(at + most, stop)});
          }
        });
  }

 private:
  [[nodiscard]] std::int64_t n_in() const { return input_.desc.features; }
  [[nodiscard]] std::int64_t n_out() const { return products_[0].n_out; }
  /// A row's normed values, then the tiles of gate and up.
  [[nodiscard]] std::int64_t value_floats() const override {
    return n_in() + 2 * kernels_.panels_together * panel_rows * input_.desc.rows;
  }

  void prepare_row(const RunContext& run, const Private& own, std::int64_t row,
                   const GatheredRows::Store& store) const {
    const float* x = input_.data(run) + row * n_in();
    if (norm_weight_ != nullptr) {
      kernels_.rms_norm(x, norm_weight_, n_in(), norm_eps_, own.values);
      x = own.values;
    }
    const Pair first = pair_of(run, row, 0);
    gathered_.put(kernels_, store, own.order, first, x);
    for (std::int64_t slot = 1; slot < n_used_; ++slot) {
      gathered_.copy(store, own.order, first, pair_of(run, row, slot));
    }
  }

  /// Weight rows `rows` of one expert.
  void run_panels(const RunContext& run, const Private& own, const GatheredRows::Store& store,
                  std::int64_t expert, const Worker::Range& rows) const {
    const std::int64_t begin = rows.begin;
    const std::int64_t n = rows.end - begin;
    const std::int64_t n_rows = own.order.n_rows_of(expert);
    float* gate_tile = own.values + n_in();
    float* up_tile = gate_tile + n * n_rows;
    for (const auto& [product, tile] :
         {std::pair(&products_[0], gate_tile), std::pair(&products_[1], up_tile)}) {
      multiply(kernels_, *product, expert, begin, n,
               gathered_.rows(store, own.order, expert, *product), n_rows, tile, n, own.matmul);
    }
    for (std::int64_t i = 0; i < n_rows; ++i) {
      const std::int64_t pair = own.order.pairs[own.order.begins[expert] + i];
      kernels_.gate(kind_, gate_tile + i * n, up_tile + i * n, n,
                    output_.data(run) + pair * n_out() + begin);
    }
  }

  graph::ActivationKind kind_;
  const float* norm_weight_ = nullptr;  // [n_in]
  float norm_eps_ = 0;
  ValueRef output_;  // [rows, n_used * n_out]
};

class ExpertDownKernel final : public ExpertKernel {
 public:
  ExpertDownKernel(const plan::ExpertDown& down, const BindContext& context,
                   std::vector<ExpertMatrices> products, std::int64_t n_experts)
      : ExpertKernel(context, down.input, down.routing, std::move(products), n_experts),
        output_(context.values, down.output) {
    if (down.residual) {
      residual_ = ValueRef(context.values, *down.residual);
    }
    constexpr std::int64_t buffer_floats = 1 << 16;  // a quarter of a second-level cache
    chunk_ = panel_rows * std::clamp<std::int64_t>(buffer_floats / (max_pairs() * panel_rows), 1,
                                                   ceil_div(n_out(), panel_rows));
  }

  void run(const Worker& worker, const RunContext& run) const override {
    Carver scratch(run.scratch_of(worker));
    const Private own = carve_private(scratch);
    own.order.sort(routing_.data(run), input_.rows(run.step), n_used_, n_experts_);
    const auto store = gather(worker, run, scratch, [&](std::int64_t row, const auto& to) {
      for (std::int64_t slot = 0; slot < n_used_; ++slot) {
        const Pair pair = pair_of(run, row, slot);
        gathered_.put(kernels_, to, own.order, pair,
                      input_.data(run) + pair.index * products_[0].n_in);
      }
    });
    const std::int64_t n_products = input_.rows(run.step) * n_used_;
    worker.share_out(
        1,
        [&](std::int64_t) {
          return panel_pieces(kernels_, worker, n_out(), products_[0].row_bytes, n_products);
        },
        [&](std::int64_t, std::int64_t first, std::int64_t last) {
          const std::int64_t end = std::min(last * panel_rows, n_out());
          for (std::int64_t begin = first * panel_rows; begin < end; begin += chunk_) {
            run_chunk(run, own, store, begin, std::min(chunk_, end - begin));
          }
        });
  }

 private:
  [[nodiscard]] std::int64_t n_out() const { return products_[0].n_out; }
  /// Products [place][outputs of a chunk].
  [[nodiscard]] std::int64_t value_floats() const override { return max_pairs() * chunk_; }

  /// Outputs [begin, begin + n) of every row: all products, then their sums in the order of slots.
  void run_chunk(const RunContext& run, const Private& own, const GatheredRows::Store& store,
                 std::int64_t begin, std::int64_t n) const {
    for (std::int64_t expert = 0; expert < n_experts_; ++expert) {
      if (const std::int64_t n_rows = own.order.n_rows_of(expert); n_rows > 0) {
        multiply(kernels_, products_[0], expert, begin, n,
                 gathered_.rows(store, own.order, expert, products_[0]), n_rows,
                 own.values + own.order.begins[expert] * n, n, own.matmul);
      }
    }
    for (std::int64_t row = 0; row < input_.rows(run.step); ++row) {
      float* out = output_.data(run) + row * n_out() + begin;
      std::fill_n(out, n, 0.0f);
      const auto routing = routing_of(run, row);
      for (std::int64_t slot = 0; slot < n_used_; ++slot) {
        kernels_.add_scaled(routing.weights[slot],
                            own.values + own.order.places[row * n_used_ + slot] * n, n, out);
      }
      if (residual_) {
        const float* residual = residual_->data(run) + row * n_out() + begin;
        for (std::int64_t i = 0; i < n; ++i) {
          out[i] += residual[i];
        }
      }
    }
  }

  std::optional<ValueRef> residual_;
  ValueRef output_;
  std::int64_t chunk_;  // outputs, whole panels
};

std::int64_t n_experts(const graph::ExpertMatMul& product, const BindContext& context) {
  return graph::tensor(context.weights, product.weight).shape[0];
}

}  // namespace

Result<std::unique_ptr<LaunchKernel>> bind_expert_gate(const plan::ExpertGate& gate,
                                                       const BindContext& context) {
  HEARTH_ASSIGN(auto gate_matrices, bind_matrices(gate.gate, context));
  HEARTH_ASSIGN(auto up_matrices, bind_matrices(gate.up, context));
  return std::make_unique<ExpertGateKernel>(gate, context, std::vector{gate_matrices, up_matrices},
                                            n_experts(gate.gate, context));
}

Result<std::unique_ptr<LaunchKernel>> bind_expert_down(const plan::ExpertDown& down,
                                                       const BindContext& context) {
  HEARTH_ASSIGN(auto matrices, bind_matrices(down.down, context));
  return std::make_unique<ExpertDownKernel>(down, context, std::vector{matrices},
                                            n_experts(down.down, context));
}

}  // namespace hearth::backend::cpu
