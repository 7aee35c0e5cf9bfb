// Products of examples x, most numbers of which are 0, with matrices w of the same set,
// by lists of the numbers that are not. Included by loops.c for numbers of type T, with L
// of them in a vector. A part works on TALL columns of a matrix.
#define V N(vec)
#define M N(mask)
#define TALL (4 * L)
#define SPAN 96  // rows of so many columns that stay near the processor
#define AHEAD 8  // rows between the one that is asked for and the one that is worked on
#if L == 16
#include <immintrin.h>
#endif

// y[j, i] = x[i, j] of L × L numbers.
static ALWAYS void N(turn)(const T* x, size_t row, T* y, size_t out) {
#if defined(__GNUC__) && !defined(__clang__)
  V r[L];
#pragma GCC unroll 16
  for (int i = 0; i < L; i++) r[i] = N(load)(x + i * row);
#pragma GCC unroll 8
  for (int h = 1; h < L; h *= 2) { // blocks of h × h change places
    M low, high;
#pragma GCC unroll 16
    for (int i = 0; i < L; i++) low[i] = i & h ? L + (i ^ h) : i, high[i] = i & h ? L + i : (i ^ h);
#pragma GCC unroll 16
    for (int i = 0; i < L; i++)
      if (!(i & h)) {
        const V a = r[i], b = r[i | h];
        r[i] = __builtin_shuffle(a, b, low), r[i | h] = __builtin_shuffle(a, b, high);
      }
  }
#pragma GCC unroll 16
  for (int i = 0; i < L; i++) N(store)(y + i * out, r[i]);
#else
  for (int i = 0; i < L; i++)
    for (int j = 0; j < L; j++) y[j * out + i] = x[i * row + j];
#endif
}

// y[j, i] = x[i, j], of rows × columns.
static void N(transposed)(const T* x, T* y, int rows, int columns) {
  for (int i = 0; i < rows; i += L)
    for (int j = 0; j < columns; j += L) {
      if (i + L <= rows && j + L <= columns) {
        N(turn)(x + (size_t)i * columns + j, columns, y + (size_t)j * rows + i, rows);
        continue;
      }
      for (int a = i; a < MIN(rows, i + L); a++)
        for (int b = j; b < MIN(columns, j + L); b++) y[(size_t)b * rows + a] = x[(size_t)a * columns + b];
    }
}

