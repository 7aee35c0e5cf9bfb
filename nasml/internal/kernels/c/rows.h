// The second part of lanes.h, in which it is included: sums over pixels, rows of a stage,
// and tiles of a 3 × 3 convolution.

// ---------------------------------------------------------------- sums over pixels

// BLOCK pixels are summed up before their sum is added to the others: sums of
// many numbers lose less.
#define BLOCK 64

static ALWAYS void N(add_lanes)(double* sum, V a) {
  for (int i = 0; i < L; i++) sum[i] += (double)a[i];
}

// Σ (x − x₀) and Σ (x − x₀)² over n pixels, of C channels each, are added to
// sum[0] and sum[C].
static void N(spread_of)(const T* x, const T* origin, double* sum, int64_t n, int C, int c) {
  const V x0 = N(load)(origin + c);
  for (int64_t first = 0; first < n; first += BLOCK) {
    const int64_t last = MIN(n, first + BLOCK);
    V s1 = {0}, s2 = {0};
    for (int64_t w = first; w < last; w++) {
      const V d = N(load)(x + (size_t)w * C + c) - x0;
      s1 += d, s2 += d * d;
    }
    N(add_lanes)(sum + c, s1);
    N(add_lanes)(sum + C + c, s2);
  }
}

// Σ x and Σ x y, likewise.
static void N(pair_of)(const T* x, const T* y, double* sum, int64_t n, int C, int c) {
  for (int64_t first = 0; first < n; first += BLOCK) {
    const int64_t last = MIN(n, first + BLOCK);
    V s1 = {0}, s2 = {0};
    for (int64_t w = first; w < last; w++) {
      const V a = N(load)(x + (size_t)w * C + c);
      s1 += a, s2 += a * N(load)(y + (size_t)w * C + c);
    }
    N(add_lanes)(sum + c, s1);
    N(add_lanes)(sum + C + c, s2);
  }
}

// Σₖ weightₖ xₖ + weight_n of the pixels [from, to), a block at a time.
static void N(weighted_of)(const task* t, int64_t from, int64_t to, int c) {
  const int C = t->channels;
  const T* weight = (const T*)t->weights + c;
  T* out = (T*)t->out + c;
  const V last = N(load)(weight + (size_t)t->maps * C);
  int k = 0;
  for (; k == 0 || k < t->maps; k += 4) { // four maps at once
    const int n = MIN(4, t->maps - k);
    const T* x[4];
    V a[4] = {{0}};
    for (int i = 0; i < n; i++) x[i] = (const T*)t->map[k + i] + c, a[i] = N(load)(weight + (size_t)(k + i) * C);
    for (int64_t w = from; w < to; w++) {
      const size_t at = (size_t)w * C;
      V sum = k == 0 ? last : N(load)(out + at);
      if (n == 4) {
        sum += a[0] * N(load)(x[0] + at) + a[1] * N(load)(x[1] + at);
        sum += a[2] * N(load)(x[2] + at) + a[3] * N(load)(x[3] + at);
      } else {
        for (int i = 0; i < n; i++) sum += a[i] * N(load)(x[i] + at);
      }
      N(store)(out + at, sum);
    }
  }
}

// The gradient of v max(floor, a) of n pixels, a = scale x + shift: dx = weight
// scale v where a is above the floor, and Σ v, Σ v x there, as in pair_of.
static void N(gated)(const T* x, const T* affine, T floor, T weight, const T* v, T* dx, double* sum, int64_t n, int C,
                     int c) {
  const V scale = N(load)(affine + c), shift = N(load)(affine + C + c), slope = weight * scale;
  for (int64_t first = 0; first < n; first += BLOCK) {
    const int64_t last = MIN(n, first + BLOCK);
    V s1 = {0}, s2 = {0};
    for (int64_t w = first; w < last; w++) {
      const size_t at = (size_t)w * C + c;
      const V y = N(load)(x + at), a = scale * y + shift;
      const V up = (V)((M)N(load)(v + at) & ~(M)(a <= floor));
      N(store)(dx + at, slope * up);
      s1 += up, s2 += up * y;
    }
    N(add_lanes)(sum + c, s1);
    N(add_lanes)(sum + C + c, s2);
  }
}

