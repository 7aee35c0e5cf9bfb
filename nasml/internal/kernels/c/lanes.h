// The kernels for L neighbouring channels from c on, of type T; included by
// loops.c for several T and L. N gives each its own names. Every channel is
// summed up in the same order, whatever L is.
typedef T N(vec) __attribute__((vector_size(L * sizeof(T)), aligned(sizeof(T)), may_alias));
typedef I N(mask) __attribute__((vector_size(L * sizeof(T)), aligned(sizeof(T)), may_alias));
#define V N(vec)
#define M N(mask)

static ALWAYS V N(load)(const T* p) { return *(const V*)p; }
static ALWAYS void N(store)(T* p, V v) { *(V*)p = v; }
static ALWAYS V N(pick)(M m, V a, V b) { return (V)((m & (M)a) | (~m & (M)b)); }

// where names a position in an array [images, rows, columns, channels].
#define AT(a, rows_, columns_, b, h, w) ((a) + (((size_t)(b) * (rows_) + (h)) * (columns_) + (w)) * C + c)

// ---------------------------------------------------------------- depthwise

// Four outputs side by side, or one, from the taps [j0, j1) of n rows of the
// kernel. x and kernel stand at the first row's tap 0.
static ALWAYS void N(outputs)(const T* x, const T* kernel, T* y, int n, int j0, int j1, int four, size_t x_row,
                              size_t x_tap, size_t x_out, ptrdiff_t k_row, ptrdiff_t k_tap, int C) {
  V a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};
  for (int i = 0; i < n; i++, x += x_row, kernel += k_row) {
#pragma GCC unroll 7
    for (int j = j0; j < j1; j++) {
      const V weight = N(load)(kernel + j * k_tap);
      const T* t = x + (ptrdiff_t)j * (ptrdiff_t)x_tap;
      a0 += weight * N(load)(t);
      if (four) {
        a1 += weight * N(load)(t + x_out);
        a2 += weight * N(load)(t + 2 * x_out);
        a3 += weight * N(load)(t + 3 * x_out);
      }
    }
  }
  N(store)(y, a0);
  if (four) {
    N(store)(y + C, a1);
    N(store)(y + 2 * C, a2);
    N(store)(y + 3 * C, a3);
  }
}

// One image of y = Σᵤᵥ x[s i + d u − p, s j + d v − p] kernel[u, v], or with the
// kernel turned around, which is the gradient in x where the stride is 1.
static ALWAYS void N(depthwise_of)(const task* t, int b, int c, const T* in, int K, int s, int d, int turned) {
  const int C = t->channels, p = t->pad, H = t->height, W = t->width;
  const int lo = MIN((p + s - 1) / s, t->columns), end = (W - 1 + p - (K - 1) * d) / s + 1;
  const int hi = W - 1 + p < (K - 1) * d ? lo : MAX(lo, MIN(end, t->columns)); // all taps are inside in [lo, hi)
  const ptrdiff_t k_tap = turned ? -C : C, k_row = K * k_tap;
  const T* first = (const T*)t->kernel + (turned ? (size_t)(K * K - 1) * C : 0) + c;
  for (int i = 0; i < t->rows; i++) {
    const int top = i * s - p;
    const int i0 = top < 0 ? (-top + d - 1) / d : 0, i1 = MIN(K, (H - 1 - top) / d + 1);
    const T* kernel = first + i0 * k_row;
    for (int j = 0; j < t->columns;) {
      const T* x = AT(in, H, W, b, top + i0 * d, 0) + (ptrdiff_t)(j * s - p) * C;
      T* y = AT((T*)t->out, t->rows, t->columns, b, i, j);
      if (j >= lo && j + 4 <= hi) {
        N(outputs)(x, kernel, y, i1 - i0, 0, K, 1, (size_t)d * W * C, (size_t)d * C, (size_t)s * C, k_row, k_tap, C);
        j += 4;
        continue;
      }
      const int left = j * s - p;
      const int j0 = left < 0 ? MIN((-left + d - 1) / d, K) : 0, j1 = MIN(K, (W - 1 - left) / d + 1);
      N(outputs)(x, kernel, y, i1 - i0, j0, j1, 0, (size_t)d * W * C, (size_t)d * C, 0, k_row, k_tap, C);
      j++;
    }
  }
}

