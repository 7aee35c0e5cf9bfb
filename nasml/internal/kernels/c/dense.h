// Convolutions with all channels, k = 1 or 3, of stride 1, for numbers of type T,
// with what stands before them, max(0, scale x + shift) or scale x + shift, and the
// sums for the normalisation behind them; included by loops.c for both types. 3 × 3
// kernels work in tiles, see rows.h: to each of the 16 places of a transformed tile
// belongs a product of matrices.

// convolved is what is convolved of n pixels.
static void R(convolved)(const task* t, const T* x, T* r, int n) {
  const int C = t->channels;
  EACH(applied, C, x, (const T*)t->affine, !t->linear, r, n, C);
}

// passed writes the gradient of n pixels x, r when convolved, where back is that of r.
static void R(passed)(const task* t, const T* r, const T* x, const T* back, T* dx, double* sum, int n) {
  const int C = t->channels;
  EACH(through, C, r, x, (const T*)t->affine, !t->linear, back, dx, sum, n, C);
}

// FEW pixels are worked on at once by 1 × 1 kernels.
#ifndef FEW
#define FEW 64
#endif

// The convolutions of some pixels with 1 × 1 kernels, and the sums of their outputs:
// Σ (z − z₀), Σ (z − z₀)², z₀ the part's first pixel.
static void R(pointwise)(const task* t, int part) {
  const int C = t->channels, W = t->wide;
  int64_t from, to;
  R(pixels_of)(t, part, &from, &to);
  const size_t first = (size_t)from * W, sums = (size_t)part * 2 * W;
  for (int k = 0; k < t->filters; k++) memset(t->filter[k].moments + sums, 0, sizeof(double) * 2 * W);
  T* r = R(room)(t, (size_t)FEW * C);
  if (!r) return;
  for (; from < to; from += FEW) {
    const int n = (int)MIN(FEW, to - from);
    R(convolved)(t, (const T*)t->x + (size_t)from * C, r, n);
    for (int k = 0; k < t->filters; k++) {
      const filter* f = t->filter + k;
      T* z = (T*)f->z + (size_t)from * W;
      EACH(product, W, r, (const T*)f->ready, z, n, C, W);
      EACH(spread_of, W, z, (const T*)f->z + first, f->moments + sums, n, W);
    }
  }
  nasml_leave(r);
}

// The gradients of convolutions with 1 × 1 kernels in x, and of some pixels in the
// kernels and, for each of them, in shift and scale. Those in x are added up from the
// last kernel on.
static void R(pointwise_gradient)(const task* t, int part) {
  const int C = t->channels, W = t->wide, last = t->filters - 1;
  int64_t from, to;
  R(pixels_of)(t, part, &from, &to);
  const size_t slopes = (size_t)part * C * W, sums = (size_t)part * 2 * C;
  for (int k = 0; k <= last; k++) {
    if (t->filter[k].sums) memset((T*)t->filter[k].sums + slopes, 0, sizeof(T) * C * W);
    memset(t->filter[k].moments + sums, 0, sizeof(double) * 2 * C);
  }
  T* r = R(room)(t, (size_t)FEW * (3 * C + W));
  if (!r) return;
  T *back = r + (size_t)FEW * C, *dx = back + (size_t)FEW * C, *dz = dx + (size_t)FEW * C;
  for (; from < to; from += FEW) {
    const int n = (int)MIN(FEW, to - from);
    const size_t in = (size_t)from * C, out = (size_t)from * W;
    const T* x = (const T*)t->x + in;
    T* sum = (T*)t->out + in;
    R(convolved)(t, x, r, n);
    for (int k = last; k >= 0; k--) {
      const filter* f = t->filter + k;
      EACH(bent, W, (const T*)f->v + out, (const T*)f->own, (const T*)f->z + out, (const T*)f->bend, dz, n, W);
      if (f->sums) EACH(outer, W, r, dz, (T*)f->sums + slopes, n, C, W);
      EACH(product, C, dz, (const T*)f->turned, back, n, W, C);
      R(passed)(t, r, x, back, k == last ? sum : dx, f->moments + sums, n);
      if (k < last) EACH(plus, C, dx, sum, n, C);
    }
  }
  nasml_leave(r);
}

