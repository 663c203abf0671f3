"""The gated delta rule over whole sequences, in chunks: for training, where transformers' path is slow.

    S_t = a_t S_{t-1} + k_t (b_t (v_t - a_t S_{t-1}^T k_t))^T        o_t = S_t^T q_t

per head, with S [key, value]. Within a chunk the writes are the solution of a triangular system; across chunks a
scan carries S. Both are Triton kernels on a GPU and plain loops elsewhere, and have gradients of their own; what
surrounds them is batched matrix products.
"""

import torch

CHUNK = 64

try:
    import triton
    import triton.language as tl
except ImportError:  # on a CPU
    triton = None


def _use_triton(x: torch.Tensor) -> bool:
    return triton is not None and x.is_cuda


if triton is not None:

    @triton.jit
    def _inverse_kernel(lower, inverse, C: tl.constexpr):
        """One program per matrix: row r of (I + L)^-1 is e_r - L[r, :r] times the rows above."""
        base = tl.program_id(0) * C * C
        columns = tl.arange(0, C)
        rows = tl.arange(0, C)
        at = base + rows[:, None] * C + columns[None, :]
        found = tl.where(rows[:, None] == columns[None, :], 1.0, 0.0)
        for r in range(1, C):
            factors = tl.load(lower + base + r * C + rows)  # zero from the diagonal on
            row = tl.sum(factors[:, None] * found, axis=0)
            found = tl.where(rows[:, None] == r, found - row[None, :], found)
        tl.store(inverse + at, found)

    @triton.jit
    def _scan_kernel(
        u,
        w,
        k,
        decay,
        states,
        new,
        n_chunks: tl.constexpr,
        C: tl.constexpr,
        K: tl.constexpr,
        V: tl.constexpr,
        BV: tl.constexpr,
    ):
        """One program per head and BV columns of its state. new = u - w S;  S = decay S + k^T new."""
        head = tl.program_id(0)
        columns = tl.program_id(1) * BV + tl.arange(0, BV)
        c, key = tl.arange(0, C), tl.arange(0, K)
        state = tl.zeros((K, BV), tl.float32)
        for chunk in range(n_chunks):
            n = head.to(tl.int64) * n_chunks + chunk
            low = state.to(u.dtype.element_ty)
            tl.store(states + n * K * V + key[:, None] * V + columns[None, :], low)
            at_v = n * C * V + c[:, None] * V + columns[None, :]
            at_k = n * C * K + c[:, None] * K + key[None, :]
            fresh = tl.load(u + at_v).to(tl.float32) - tl.dot(tl.load(w + at_k), low)
            fresh = fresh.to(u.dtype.element_ty)
            tl.store(new + at_v, fresh)
            state = state * tl.load(decay + n) + tl.dot(tl.trans(tl.load(k + at_k)), fresh)

    @triton.jit
    def _scan_back_kernel(
        d_new_in,
        w,
        k,
        decay,
        d_states_in,
        d_states,
        d_new,
        n_chunks: tl.constexpr,
        C: tl.constexpr,
        K: tl.constexpr,
        V: tl.constexpr,
        BV: tl.constexpr,
    ):
        """The same from the last chunk to the first, for the gradients of the state after each chunk and of new."""
        head = tl.program_id(0)
        columns = tl.program_id(1) * BV + tl.arange(0, BV)
        c, key = tl.arange(0, C), tl.arange(0, K)
        after = tl.zeros((K, BV), tl.float32)
        for back in range(n_chunks):
            n = head.to(tl.int64) * n_chunks + n_chunks - 1 - back
            at_s = n * K * V + key[:, None] * V + columns[None, :]
            at_v = n * C * V + c[:, None] * V + columns[None, :]
            at_k = n * C * K + c[:, None] * K + key[None, :]
            low = after.to(w.dtype.element_ty)
            tl.store(d_states + at_s, low)
            grad = tl.load(d_new_in + at_v).to(tl.float32) + tl.dot(tl.load(k + at_k), low)
            grad = grad.to(w.dtype.element_ty)
            tl.store(d_new + at_v, grad)
            after = (
                after * tl.load(decay + n)
                + tl.load(d_states_in + at_s).to(tl.float32)
                - tl.dot(tl.trans(tl.load(w + at_k)), grad)
            )


@torch.library.custom_op("nano::unit_lower_inverse", mutates_args=())
def _inverse(lower: torch.Tensor) -> torch.Tensor:
    """(I + L)^-1 for strictly lower L [n, C, C], f32."""
    if _use_triton(lower):
        inverse = torch.empty_like(lower)
        _inverse_kernel[(lower.shape[0],)](lower, inverse, lower.shape[-1])
        return inverse
    identity = torch.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device)
    return torch.linalg.solve_triangular(lower + identity, identity.expand_as(lower), upper=False)


@_inverse.register_fake
def _(lower):
    return torch.empty_like(lower)


def _inverse_backward(ctx, gradient):
    (inverse,) = ctx.saved_tensors
    return -(inverse.mT @ gradient @ inverse.mT)


_inverse.register_autograd(_inverse_backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output))