// Σₖ weightₖ max(floorₖ, scaleₖ xₖ + shiftₖ) of the pixels [from, to).
static void N(gated_sum)(const task* t, int64_t from, int64_t to, int c) {
  const int C = t->channels;
  T* out = (T*)t->out + c;
  for (int k = 0; k < t->maps; k++) {
    const T weight = ((const T*)t->weights)[k], floor = ((const T*)t->floors)[k];
    const T *x = (const T*)t->map[k] + c, *affine = (const T*)t->affines[k] + c;
    const V scale = N(load)(affine), shift = N(load)(affine + C), least = (V){0} + floor;
    for (int64_t w = from; w < to; w++) {
      const V a = N(larger)(scale * N(load)(x + (size_t)w * C) + shift, least), old = k ? N(load)(out + (size_t)w * C) : (V){0};
      N(store)(out + (size_t)w * C, old + weight * a);
    }
  }
}

// ---------------------------------------------------------------- rows of a stage

// scale x + shift of n pixels, or, with a floor, at least 0.
static void N(applied)(const T* x, const T* affine, int floor, T* y, int n, int C, int c) {
  const V scale = N(load)(affine + c), shift = N(load)(affine + C + c);
  for (int w = 0; w < n; w++) {
    const V a = scale * N(load)(x + (size_t)w * C + c) + shift;
    N(store)(y + (size_t)w * C + c, floor ? (V)((M)a & (M)(a > (V){0})) : a);
  }
}

// The gradient in x of scale x + shift = r, where up is that of r, or, with a floor, of
// max(0, scale x + shift) = r; and Σ up, Σ up x where it passes, as in pair_of.
static void N(through)(const T* r, const T* x, const T* affine, int floor, const T* up, T* dx, double* sum, int n, int C,
                       int c) {
  const V scale = N(load)(affine + c);
  for (int first = 0; first < n; first += BLOCK) {
    const int last = MIN(n, first + BLOCK);
    V s1 = {0}, s2 = {0};
    for (int w = first; w < last; w++) {
      const size_t at = (size_t)w * C + c;
      const V all = N(load)(up + at), v = floor ? (V)((M)all & (M)(N(load)(r + at) > (V){0})) : all;
      N(store)(dx + at, scale * v);
      s1 += v, s2 += v * N(load)(x + at);
    }
    N(add_lanes)(sum + c, s1);
    N(add_lanes)(sum + C + c, s2);
  }
}

// x is added to y, n pixels of both.
static void N(plus)(const T* x, T* y, int n, int C, int c) {
  for (size_t w = 0; w < (size_t)n; w++) N(store)(y + w * C + c, N(load)(y + w * C + c) + N(load)(x + w * C + c));
}

// own v + bend₀ z + bend₁ of n pixels.
static void N(bent)(const T* v, const T* own, const T* z, const T* bend, T* out, int n, int C, int c) {
  const V o = N(load)(own + c), b0 = N(load)(bend + c), b1 = N(load)(bend + C + c);
  for (int w = 0; w < n; w++) {
    const size_t at = (size_t)w * C + c;
    N(store)(out + at, o * N(load)(v + at) + b0 * N(load)(z + at) + b1);
  }
}

// n outputs side by side from the taps of a padded image, four at a time: up to
// three places behind them are written, too.
static ALWAYS void N(taps_k)(const T* x, const T* kernel, T* y, int n, int K, size_t row, size_t tap, size_t step,
                             int C, int c, int turned) {
  x += c, y += c;
  kernel += c + (turned ? (size_t)(K * K - 1) * C : 0);
  const ptrdiff_t next = turned ? -(ptrdiff_t)C : C;
  for (int w = 0; w < n; w += 4) {
    V a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};
    const T* p = kernel;
    for (int i = 0; i < K; i++) {
      const T* q = x + i * row;
#pragma GCC unroll 7
      for (int j = 0; j < K; j++, q += tap, p += next) {
        const V weight = N(load)(p);
        a0 += weight * N(load)(q);
        a1 += weight * N(load)(q + step);
        a2 += weight * N(load)(q + 2 * step);
        a3 += weight * N(load)(q + 3 * step);
      }
    }
    N(store)(y, a0);
    N(store)(y + C, a1);
    N(store)(y + 2 * C, a2);
    N(store)(y + 3 * C, a3);
    x += 4 * step, y += 4 * C;
  }
}

