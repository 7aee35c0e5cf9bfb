// Products of a set of matrices, z[r, c] = Σ_i a[r, i] b[i, c]. Included by loops.c behind
// sparse.h for numbers of type T, with L of them in a vector. A part works on a panel: so
// many columns as stand in SIDE vectors.
#define V N(vec)
#define ROWS 4
#define PANEL (SIDE * L)
#define DEEP 256 // rows of a panel that stay near the processor

// z[r, c] += Σ_i a[r, i] b[i, c] of some rows and vectors: a's rows stand row apart, its
// columns step; the rows of b and z are a panel's.
static ALWAYS void N(tile_of)(const T* a, size_t row, size_t step, const T* b, int depth, T* z, int rows, int vectors) {
  V sum[ROWS][SIDE];
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) sum[r][v] = N(load)(z + r * PANEL + v * L);
  for (int i = 0; i < depth; i++, a += step, b += PANEL) {
    V columns[SIDE];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) columns[v] = N(load)(b + v * L);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
      const T one = a[r * row];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) sum[r][v] += one * columns[v];
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) N(store)(z + r * PANEL + v * L, sum[r][v]);
}

// tiles is tile_of for all rows, of a whole panel or of a narrow one.
static void N(tiles)(const product* p, const T* a, const T* b, int depth, T* z, int columns) {
  int r = 0;
  for (; r + ROWS <= p->rows; r += ROWS, a += ROWS * p->row, z += ROWS * PANEL)
    if (columns > L) N(tile_of)(a, p->row, p->step, b, depth, z, ROWS, SIDE);
    else N(tile_of)(a, p->row, p->step, b, depth, z, ROWS, 1);
  for (; r < p->rows; r++, a += p->row, z += PANEL) N(tile_of)(a, p->row, p->step, b, depth, z, 1, SIDE);
}

// panel copies rows [from, to) of n columns of b from c on, or where it is turned of n rows
// of bᵀ.
static void N(panel)(const product* p, const T* b, int from, int to, int c, int n, T* out) {
  if (!p->turned) {
    for (int i = from; i < to; i++, out += PANEL) memcpy(out, b + (size_t)i * p->columns + c, sizeof(T) * n);
    return;
  }
  const int rows = to - from;
  b += (size_t)c * p->depth + from;
  for (int j = 0; j < n; j += L)
    for (int i = 0; i < rows; i += L) {
      if (i + L <= rows && j + L <= n) {
        N(turn)(b + (size_t)j * p->depth + i, p->depth, out + (size_t)i * PANEL + j, PANEL);
        continue;
      }
      for (int y = j; y < MIN(n, j + L); y++)
        for (int x = i; x < MIN(rows, i + L); x++) out[(size_t)x * PANEL + y] = b[(size_t)y * p->depth + x];
    }
}

static void R(product)(const task* t, int part) {
  const product* p = t->product;
  const size_t set = part / p->panels, size = (size_t)MIN(DEEP, p->depth) * PANEL, sums = (size_t)p->rows * PANEL;
  const int c = part % p->panels * PANEL, n = MIN(PANEL, p->columns - c);
  const T *a = (const T*)p->a + set * p->rows * p->depth, *b = (const T*)p->b + set * p->columns * p->depth;
  T *z = (T*)p->z + set * p->rows * p->columns + c, *panel = R(zeros)(t, size + sums), *sum = panel + size;
  if (!panel) return;
  for (int from = 0; from < p->depth; from += DEEP) {
    const int to = MIN(p->depth, from + DEEP);
    N(panel)(p, b, from, to, c, n, panel);
    N(tiles)(p, a + from * p->step, panel, to - from, sum, n);
  }
  for (int r = 0; r < p->rows; r++) memcpy(z + (size_t)r * p->columns, sum + (size_t)r * PANEL, sizeof(T) * n);
  nasml_leave(panel);
}

#undef V
#undef ROWS
#undef PANEL
#undef DEEP