static ALWAYS void N(depthwise_k)(const task* t, int b, int c, const T* in, int K, int turned) {
  if (t->stride == 1 && t->dilation == 1) N(depthwise_of)(t, b, c, in, K, 1, 1, turned);
  else N(depthwise_of)(t, b, c, in, K, t->stride, t->dilation, turned);
}

static void N(depthwise)(const task* t, int b, int c) {
  const T* x = t->x;
  if (t->k == 3) N(depthwise_k)(t, b, c, x, 3, 0);
  else if (t->k == 5) N(depthwise_k)(t, b, c, x, 5, 0);
  else N(depthwise_k)(t, b, c, x, 7, 0);
}

// The gradient in x: dx[h, w] = Σᵤᵥ kernel[u, v] v[(h + p − d u)/s, (w + p − d v)/s]
// over the whole numbers among these places.
static void N(depthwise_input)(const task* t, int b, int c) {
  const int C = t->channels, K = t->k;
  if (t->stride == 1) {
    const T* v = t->v;
    if (K == 3) N(depthwise_k)(t, b, c, v, 3, 1);
    else if (K == 5) N(depthwise_k)(t, b, c, v, 5, 1);
    else N(depthwise_k)(t, b, c, v, 7, 1);
    return;
  }
  for (int h = 0; h < t->height; h++)
    for (int w = 0; w < t->width; w++) {
      V a = {0};
      for (int i = 0; i < K; i++) {
        const int row = t->above[h * K + i];
        if (row < 0) continue;
        for (int j = 0; j < K; j++) {
          const int column = t->left[w * K + j];
          if (column < 0) continue;
          a += N(load)((const T*)t->kernel + (size_t)(i * K + j) * C + c) *
               N(load)(AT((const T*)t->v, t->rows, t->columns, b, row, column));
        }
      }
      N(store)(AT((T*)t->out, t->height, t->width, b, h, w), a);
    }
}

// One row of the kernel's gradient from one row of x and of v: K sums side by
// side, which are then added to sum.
static ALWAYS void N(kernel_row)(const T* x, const T* v, T* sum, int columns, int W, int C, int K, int s, int d, int p) {
  V a[MAX_K];
#pragma GCC unroll 7
  for (int j = 0; j < K; j++) a[j] = (V){0};
  const int lo = MIN((p + s - 1) / s, columns), end = (W - 1 + p - (K - 1) * d) / s + 1;
  const int hi = W - 1 + p < (K - 1) * d ? lo : MAX(lo, MIN(end, columns));
  for (int part = 0; part < 3; part++) { // the left edge, the inside, the right edge
    const int from = part == 0 ? 0 : part == 1 ? lo : hi, to = part == 0 ? lo : part == 1 ? hi : columns;
    for (int w = from; w < to; w++) {
      const V up = N(load)(v + (size_t)w * C);
      const int at = w * s - p;
      if (part == 1) {
        const T* q = x + (ptrdiff_t)at * C;
#pragma GCC unroll 7
        for (int j = 0; j < K; j++) a[j] += up * N(load)(q + (size_t)(j * d) * C);
      } else {
#pragma GCC unroll 7
        for (int j = 0; j < K; j++)
          if (at + j * d >= 0 && at + j * d < W) a[j] += up * N(load)(x + (ptrdiff_t)(at + j * d) * C);
      }
    }
  }
#pragma GCC unroll 7
  for (int j = 0; j < K; j++) N(store)(sum + (size_t)j * C, N(load)(sum + (size_t)j * C) + a[j]);
}