static void N(taps)(const T* x, const T* kernel, T* y, int n, int K, size_t row, size_t tap, size_t step, int turned,
                    int C, int c) {
  if (K == 3) N(taps_k)(x, kernel, y, n, 3, row, tap, step, C, c, turned);
  else if (K == 5) N(taps_k)(x, kernel, y, n, 5, row, tap, step, C, c, turned);
  else N(taps_k)(x, kernel, y, n, 7, row, tap, step, C, c, turned);
}

// The transpose: y is added to where its taps came from.
static void N(scattered)(const T* y, const T* kernel, T* x, int n, int K, size_t row, size_t tap, size_t step, int C,
                         int c) {
  for (int i = 0; i < K; i++)
    for (int j = 0; j < K; j++) {
      const V weight = N(load)(kernel + (size_t)(i * K + j) * C + c);
      T* q = x + i * row + j * tap + c;
      for (int w = 0; w < n; w++, q += step) N(store)(q, N(load)(q) + weight * N(load)(y + (size_t)w * C + c));
    }
}

// The kernel's gradient of n outputs, of one row of taps, is added to sum.
static ALWAYS void N(kernel_taps_k)(const T* x, const T* v, T* sum, int n, int K, size_t tap, size_t step, int C,
                                    int c) {
  V a[MAX_K];
  x += c, v += c, sum += c;
#pragma GCC unroll 7
  for (int j = 0; j < K; j++) a[j] = N(load)(sum + (size_t)j * C);
  for (int w = 0; w < n; w++, x += step, v += C) {
    const V up = N(load)(v);
#pragma GCC unroll 7
    for (int j = 0; j < K; j++) a[j] += up * N(load)(x + j * tap);
  }
#pragma GCC unroll 7
  for (int j = 0; j < K; j++) N(store)(sum + (size_t)j * C, a[j]);
}

static void N(kernel_taps)(const T* x, const T* v, T* sum, int n, int K, size_t tap, size_t step, int C, int c) {
  if (K == 3) N(kernel_taps_k)(x, v, sum, n, 3, tap, step, C, c);
  else if (K == 5) N(kernel_taps_k)(x, v, sum, n, 5, tap, step, C, c);
  else N(kernel_taps_k)(x, v, sum, n, 7, tap, step, C, c);
}

// z [n, M] = u [n, C] p [C, M], columns from m on.
static ALWAYS void N(product_rows)(const T* u, const T* p, T* z, int rows, int C, int M_, int m) {
  V a[8];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) a[r] = (V){0};
  for (int k = 0; k < C; k++) {
    const V weight = N(load)(p + (size_t)k * M_ + m);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) a[r] += u[(size_t)r * C + k] * weight;
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) N(store)(z + (size_t)r * M_ + m, a[r]);
}

static void N(product)(const T* u, const T* p, T* z, int n, int C, int M_, int m) {
  int w = 0;
  for (; w + 8 <= n; w += 8) N(product_rows)(u + (size_t)w * C, p, z + (size_t)w * M_, 8, C, M_, m);
  for (; w < n; w++) N(product_rows)(u + (size_t)w * C, p, z + (size_t)w * M_, 1, C, M_, m);
}

// d [C, M] += uᵀ [C, n] z [n, M], columns from m on.
static ALWAYS void N(outer_rows)(const T* u, const T* z, T* d, int rows, int n, int C, int M_, int m) {
  V a[8];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) a[r] = N(load)(d + (size_t)r * M_ + m);
  for (int w = 0; w < n; w++) {
    const V up = N(load)(z + (size_t)w * M_ + m);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) a[r] += u[(size_t)w * C + r] * up;
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) N(store)(d + (size_t)r * M_ + m, a[r]);
}