@torch.library.custom_op("nano::scan", mutates_args=())
def _scan(u: torch.Tensor, w: torch.Tensor, k: torch.Tensor, decay: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """u [heads, chunks, C, V], w and k [heads, chunks, C, K], decay [heads, chunks] f32.

    Gives the state before each chunk [heads, chunks, K, V] and new = u - w S [heads, chunks, C, V], in u's type.
    """
    heads, chunks, size, values = u.shape
    keys = w.shape[-1]
    states = u.new_empty(heads, chunks, keys, values)
    new = torch.empty_like(u)
    if _use_triton(u):
        block = 32
        _scan_kernel[(heads, values // block)](
            u, w, k, decay, states, new, chunks, size, keys, values, block, num_warps=4, num_stages=2
        )
        return states, new
    state = u.new_zeros(heads, keys, values)
    for n in range(chunks):
        states[:, n] = state
        new[:, n] = u[:, n] - w[:, n] @ state
        state = state * decay[:, n, None, None] + k[:, n].mT @ new[:, n]
    return states, new


@_scan.register_fake
def _(u, w, k, decay):
    return u.new_empty(u.shape[0], u.shape[1], w.shape[-1], u.shape[-1]), torch.empty_like(u)


@torch.library.custom_op("nano::scan_back", mutates_args=())
def _scan_back(
    d_new: torch.Tensor, w: torch.Tensor, k: torch.Tensor, decay: torch.Tensor, d_states: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of the state after each chunk, and of `new` with what the states after it add."""
    heads, chunks, size, values = d_new.shape
    keys = w.shape[-1]
    after_all, d_all = torch.empty_like(d_states), torch.empty_like(d_new)
    if _use_triton(d_new):
        block = 32
        _scan_back_kernel[(heads, values // block)](
            d_new, w, k, decay, d_states, after_all, d_all, chunks, size, keys, values, block, num_warps=4, num_stages=2
        )
        return after_all, d_all
    after = d_states.new_zeros(heads, keys, values)
    for n in range(chunks - 1, -1, -1):
        after_all[:, n] = after
        d_all[:, n] = d_new[:, n] + k[:, n] @ after
        after = after * decay[:, n, None, None] + d_states[:, n] - w[:, n].mT @ d_all[:, n]
    return after_all, d_all


@_scan_back.register_fake
def _(d_new, w, k, decay, d_states):
    return torch.empty_like(d_states), torch.empty_like(d_new)


def _scan_backward(ctx, d_states, d_new):
    w, k, decay, states, new = ctx.saved_tensors
    after, d_u = torch.ops.nano.scan_back(d_new.contiguous(), w, k, decay, d_states.contiguous())
    d_decay = (after.float() * states.float()).sum((-1, -2)).to(decay.dtype)
    return d_u, -(d_u @ states.mT), new @ after.mT, d_decay


def _keep_for_scan(ctx, inputs, output):
    _, w, k, decay = inputs
    ctx.save_for_backward(w, k, decay, *output)


_scan.register_autograd(_scan_backward, setup_context=_keep_for_scan)


def gated_delta_rule(q, k, v, log_decay, beta):
    """q, k [batch, tokens, key heads, K], normalised here; v [batch, tokens, heads, V]; log_decay, beta [.., heads].

    Gives [batch, tokens, heads, V] in v's type. Tokens must be a multiple of CHUNK.
    """
    batch, tokens, heads, _ = v.shape
    chunks, low = tokens // CHUNK, v.dtype
    q, k = (x.float() * torch.rsqrt(x.float().square().sum(-1, keepdim=True) + 1e-6) for x in (q, k))
    q = q * q.shape[-1] ** -0.5

    def by_chunk(x):  # [batch * heads, chunks, CHUNK, ..]
        x = x.repeat_interleave(heads // x.shape[2], dim=2).transpose(1, 2)
        return x.reshape(batch * heads, chunks, CHUNK, *x.shape[3:])

    q, k, v, log_decay, beta = (by_chunk(x) for x in (q, k, v, log_decay, beta))
    summed = log_decay.cumsum(-1)  # [batch * heads, chunks, CHUNK], f32
    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=v.device).tril()
    between = torch.exp((summed[..., :, None] - summed[..., None, :]).masked_fill(~lower, float("-inf")))
    k_low = k.to(low)
    keys = (k_low @ k_low.mT).float() * beta[..., None] * between
    solve = torch.ops.nano.unit_lower_inverse(keys.tril(-1).reshape(-1, CHUNK, CHUNK)).view_as(keys)
    solve = (solve * beta[..., None, :]).to(low)
    since_start = torch.exp(summed)[..., None]
    u = solve @ v
    w = solve @ (k * since_start).to(low)
    until_end = torch.exp(summed[..., -1:] - summed)[..., None]
    states, new = torch.ops.nano.scan(u, w, (k * until_end).to(low), torch.exp(summed[..., -1]).contiguous())
    inside = ((q.to(low) @ k_low.mT).float() * between).to(low)
    out = (q * since_start).to(low) @ states + inside @ new
    return out.reshape(batch, heads, tokens, -1).transpose(1, 2)