static ALWAYS void N(depthwise_kernel_k)(const task* t, int part, int c, int K) {
  const int C = t->channels, p = t->pad, s = t->stride, d = t->dilation;
  T* sums = (T*)t->sums + (size_t)part * K * K * C + c;
  for (int i = 0; i < K * K; i++) N(store)(sums + (size_t)i * C, (V){0});
  const int from = (int)((int64_t)t->images * part / t->parts), to = (int)((int64_t)t->images * (part + 1) / t->parts);
  for (int b = from; b < to; b++)
    for (int row = 0; row < t->rows; row++)
      for (int i = 0; i < K; i++) {
        const int h = row * s + i * d - p;
        if (h < 0 || h >= t->height) continue;
        const T* x = AT((const T*)t->x, t->height, t->width, b, h, 0);
        const T* v = AT((const T*)t->v, t->rows, t->columns, b, row, 0);
        T* sum = sums + (size_t)i * K * C;
        if (s == 1 && d == 1) N(kernel_row)(x, v, sum, t->columns, t->width, C, K, 1, 1, p);
        else N(kernel_row)(x, v, sum, t->columns, t->width, C, K, s, d, p);
      }
}

// The gradient in the kernel, Σ v[i, j] x[s i + d u − p, s j + d v − p], of one
// part of the images.
static void N(depthwise_kernel)(const task* t, int part, int c) {
  if (t->k == 3) N(depthwise_kernel_k)(t, part, c, 3);
  else if (t->k == 5) N(depthwise_kernel_k)(t, part, c, 5);
  else N(depthwise_kernel_k)(t, part, c, 7);
}

// ---------------------------------------------------------------- pools, 3 × 3

// larger keeps a where it is at least b; what is no number stays.
static ALWAYS V N(larger)(V a, V b) { return N(pick)((a >= b) | (a != a), a, b); }

// column is the largest of the rows [h0, h1) of x in column w.
static ALWAYS V N(column)(const task* t, int b, int c, int h0, int h1, int w) {
  const int C = t->channels;
  V m = N(load)(AT((const T*)t->x, t->height, t->width, b, h0, w));
  for (int h = h0 + 1; h < h1; h++) m = N(larger)(m, N(load)(AT((const T*)t->x, t->height, t->width, b, h, w)));
  return m;
}

// give adds v to the first of rows × columns pixels from [h, w] on that is the
// largest, m.
static ALWAYS void N(give)(const task* t, int b, int c, int h, int w, int rows, int columns, V m, V v) {
  const int C = t->channels;
  const T* x = AT((const T*)t->x, t->height, t->width, b, h, w);
  T* dx = AT((T*)t->out, t->height, t->width, b, h, w);
  M open = ~(M){0};
#pragma GCC unroll 3
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
    for (int j = 0; j < columns; j++) {
      const size_t at = ((size_t)i * t->width + j) * C;
      const V seen = N(load)(x + at);
      const M hit = ((seen == m) | (seen != seen)) & open;
      N(store)(dx + at, N(load)(dx + at) + (V)(hit & (M)v));
      open &= ~hit;
    }
}

// maxima finds the largest of the pixels around that lie inside, the largest of
// columns that are looked at once, and writes them down, or else gives each its
// v. Beside the map, the middle column stands for the missing one.
static ALWAYS void N(maxima)(const task* t, int b, int c, int s, int giving) {
  const int C = t->channels, H = t->height, W = t->width;
  for (int i = 0; i < t->rows; i++) {
    const int h0 = MAX(0, i * s - 1), h1 = MIN(H, i * s + 2);
    V left, middle = {0}, right = {0};
    for (int j = 0; j < t->columns; j++) {
      const int w = j * s;
      const V last_middle = middle, last_right = right;
      middle = s == 1 && j > 0 ? last_right : N(column)(t, b, c, h0, h1, w);
      if (j == 0) left = middle;
      else left = s == 1 ? last_middle : s == 2 ? last_right : N(column)(t, b, c, h0, h1, w - 1);
      right = w + 1 < W ? N(column)(t, b, c, h0, h1, w + 1) : middle;
      const V m = N(larger)(N(larger)(left, middle), right);
      if (giving) {
        const V v = N(load)(AT((const T*)t->v, t->rows, t->columns, b, i, j));
        const int w0 = MAX(0, w - 1), w1 = MIN(W, w + 2);
        if (h1 - h0 == 3 && w1 - w0 == 3) N(give)(t, b, c, h0, w0, 3, 3, m, v);
        else N(give)(t, b, c, h0, w0, h1 - h0, w1 - w0, m, v);
      } else {
        N(store)(AT((T*)t->out, t->rows, t->columns, b, i, j), m);
      }
    }
  }
}