// grid is how the images of a task are divided into tiles.
typedef struct {
  int high, wide;       // of a frame: the image with its padding, of whole tiles
  int rows, columns;    // of tiles
  int per;              // rows of tiles that are worked on at once
  size_t tiles, frame;  // that many tiles; numbers of a frame
} R(grid);

static R(grid) R(grid_of)(const task* t) {
  R(grid) g = {.rows = (t->height + 1) / 2, .columns = (t->width + 1) / 2};
  g.high = 2 * g.rows + 2, g.wide = 2 * g.columns + 2;
  g.per = MIN(g.rows, MAX(1, 48 / g.columns));
  g.tiles = (size_t)g.per * g.columns, g.frame = (size_t)g.high * g.wide * t->channels;
  return g;
}

// framed writes what is convolved of an image into a frame of zeros.
static void R(framed)(const task* t, const R(grid) * g, int b, T* frame) {
  const size_t line = (size_t)t->width * t->channels;
  for (int h = 0; h < t->height; h++)
    R(convolved)(t, (const T*)t->x + ((size_t)b * t->height + h) * line,
                 frame + ((size_t)(h + 1) * g->wide + 1) * t->channels, t->width);
}

// tiles_in transforms the tiles of some rows of a frame.
static void R(tiles_in)(const task* t, const R(grid) * g, const T* frame, int first, int last, T* d) {
  const int C = t->channels;
  for (int i = first; i < last; i++, d += (size_t)g->columns * C)
    EACH(tile_in, C, frame + (size_t)2 * i * g->wide * C, (size_t)g->wide * C, d, g->tiles * C, g->columns, C);
}

// The weights of one input channel of a filter as the products take them, of a gradient
// turned around.
static void R(dense_weights)(const task* t, int part) {
  const int C = t->channels, W = t->wide, c = part % C;
  const filter* f = t->filter + part / C;
  T *ready = f->ready ? (T*)f->ready + (size_t)c * W : NULL, *turned = f->turned ? (T*)f->turned + c : NULL;
  EACH(weights_of, W, (const T*)f->kernel + (size_t)c * W, (size_t)C * W, t->k == 3 ? 16 : 1, ready, turned, C);
}

// The gradient in the weights of one input channel of a filter from the sums of the
// parts.
static void R(dense_slopes)(const task* t, int part) {
  const int C = t->channels, W = t->wide, places = t->k == 3 ? 16 : 1;
  const filter* f = t->filter + part / C;
  const size_t plane = (size_t)C * W, at = (size_t)(part % C) * W;
  EACH(slopes_of, W, (const T*)f->sums + at, t->parts, plane, (T*)f->slopes + at, places);
}

// The convolution of some images with a 3 × 3 kernel, and the sums of its outputs.
static void R(dense)(const task* t, int part) {
  const int C = t->channels, W = t->wide, n = t->width;
  const R(grid) g = R(grid_of)(t);
  const filter* f = t->filter;
  int from, to;
  R(images_of)(t, part, &from, &to);
  double* sum = f->moments + (size_t)part * 2 * W;
  memset(sum, 0, sizeof(double) * 2 * W);
  T* frame = R(room)(t, g.frame + 16 * g.tiles * (C + W));
  if (!frame) return;
  T *d = frame + g.frame, *m = d + 16 * g.tiles * C;
  memset(frame, 0, sizeof(T) * g.frame);
  const T* first = (const T*)f->z + (size_t)from * t->height * n * W;
  for (int b = from; b < to; b++) {
    T* z = (T*)f->z + (size_t)b * t->height * n * W;
    R(framed)(t, &g, b, frame);
    for (int i = 0; i < g.rows; i += g.per) {
      const int last = MIN(g.rows, i + g.per), end = MIN(t->height, 2 * last);
      R(tiles_in)(t, &g, frame, i, last, d);
      for (int place = 0; place < 16; place++)
        EACH(product, W, d + place * g.tiles * C, (const T*)f->ready + (size_t)place * C * W, m + place * g.tiles * W,
             (last - i) * g.columns, C, W);
      for (int k = i; k < last; k++) {
        T* above = z + (size_t)2 * k * n * W;
        EACH(tile_out, W, m + (size_t)(k - i) * g.columns * W, g.tiles * W, above,
             2 * k + 1 < t->height ? above + (size_t)n * W : NULL, g.columns, n, W);
      }
      EACH(spread_of, W, z + (size_t)2 * i * n * W, first, sum, (int64_t)(end - 2 * i) * n, W);
    }
  }
  nasml_leave(frame);
}