// list writes which of n numbers are not 0, and how far from the first their columns
// stand; up to L places behind are written, too. It returns how many there are.
static int N(list)(const T* x, int n, int32_t* at, T* value) {
  int entries = 0, i = 0;
#if L == 16
  const __m512i places = _mm512_mullo_epi32(
      _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi32(TALL));
  for (; i + L <= n; i += L) {
    const __m512 some = _mm512_loadu_ps(x + i);
    const __mmask16 full = _mm512_cmp_ps_mask(some, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    _mm512_storeu_ps(value + entries, _mm512_maskz_compress_ps(full, some));
    _mm512_storeu_si512(at + entries, _mm512_maskz_compress_epi32(full, _mm512_add_epi32(places, _mm512_set1_epi32(i * TALL))));
    entries += __builtin_popcount(full);
  }
#endif
  for (; i < n; i++) { // what is 0 is written over by the next
    at[entries] = i * TALL, value[entries] = x[i];
    entries += x[i] != 0;
  }
  return entries;
}

// The lists of a set: of every span of rows of a matrix those of the examples, or, of a
// gradient, of every row.
static void R(listed)(const task* t, int set) {
  const sparse* s = t->sparse;
  const T* x = (const T*)s->x + (size_t)set * s->batch * s->high;
  int32_t *first = s->first + (size_t)set * (s->lists + 1), *at = s->at + (size_t)set * s->room;
  T *value = (T*)s->value + (size_t)set * s->room, *turned = NULL;
  if (s->gradient) {
    if (!(turned = R(room)(t, (size_t)s->batch * s->high))) return;
    N(transposed)(x, turned, s->batch, s->high);
  }
  for (int list = first[0] = 0; list < s->lists; list++) {
    const int span = list / s->batch * SPAN, b = list % s->batch, n = first[list];
    first[list + 1] = n + (turned ? N(list)(turned + (size_t)list * s->batch, s->batch, at + n, value + n)
                                  : N(list)(x + (size_t)b * s->high + span, MIN(SPAN, s->high - span), at + n, value + n));
  }
  nasml_leave(turned);
}

// Σ value[i] x[at[i]] of the entries [from, to) of a list, TALL sums, or with more added
// to what is there.
static ALWAYS void N(listed_sum)(const T* x, const int32_t* at, const T* value, int from, int to, T* sum, int more) {
  V a[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; v++) a[v] = more ? N(load)(sum + v * L) : (V){0};
  for (int i = from; i < to; i++) {
    const T* row = x + at[i];
#pragma GCC unroll 4
    for (int v = 0; v < 4; v++) a[v] += value[i] * N(load)(row + v * L);
  }
#pragma GCC unroll 4
  for (int v = 0; v < 4; v++) N(store)(sum + v * L, a[v]);
}

// ahead asks memory for n ≤ TALL columns of a row that is needed soon.
static ALWAYS void N(ahead)(const T* x, int n) {
  for (int i = 0; i < n; i += 64 / (int)sizeof(T)) __builtin_prefetch(x + i, 0, 2);
}

// columns copies n ≤ TALL columns of some rows of an array, which has row numbers in a row.
static ALWAYS void N(columns)(const T* x, size_t row, T* y, size_t out, int rows, int n) {
  for (int i = 0; i < rows; i++, x += row, y += out) {
    if (n < TALL) memcpy(y, x, sizeof(T) * n);
    else
#pragma GCC unroll 4
      for (int v = 0; v < 4; v++) N(store)(y + v * L, N(load)(x + v * L));
  }
}

// block is what belongs to a part: some columns of a variant, and the lists of its set.
typedef struct {
  int n;
  size_t row, matrix, outputs; // of a matrix, its numbers in a row; where the columns begin, and those of z
  const int32_t *first, *at;
  const T* value;
} R(block);

static R(block) R(block_of)(const sparse* s, int part) {
  const size_t model = part / s->blocks, set = model / s->variants, variant = model % s->variants;
  const size_t from = (size_t)(part % s->blocks) * TALL, row = (size_t)s->variants * s->wide;
  return (R(block)){.n = (int)MIN(TALL, s->wide - from), .row = row,
                    .matrix = set * s->high * row + variant * s->wide + from,
                    .outputs = model * s->batch * s->wide + from,
                    .first = s->first + set * (s->lists + 1), .at = s->at + set * s->room,
                    .value = (const T*)s->value + set * s->room};
}

// zeros is room for n numbers, all 0.
static T* R(zeros)(const task* t, size_t n) {
  T* room = R(room)(t, n);
  if (room) memset(room, 0, sizeof(T) * n);
  return room;
}

// z[b, k] = Σ_j x[b, j] w[j, k] of a part.
static void R(sparse)(const task* t, int part) {
  const sparse* s = t->sparse;
  const R(block) own = R(block_of)(s, part);
  T *w = R(zeros)(t, (size_t)(SPAN + s->batch) * TALL), *z = w + SPAN * TALL;
  if (!w) return;
  const int each = (SPAN + s->batch - 1) / s->batch; // rows of the next span that are asked for with a list
  for (int from = 0, list = 0; from < s->high; from += SPAN) {
    N(columns)((const T*)s->w + own.matrix + from * own.row, own.row, w, TALL, MIN(SPAN, s->high - from), own.n);
    int next = from + SPAN;
    const int end = MIN(s->high, next + SPAN);
    for (int b = 0; b < s->batch; b++, list++) {
      for (int i = 0; i < each && next < end; i++, next++) N(ahead)((const T*)s->w + own.matrix + next * own.row, own.n);
      N(listed_sum)(w, own.at, own.value, own.first[list], own.first[list + 1], z + (size_t)b * TALL, from > 0);
    }
  }
  N(columns)(z, TALL, (T*)s->out + own.outputs, s->wide, s->batch, own.n);
  nasml_leave(w);
}

// Σ_b x[b, j] v[b, k] of a part, or w[j, k] − rate times that, which may be written over w.
static void R(sparse_gradient)(const task* t, int part) {
  const sparse* s = t->sparse;
  const R(block) own = R(block_of)(s, part);
  const T *w = s->w ? (const T*)s->w + own.matrix : NULL, rate = s->w ? *(const T*)s->rate : 0;
  T *out = (T*)s->out + own.matrix, *v = R(zeros)(t, (size_t)(s->batch + 1) * TALL), *sum = v + (size_t)s->batch * TALL;
  if (!v) return;
  N(columns)((const T*)s->v + own.outputs, s->wide, v, TALL, s->batch, own.n);
  for (int j = 0; j < s->high; j++, out += own.row, w += w ? own.row : 0) {
    if (w && j + AHEAD < s->high) N(ahead)(w + AHEAD * own.row, own.n);
    N(listed_sum)(v, own.at, own.value, own.first[j], own.first[j + 1], sum, 0);
    int i = 0;
    for (; w && i + L <= own.n; i += L) N(store)(out + i, N(load)(w + i) - rate * N(load)(sum + i));
    for (; i < own.n; i++) out[i] = w ? w[i] - rate * sum[i] : sum[i];
  }
  nasml_leave(v);
}

#undef V
#undef M
#undef TALL
#undef SPAN
#undef AHEAD