static void N(max_pool)(const task* t, int b, int c) {
  if (t->stride == 1) N(maxima)(t, b, c, 1, 0);
  else N(maxima)(t, b, c, t->stride, 0);
}

// Its gradient: v goes to the first of the largest, row by row.
static void N(max_pool_input)(const task* t, int b, int c) {
  const int C = t->channels;
  for (int h = 0; h < t->height; h++)
    for (int w = 0; w < t->width; w++) N(store)(AT((T*)t->out, t->height, t->width, b, h, w), (V){0});
  if (t->stride == 1) N(maxima)(t, b, c, 1, 1);
  else N(maxima)(t, b, c, t->stride, 1);
}

// The mean of the pixels around that lie inside.
static void N(mean_pool)(const task* t, int b, int c) {
  const int C = t->channels, s = t->stride, H = t->height, W = t->width;
  for (int i = 0; i < t->rows; i++) {
    const int h0 = MAX(0, i * s - 1), h1 = MIN(H, i * s + 2);
    for (int j = 0; j < t->columns; j++) {
      const int w0 = MAX(0, j * s - 1), w1 = MIN(W, j * s + 2);
      V sum = {0};
      for (int h = h0; h < h1; h++)
        for (int w = w0; w < w1; w++) sum += N(load)(AT((const T*)t->x, H, W, b, h, w));
      const T share = (T)1 / (T)((h1 - h0) * (w1 - w0));
      N(store)(AT((T*)t->out, t->rows, t->columns, b, i, j), sum * share);
    }
  }
}

// share is 1 over how many of three pixels around a place lie inside of [0, n).
static ALWAYS T N(share)(int place, int n) {
  static const T shares[] = {0, 1, (T)1 / 2, (T)1 / 3};
  return shares[MIN(n, place + 2) - MAX(0, place - 1)];
}

// down adds up what the pixels in column j of y give to row h of x.
static ALWAYS V N(down)(const task* t, int b, int c, int h, int j) {
  const int C = t->channels;
  V sum = {0};
  for (int i = 0; i < 3; i++) {
    const int row = t->above[h * 3 + i];
    if (row >= 0) sum += N(load)(AT((const T*)t->v, t->rows, t->columns, b, row, j)) * N(share)(row * t->stride, t->height);
  }
  return sum * N(share)(j * t->stride, t->width);
}

// Its gradient. With stride 1 every column is looked at once.
static void N(mean_pool_input)(const task* t, int b, int c) {
  const int C = t->channels, H = t->height, W = t->width;
  for (int h = 0; h < H; h++) {
    V left = {0}, middle = {0}, right = t->stride == 1 ? N(down)(t, b, c, h, 0) : (V){0};
    for (int w = 0; w < W; w++) {
      V sum = {0};
      if (t->stride == 1) {
        left = middle, middle = right;
        right = w + 1 < W ? N(down)(t, b, c, h, w + 1) : (V){0};
        sum = left + middle + right;
      } else {
        for (int j = 0; j < 3; j++)
          if (t->left[w * 3 + j] >= 0) sum += N(down)(t, b, c, h, t->left[w * 3 + j]);
      }
      N(store)(AT((T*)t->out, H, W, b, h, w), sum);
    }
  }
}

#include "rows.h"

#undef AT
#undef V
#undef M
