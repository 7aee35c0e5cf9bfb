// The kernels that look at all channels of a pixel at once, for numbers of type
// T; included by loops.c for both. EACH calls the functions of rows.h for all
// channels. Sums are those of a part, in the order of its pixels.

// pixels_of are the pixels of a part.
static void R(pixels_of)(const task* t, int part, int64_t* from, int64_t* to) {
  const int64_t pixels = (int64_t)t->images * t->height * t->width;
  *from = pixels * part / t->parts, *to = pixels * (part + 1) / t->parts;
}

// Σ (x − x₀) and Σ (x − x₀)² of a part, x₀ its first pixel.
static void R(moments)(const task* t, int part) {
  const int C = t->channels;
  int64_t from, to;
  R(pixels_of)(t, part, &from, &to);
  double* sum = t->moments + (size_t)part * 2 * C;
  memset(sum, 0, sizeof(double) * 2 * C);
  if (from == to) return;
  const T* x = (const T*)t->x + (size_t)from * C;
  EACH(spread_of, C, x, x, sum, to - from, C);
}

// Σₖ weightₖ xₖ + weight_n of a part.
static void R(weighted)(const task* t, int part) {
  int64_t from, to;
  R(pixels_of)(t, part, &from, &to);
  const int64_t block = 256;
  for (; from < to; from += block) EACH(weighted_of, t->channels, t, from, MIN(from + block, to));
}

// Σₖ weightₖ max(floorₖ, scaleₖ xₖ + shiftₖ) of a part.
static void R(gated_sum)(const task* t, int part) {
  int64_t from, to;
  R(pixels_of)(t, part, &from, &to);
  const int64_t block = 256;
  for (; from < to; from += block) EACH(gated_sum, t->channels, t, from, MIN(from + block, to));
}

// Its gradients in the maps, and for all of them Σ v and Σ v xₖ where xₖ counts, of a
// part.
static void R(gated)(const task* t, int part) {
  const int C = t->channels;
  int64_t from, to;
  R(pixels_of)(t, part, &from, &to);
  double* sum = t->moments + (size_t)part * t->maps * 2 * C;
  memset(sum, 0, sizeof(double) * t->maps * 2 * C);
  const int64_t block = 256;
  for (; from < to; from += block) {
    const size_t at = (size_t)from * C;
    for (int k = 0; k < t->maps; k++)
      EACH(gated, C, (const T*)t->map[k] + at, (const T*)t->affines[k], ((const T*)t->floors)[k],
           ((const T*)t->weights)[k], (const T*)t->v + at, (T*)t->slopes[k] + at, sum + (size_t)k * 2 * C,
           MIN(block, to - from), C);
  }
}

// Σ v and Σ v xₖ of a part, for all maps: [maps, 2, channels].
static void R(products)(const task* t, int part) {
  const int C = t->channels;
  int64_t from, to;
  R(pixels_of)(t, part, &from, &to);
  double* sum = t->moments + (size_t)part * t->maps * 2 * C;
  memset(sum, 0, sizeof(double) * t->maps * 2 * C);
  const int64_t block = 256;
  for (; from < to; from += block) {
    const int64_t n = MIN(block, to - from);
    const T* v = (const T*)t->v + (size_t)from * C;
    for (int k = 0; k < t->maps; k++)
      EACH(pair_of, C, v, (const T*)t->map[k] + (size_t)from * C, sum + (size_t)k * 2 * C, n, C);
  }
}

// padded writes max(0, scale x + shift) of an image with its padding, and slack
// behind: outputs are computed four at a time.
static void R(padded)(const task* t, int b, T* out) {
  const int C = t->channels, p = t->pad, wide = t->width + 2 * p;
  memset(out, 0, sizeof(T) * (size_t)p * wide * C);
  for (int h = 0; h < t->height; h++) {
    T* row = out + (size_t)(h + p) * wide * C;
    memset(row, 0, sizeof(T) * p * C);
    memset(row + (size_t)(p + t->width) * C, 0, sizeof(T) * p * C);
    EACH(applied, C, (const T*)t->x + ((size_t)b * t->height + h) * t->width * C, (const T*)t->affine, 1,
         row + (size_t)p * C, t->width, C);
  }
  memset(out + (size_t)(t->height + p) * wide * C, 0, sizeof(T) * ((size_t)p * wide + 3 * t->stride) * C);
}

static size_t R(padded_size)(const task* t) {
  return ((size_t)(t->height + 2 * t->pad) * (t->width + 2 * t->pad) + 3 * t->stride) * t->channels;
}

// room is the scratch of a part; without memory the task has failed.
static T* R(room)(const task* t, size_t n) {
  T* room = nasml_room(sizeof(T) * n);
  if (!room) ((task*)t)->failed = 1;
  return room;
}

static void R(images_of)(const task* t, int part, int* from, int* to) {
  *from = (int)((int64_t)t->images * part / t->parts), *to = (int)((int64_t)t->images * (part + 1) / t->parts);
}