static void N(outer)(const T* u, const T* z, T* d, int n, int C, int M_, int m) {
  int k = 0;
  for (; k + 8 <= C; k += 8) N(outer_rows)(u + k, z, d + (size_t)k * M_, 8, n, C, M_, m);
  for (; k < C; k++) N(outer_rows)(u + k, z, d + (size_t)k * M_, 1, n, C, M_, m);
}

// ---------------------------------------------------------------- tiles of a 3 × 3 convolution
//
// Four outputs, 2 × 2, of a 3 × 3 kernel g and a tile d of 4 × 4 pixels are
// Aᵀ((G g Gᵀ) ⊙ (Bᵀ d B)) A: 16 products in the place of 36 (Winograd's F(2, 3);
// Lavin and Gray 2016, https://arxiv.org/abs/1509.09308, Section 4.1), with
//
//   Bᵀ = 1 0 −1 0   G = 1  0  0   Aᵀ = 1 1  1  0
//        0 1  1 0       ½  ½  ½        0 1 −1 −1
//        0 −1 1 0       ½ −½  ½
//        0 1 0 −1       0  0  1
//
// The tiles of a row stand two pixels apart. What belongs to place i of a
// transformed tile is in plane i, [tiles, channels]. Gradients are by the
// transposes.

// Bᵀ d B of n tiles of a row.
static void N(tile_in)(const T* x, size_t row, T* d, size_t plane, int n, int C, int c) {
  x += c, d += c;
  V r[4][4]; // Bᵀ d; the first two columns are the last two of the tile before
  for (int j = -1; j < n; j++, x += 2 * (size_t)C) {
#pragma GCC unroll 2
    for (int k = 2; k < 4; k++) {
      const T* p = x + (size_t)(k - 2) * C;
      const V d0 = N(load)(p), d1 = N(load)(p + row), d2 = N(load)(p + 2 * row), d3 = N(load)(p + 3 * row);
      r[0][k] = d0 - d2, r[1][k] = d1 + d2, r[2][k] = d2 - d1, r[3][k] = d1 - d3;
    }
    if (j >= 0) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; i++) {
        T* out = d + 4 * i * plane;
        N(store)(out, r[i][0] - r[i][2]);
        N(store)(out + plane, r[i][1] + r[i][2]);
        N(store)(out + 2 * plane, r[i][2] - r[i][1]);
        N(store)(out + 3 * plane, r[i][1] - r[i][3]);
      }
      d += C;
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) r[i][0] = r[i][2], r[i][1] = r[i][3];
  }
}

// Aᵀ m A of n tiles, to two rows of so many pixels, or to one of them, below NULL.
static void N(tile_out)(const T* m, size_t plane, T* above, T* below, int n, int columns, int C, int c) {
  m += c;
  for (int j = 0; j < n; j++, m += C) {
    V r[2][4]; // Aᵀ m
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
      const V m0 = N(load)(m + k * plane), m1 = N(load)(m + (4 + k) * plane), m2 = N(load)(m + (8 + k) * plane),
              m3 = N(load)(m + (12 + k) * plane);
      r[0][k] = m0 + m1 + m2, r[1][k] = m1 - m2 - m3;
    }
    const size_t at = 2 * (size_t)j * C + c;
    N(store)(above + at, r[0][0] + r[0][1] + r[0][2]);
    if (below) N(store)(below + at, r[1][0] + r[1][1] + r[1][2]);
    if (2 * j + 1 < columns) {
      N(store)(above + at + C, r[0][1] - r[0][2] - r[0][3]);
      if (below) N(store)(below + at + C, r[1][1] - r[1][2] - r[1][3]);
    }
  }
}

// A v Aᵀ of n tiles of two rows of 2n pixels.
static void N(tile_up)(const T* above, const T* below, T* e, size_t plane, int n, int C, int c) {
  above += c, below += c, e += c;
  for (int j = 0; j < n; j++, above += 2 * (size_t)C, below += 2 * (size_t)C, e += C) {
    const V a0 = N(load)(above), a1 = N(load)(above + C), b0 = N(load)(below), b1 = N(load)(below + C);
    const V r[4][2] = {{a0, a1}, {a0 + b0, a1 + b1}, {a0 - b0, a1 - b1}, {-b0, -b1}};
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
      T* out = e + 4 * i * plane;
      N(store)(out, r[i][0]);
      N(store)(out + plane, r[i][0] + r[i][1]);
      N(store)(out + 2 * plane, r[i][0] - r[i][1]);
      N(store)(out + 3 * plane, -r[i][1]);
    }
  }
}

