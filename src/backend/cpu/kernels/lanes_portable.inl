/// Sixteen lanes in plain arrays: the definition of the other lanes_*.inl.

struct Floats {
  std::array<float, n_lanes> lanes;
};
struct Ints {
  std::array<std::int32_t, n_lanes> lanes;
};

inline Floats load_floats(const float* x) {
  Floats result;
  std::copy_n(x, n_lanes, result.lanes.begin());
  return result;
}
inline Floats same_floats(float x) {
  Floats result;
  result.lanes.fill(x);
  return result;
}
inline void store_floats(const Floats& x, float* out) {
  std::copy_n(x.lanes.begin(), n_lanes, out);
}
inline Floats add(Floats a, const Floats& b) {
  for (std::size_t j = 0; j < n_lanes; ++j) {
    a.lanes[j] += b.lanes[j];
  }
  return a;
}
inline Floats multiply(Floats a, const Floats& b) {
  for (std::size_t j = 0; j < n_lanes; ++j) {
    a.lanes[j] *= b.lanes[j];
  }
  return a;
}
inline Floats multiply_add(const Floats& a, const Floats& b, Floats sum) {
  for (std::size_t j = 0; j < n_lanes; ++j) {
    sum.lanes[j] = std::fma(a.lanes[j], b.lanes[j], sum.lanes[j]);
  }
  return sum;
}
inline Floats to_floats(const Ints& x) {
  Floats result;
  for (std::size_t j = 0; j < n_lanes; ++j) {
    result.lanes[j] = static_cast<float>(x.lanes[j]);
  }
  return result;
}

/// sum[j] + pairs[j][0] x[0] + pairs[j][1] x[1]; pairs [16][2].
inline Ints add_pair_products(const std::int16_t* pairs, const std::int16_t* x, Ints sum) {
  for (std::size_t j = 0; j < n_lanes; ++j) {
    sum.lanes[j] += pairs[2 * j] * x[0] + pairs[2 * j + 1] * x[1];
  }
  return sum;
}