// bent_rows writes the gradient of z, its rows of whole tiles.
static void R(bent_rows)(const task* t, const R(grid) * g, int b, int first, int last, T* dz) {
  const int W = t->wide, n = t->width, wide = 2 * g->columns;
  const filter* f = t->filter;
  for (int h = first; h < last; h++, dz += (size_t)wide * W) {
    if (h >= t->height) {
      memset(dz, 0, sizeof(T) * wide * W);
      continue;
    }
    const size_t at = ((size_t)b * t->height + h) * n * W;
    EACH(bent, W, (const T*)f->v + at, (const T*)f->own, (const T*)f->z + at, (const T*)f->bend, dz, n, W);
    memset(dz + (size_t)n * W, 0, sizeof(T) * (wide - n) * W);
  }
}

// The gradients of a convolution with a 3 × 3 kernel in x, and of some images in the
// transformed kernel and in shift and scale.
static void R(dense_gradient)(const task* t, int part) {
  const int C = t->channels, W = t->wide, n = t->width;
  const R(grid) g = R(grid_of)(t);
  const size_t row = (size_t)2 * g.columns * W; // of dz
  const filter* f = t->filter;
  int from, to;
  R(images_of)(t, part, &from, &to);
  T* du = f->sums ? (T*)f->sums + (size_t)part * 16 * C * W : NULL;
  double* sum = f->moments + (size_t)part * 2 * C;
  if (du) memset(du, 0, sizeof(T) * 16 * C * W);
  memset(sum, 0, sizeof(double) * 2 * C);
  T* frame = R(room)(t, 2 * g.frame + 2 * g.per * row + 16 * g.tiles * (C + W));
  if (!frame) return;
  T *back = frame + g.frame, *dz = back + g.frame, *d = dz + 2 * g.per * row, *e = d + 16 * g.tiles * C;
  memset(frame, 0, sizeof(T) * g.frame);
  for (int b = from; b < to; b++) {
    R(framed)(t, &g, b, frame);
    memset(back, 0, sizeof(T) * g.frame);
    for (int i = 0; i < g.rows; i += g.per) {
      const int last = MIN(g.rows, i + g.per), tiles = (last - i) * g.columns;
      R(bent_rows)(t, &g, b, 2 * i, 2 * last, dz);
      for (int k = i; k < last; k++) {
        const T* above = dz + 2 * (k - i) * row;
        EACH(tile_up, W, above, above + row, e + (size_t)(k - i) * g.columns * W, g.tiles * W, g.columns, W);
      }
      if (du) {
        R(tiles_in)(t, &g, frame, i, last, d);
        for (int place = 0; place < 16; place++)
          EACH(outer, W, d + place * g.tiles * C, e + place * g.tiles * W, du + (size_t)place * C * W, tiles, C, W);
      }
      for (int place = 0; place < 16; place++)
        EACH(product, C, e + place * g.tiles * W, (const T*)f->turned + (size_t)place * C * W, d + place * g.tiles * C,
             tiles, W, C);
      for (int k = i; k < last; k++)
        EACH(tile_back, C, d + (size_t)(k - i) * g.columns * C, g.tiles * C, back + (size_t)2 * k * g.wide * C,
             (size_t)g.wide * C, g.columns, C);
    }
    for (int h = 0; h < t->height; h++) {
      const size_t in = ((size_t)(h + 1) * g.wide + 1) * C, at = ((size_t)b * t->height + h) * n * C;
      R(passed)(t, frame + in, (const T*)t->x + at, back + in, (T*)t->out + at, sum, n);
    }
  }
  nasml_leave(frame);
}