// B m Bᵀ of n tiles of a row is added to where they are.
static void N(tile_back)(const T* m, size_t plane, T* x, size_t row, int n, int C, int c) {
  m += c, x += c;
  for (int j = 0; j < n; j++, m += C, x += 2 * (size_t)C) {
    V r[4][4]; // B m
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
      const V m0 = N(load)(m + k * plane), m1 = N(load)(m + (4 + k) * plane), m2 = N(load)(m + (8 + k) * plane),
              m3 = N(load)(m + (12 + k) * plane);
      r[0][k] = m0, r[1][k] = m1 - m2 + m3, r[2][k] = m1 + m2 - m0, r[3][k] = -m3;
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
      T* p = x + i * row;
      N(store)(p, N(load)(p) + r[i][0]);
      N(store)(p + C, N(load)(p + C) + (r[i][1] - r[i][2] + r[i][3]));
      N(store)(p + 2 * C, N(load)(p + 2 * C) + (r[i][1] + r[i][2] - r[i][0]));
      N(store)(p + 3 * C, N(load)(p + 3 * C) - r[i][3]);
    }
  }
}

// The weights of one input channel of a kernel [k, k, C, W] at every place of a product,
// G g Gᵀ or, of one place, g: to ready [places, C, W], or turned around, to [places, W, C].
static void N(weights_of)(const T* kernel, size_t plane, int places, T* ready, T* turned, int C, int m) {
  V own[16];
  kernel += m;
  if (places == 1) own[0] = N(load)(kernel);
  else {
    V r[4][3];
#pragma GCC unroll 3
    for (int j = 0; j < 3; j++, kernel += plane) {
      const V g0 = N(load)(kernel), g1 = N(load)(kernel + 3 * plane), g2 = N(load)(kernel + 6 * plane);
      r[0][j] = g0, r[1][j] = (g0 + g1 + g2) / 2, r[2][j] = (g0 - g1 + g2) / 2, r[3][j] = g2;
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
      own[4 * i] = r[i][0], own[4 * i + 1] = (r[i][0] + r[i][1] + r[i][2]) / 2;
      own[4 * i + 2] = (r[i][0] - r[i][1] + r[i][2]) / 2, own[4 * i + 3] = r[i][2];
    }
  }
  for (int i = 0; i < places; i++) {
    if (ready) N(store)(ready + i * plane + m, own[i]);
    else
      for (int lane = 0; lane < L; lane++) turned[i * plane + (size_t)(m + lane) * C] = ((const T*)(own + i))[lane];
  }
}

// Gᵀ u G of the sums u of the parts' transformed gradients, or with one place u itself.
static void N(slopes_of)(const T* sums, int parts, size_t plane, T* out, int places, int c) {
  V u[16], r[3][4];
  for (int i = 0; i < places; i++) {
    u[i] = (V){0};
    for (int part = 0; part < parts; part++) u[i] += N(load)(sums + ((size_t)part * places + i) * plane + c);
  }
  out += c;
  if (places == 1) {
    N(store)(out, u[0]);
    return;
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    const V sum = (u[4 + j] + u[8 + j]) / 2;
    r[0][j] = u[j] + sum, r[1][j] = (u[4 + j] - u[8 + j]) / 2, r[2][j] = sum + u[12 + j];
  }
#pragma GCC unroll 3
  for (int i = 0; i < 3; i++, out += 3 * plane) {
    const V sum = (r[i][1] + r[i][2]) / 2;
    N(store)(out, r[i][0] + sum);
    N(store)(out + plane, (r[i][1] - r[i][2]) / 2);
    N(store)(out + 2 * plane, sum + r[i][3]);
  }
}
#undef BLOCK