// A stage of some images, and the sums of its outputs: Σ (z − z₀), Σ (z − z₀)²,
// z₀ the part's first pixel.
static void R(stage)(const task* t, int part) {
  const int C = t->channels, wide = t->width + 2 * t->pad, W = t->wide, n = t->columns;
  int from, to;
  R(images_of)(t, part, &from, &to);
  double* sum = t->moments + (size_t)part * 2 * W;
  memset(sum, 0, sizeof(double) * 2 * W);
  T* image = R(room)(t, R(padded_size)(t) + (size_t)(n + 3) * C);
  if (!image) return;
  T* u = image + R(padded_size)(t);
  T* first = (T*)t->out + (size_t)from * t->rows * n * W;
  for (int b = from; b < to; b++) {
    R(padded)(t, b, image);
    for (int i = 0; i < t->rows; i++) {
      T* z = (T*)t->out + ((size_t)b * t->rows + i) * n * W;
      EACH(taps, C, image + (size_t)i * t->stride * wide * C, (const T*)t->kernel, u, n, t->k,
           (size_t)t->dilation * wide * C, (size_t)t->dilation * C, (size_t)t->stride * C, 0, C);
      EACH(product, W, u, (const T*)t->pointwise, z, n, C, W);
      EACH(spread_of, W, z, first, sum, n, W);
    }
  }
  nasml_leave(image);
}

// turned is the pointwise kernel the other way around.
static void R(turned)(const task* t, T* out) {
  for (int c = 0; c < t->channels; c++)
    for (int m = 0; m < t->wide; m++) out[(size_t)m * t->channels + c] = ((const T*)t->pointwise)[(size_t)c * t->wide + m];
}

// The gradients of a stage in x, and of some images in the depthwise kernel, in
// the pointwise one, and in shift and scale.
static void R(stage_gradient)(const task* t, int part) {
  const int C = t->channels, p = t->pad, wide = t->width + 2 * p, W = t->wide, n = t->columns, s = t->stride;
  const size_t row = (size_t)t->dilation * wide * C, tap = (size_t)t->dilation * C, step = (size_t)s * C;
  int from, to;
  R(images_of)(t, part, &from, &to);
  T* dk = (T*)t->sums + (size_t)part * t->k * t->k * C;
  T* dp = t->sums2 ? (T*)t->sums2 + (size_t)part * C * W : NULL;
  double* sum = t->moments + (size_t)part * 2 * C;
  memset(dk, 0, sizeof(T) * t->k * t->k * C);
  if (dp) memset(dp, 0, sizeof(T) * C * W);
  memset(sum, 0, sizeof(double) * 2 * C);
  const size_t size = R(padded_size)(t), line = (size_t)(MAX(n, t->width) + 3) * C;
  T* image = R(room)(t, 2 * size + 2 * line + (size_t)n * W + (size_t)C * W);
  if (!image) return;
  T *back = image + size, *u = back + size, *du = u + line, *dz = du + line, *transposed = dz + (size_t)n * W;
  R(turned)(t, transposed);
  for (int b = from; b < to; b++) {
    R(padded)(t, b, image);
    memset(back, 0, sizeof(T) * size);
    for (int i = 0; i < t->rows; i++) {
      const size_t at = ((size_t)b * t->rows + i) * n * W, top = (size_t)i * s * wide * C;
      EACH(bent, W, (const T*)t->v + at, (const T*)t->own, (const T*)t->z + at, (const T*)t->bend, dz, n, W);
      T* d = s == 1 ? back + ((size_t)(i + p) * wide + p) * C : du;
      EACH(product, C, dz, transposed, d, n, W, C);
      if (dp) {
        EACH(taps, C, image + top, (const T*)t->kernel, u, n, t->k, row, tap, step, 0, C);
        EACH(outer, W, u, dz, dp, n, C, W);
        for (int j = 0; j < t->k; j++) EACH(kernel_taps, C, image + top + j * row, d, dk + (size_t)j * t->k * C, n, t->k, tap, step, C);
      }
      if (s > 1) EACH(scattered, C, d, (const T*)t->kernel, back + top, n, t->k, row, tap, step, C);
    }
    for (int h = 0; h < t->height; h++) {
      const T* r = image + ((size_t)(h + p) * wide + p) * C;
      const T* up = back + ((size_t)(h + p) * wide + p) * C;
      const size_t at = ((size_t)b * t->height + h) * t->width * C;
      if (s == 1) {
        EACH(taps, C, back + (size_t)h * wide * C, (const T*)t->kernel, u, t->width, t->k, row, tap, (size_t)C, 1, C);
        up = u;
      }
      EACH(through, C, r, (const T*)t->x + at, (const T*)t->affine, 1, up, (T*)t->out + at, sum, t->width, C);
    }
  }
  nasml_leave(image);
}

// Σ x² of array number part, a block at a time.
static void R(squares)(const task* t, int part) {
  const T* x = t->w[part];
  double sum = 0;
  for (int64_t first = 0; first < t->sizes[part]; first += 64) {
    const int64_t last = MIN(t->sizes[part], first + 64);
    T own = 0;
    for (int64_t i = first; i < last; i++) own += x[i] * x[i];
    sum += (double)own;
  }
  t->moments[part] = sum;
}

// A step of SGD of array number part: g ← factor g + decay w, v ← μ v + g,
// w ← w − η v or, Nesterov's, w − η (g + μ v). What it writes may be what it reads.
static void R(momentum)(const task* t, int part) {
  const T *w = t->w[part], *g = t->g[part], *v = t->velocity[part], *rate = t->rates;
  T *w2 = t->w2[part], *v2 = t->velocity2[part];
  const T eta = rate[0], factor = rate[1], mu = rate[2], decay = rate[3];
  for (int64_t i = 0; i < t->sizes[part]; i++) {
    const T slope = factor * g[i] + decay * w[i], speed = mu * v[i] + slope;
    v2[i] = speed;
    w2[i] = w[i] - eta * (t->ahead ? slope + mu * speed : speed);
  }
}
