// Handlers of maps [images, rows, columns, channels]: depthwise convolutions, pools,
// normalisation, and weighted sums of maps.

// depthwise: x, kernel → y
static void* depthwise(ffi_call* call) {
  if (answered(call)) return NULL;
  task t;
  if (!prepared(call, &t, 2, "434")) return fail(call, wrong);
  ffi_buffer *x = call->in.values[0], *kernel = call->in.values[1], *y = call->out.values[0];
  large(&t, x);
  if (!kernel_size(&t, kernel) || !kernel_fits(&t, kernel) || !small_fits(&t, y)) return fail(call, wrong);
  t.x = x->data, t.kernel = kernel->data, t.out = y->data;
  run(call, chosen->depthwise[is_double(call)], &t, t.images);
  return NULL;
}

// input_gradient runs a gradient in x, with the places of y above and left.
static void* input_gradient(const ffi_call* call, const part_of_task work[2], task* t) {
  int* table = places(t, t->k, t->dilation, t->pad);
  if (!table) return fail(call, "nasml: no memory for a kernel");
  t->above = table, t->left = table + (size_t)t->height * t->k;
  run(call, work[is_double(call)], t, t->images);
  nasml_leave(table);
  return NULL;
}

// depthwise_input: v, kernel → dx
static void* depthwise_input(ffi_call* call) {
  if (answered(call)) return NULL;
  task t;
  if (!prepared(call, &t, 2, "434")) return fail(call, wrong);
  ffi_buffer *v = call->in.values[0], *kernel = call->in.values[1], *dx = call->out.values[0];
  large(&t, dx);
  if (!kernel_size(&t, kernel) || !kernel_fits(&t, kernel) || !small_fits(&t, v)) return fail(call, wrong);
  t.v = v->data, t.kernel = kernel->data, t.out = dx->data;
  return input_gradient(call, chosen->depthwise_input, &t);
}

// MOST_PARTS is how many parts a kernel's gradient is divided into, whatever the
// number of threads: the order in which its sums are added is the same.
// The sums of a kernel with all channels are large, so that there are fewer.
enum { MOST_PARTS = 16, DENSE_PARTS = 8 };

// depthwise_kernel: x, v → dkernel
static void* depthwise_kernel(ffi_call* call) {
  if (answered(call)) return NULL;
  task t;
  if (!prepared(call, &t, 2, "443")) return fail(call, wrong);
  ffi_buffer *x = call->in.values[0], *v = call->in.values[1], *out = call->out.values[0];
  large(&t, x);
  if (!kernel_size(&t, out) || !kernel_fits(&t, out) || !small_fits(&t, v)) return fail(call, wrong);
  const size_t n = (size_t)t.k * t.k * t.channels, size = is_double(call) ? sizeof(double) : sizeof(float);
  t.parts = t.images < MOST_PARTS ? t.images : MOST_PARTS;
  t.x = x->data, t.v = v->data, t.sums = nasml_room(n * size * t.parts);
  if (!t.sums) return fail(call, "nasml: no memory for a kernel");
  run(call, chosen->depthwise_kernel[is_double(call)], &t, t.parts);
  for (size_t i = 0; i < n; i++) {
    double sum = 0; // of few numbers, for either type
    for (int part = 0; part < t.parts; part++)
      sum += is_double(call) ? ((double*)t.sums)[part * n + i] : ((float*)t.sums)[part * n + i];
    if (is_double(call)) ((double*)out->data)[i] = sum;
    else ((float*)out->data)[i] = (float)sum;
  }
  nasml_leave(t.sums);
  return NULL;
}

// pool: x → y
static void* pool(ffi_call* call, const part_of_task work[2]) {
  task t;
  if (!prepared(call, &t, 1, "44")) return fail(call, wrong);
  large(&t, call->in.values[0]);
  if (!small_fits(&t, call->out.values[0])) return fail(call, wrong);
  t.x = call->in.values[0]->data, t.out = call->out.values[0]->data;
  run(call, work[is_double(call)], &t, t.images);
  return NULL;
}

static void* max_pool(ffi_call* call) { return answered(call) ? NULL : pool(call, chosen->max_pool); }
static void* mean_pool(ffi_call* call) { return answered(call) ? NULL : pool(call, chosen->mean_pool); }

// max_pool_input: x, v → dx
static void* max_pool_input(ffi_call* call) {
  if (answered(call)) return NULL;
  task t;
  if (!prepared(call, &t, 2, "444")) return fail(call, wrong);
  ffi_buffer *x = call->in.values[0], *v = call->in.values[1], *dx = call->out.values[0];
  large(&t, dx);
  if (!small_fits(&t, v) || memcmp(x->dims, dx->dims, 4 * sizeof *x->dims)) return fail(call, wrong);
  t.x = x->data, t.v = v->data, t.out = dx->data;
  run(call, chosen->max_pool_input[is_double(call)], &t, t.images);
  return NULL;
}

// mean_pool_input: v → dx
static void* mean_pool_input(ffi_call* call) {
  if (answered(call)) return NULL;
  task t;
  if (!prepared(call, &t, 1, "44")) return fail(call, wrong);
  large(&t, call->out.values[0]);
  t.k = 3, t.pad = 1;
  if (!small_fits(&t, call->in.values[0])) return fail(call, wrong);
  t.v = call->in.values[0]->data, t.out = call->out.values[0]->data;
  return input_gradient(call, chosen->mean_pool_input, &t);
}

// number and set_number read and write a number of either type.
static double number(const void* a, int is_double, size_t i) {
  return is_double ? ((const double*)a)[i] : ((const float*)a)[i];
}

static void set_number(void* a, int is_double, size_t i, double value) {
  if (is_double) ((double*)a)[i] = value;
  else ((float*)a)[i] = (float)value;
}

// add_number adds a number of either type, as that type rounds it, to what is there.
static void add_number(void* a, int is_double, size_t i, double value, int more) {
  if (is_double) ((double*)a)[i] = more ? ((double*)a)[i] + value : value;
  else ((float*)a)[i] = more ? ((float*)a)[i] + (float)value : (float)value;
}

// is says whether an array has these dimensions.
static int is(const ffi_buffer* a, int rank, int d0, int d1, int d2, int d3) {
  const int64_t want[] = {d0, d1, d2, d3};
  return a->rank == rank && !memcmp(a->dims, want, rank * sizeof *want);
}

static int is_small(const ffi_buffer* a, const task* t, int channels) {
  return is(a, 4, t->images, t->rows, t->columns, channels);
}

static int is_large(const ffi_buffer* a, const task* t) { return is(a, 4, t->images, t->height, t->width, t->channels); }

// opened looks at the numbers of arrays and at their types, and takes the first
// map, which is array number first, as x.
static int opened(const ffi_call* call, task* t, int inputs, int outputs, int first) {
  *t = (task){.stride = attribute(call, "stride", 1), .dilation = attribute(call, "dilation", 1), .parts = MOST_PARTS};
  if (!chosen || call->in.size != inputs || call->out.size != outputs || t->stride < 1 || t->dilation < 1) return 0;
  const int dtype = call->out.values[0]->dtype;
  if (dtype != FFI_F32 && dtype != FFI_F64) return 0;
  for (int i = 0; i < inputs + outputs; i++) {
    const ffi_buffer* a = i < inputs ? call->in.values[i] : call->out.values[i - inputs];
    if (a->dtype != dtype) return 0;
    for (int64_t axis = 0; axis < a->rank; axis++)
      if (a->dims[axis] < 1 || a->dims[axis] > 1 << 30) return 0;
  }
  if (call->in.values[first]->rank != 4) return 0;
  large(t, call->in.values[first]);
  t->rows = (t->height + t->stride - 1) / t->stride, t->columns = (t->width + t->stride - 1) / t->stride;
  t->x = call->in.values[first]->data;
  return 1;
}

static void* no_memory(const ffi_call* call) { return fail(call, "nasml: no memory for a kernel"); }

static const double epsilon = 1e-5; // as stages.go has it

// before is where a part of n images or pixels begins.
static int64_t before(int64_t n, int part, int parts) { return n * part / parts; }

// normalizers merges the sums of the parts, Σ (z − z₀) and Σ (z − z₀)², of so many
// units of so many pixels, into scale = 1/√(var + ε),
// shift = −mean·scale, and mean and var.
static void normalizers(const task* t, int d, const void* z, int C, int64_t units, int64_t pixels, void* affine,
                        void* moments) {
  for (int c = 0; c < C; c++) {
    double n = 0, mean = 0, squares = 0;
    for (int part = 0; part < t->parts; part++) {
      const int64_t from = before(units, part, t->parts) * pixels, to = before(units, part + 1, t->parts) * pixels;
      if (from == to) continue;
      const double m = (double)(to - from), *sum = t->moments + (size_t)part * 2 * C;
      const double own = sum[c] / m, step = number(z, d, (size_t)from * C + c) + own - mean;
      squares += sum[C + c] - sum[c] * own + step * step * n * m / (n + m);
      mean += step * m / (n + m), n += m;
    }
    const double variance = squares / n > 0 || squares != squares ? squares / n : 0;
    const double scale = 1 / sqrt(variance + epsilon);
    set_number(affine, d, c, scale);
    set_number(affine, d, C + c, -mean * scale);
    set_number(moments, d, c, mean);
    set_number(moments, d, C + c, variance);
  }
}

// bends is what the gradients of scale and shift, in given, add to that of z:
// bend₀ z + bend₁, of n pixels.
static void bends(int d, int C, double n, const void* affine, const void* given, void* bend) {
  for (int c = 0; c < C; c++) {
    const double scale = number(affine, d, c), mean = -number(affine, d, C + c) / scale;
    const double of_scale = number(given, d, c), of_shift = number(given, d, C + c);
    const double slope = -scale * scale * scale * (of_scale - mean * of_shift) / n;
    set_number(bend, d, c, slope);
    set_number(bend, d, C + c, -scale * of_shift / n - slope * mean);
  }
}

// normal: x → scale and shift, mean and variance
static void* normal(ffi_call* call) {
  if (answered(call)) return NULL;
  task t;
  if (!opened(call, &t, 1, 2, 0)) return fail(call, wrong);
  ffi_buffer *affine = call->out.values[0], *moments = call->out.values[1];
  const int C = t.channels, d = is_double(call);
  if (!is(affine, 2, 2, C, 0, 0) || !is(moments, 2, 2, C, 0, 0)) return fail(call, wrong);
  t.moments = nasml_room(sizeof(double) * t.parts * 2 * C);
  if (!t.moments) return no_memory(call);
  run(call, chosen->moments[d], &t, t.parts);
  normalizers(&t, d, t.x, C, (int64_t)t.images * t.height * t.width, 1, affine->data, moments->data);
  nasml_leave(t.moments);
  return NULL;
}

// normal_input: x, its scale and shift, their gradients → dx
static void* normal_input(ffi_call* call) {
  if (answered(call)) return NULL;
  task t;
  if (!opened(call, &t, 3, 1, 0)) return fail(call, wrong);
  const ffi_buffer *affine = call->in.values[1], *given = call->in.values[2], *dx = call->out.values[0];
  const int C = t.channels, d = is_double(call);
  if (!is_large(dx, &t) || !is(affine, 2, 2, C, 0, 0) || !is(given, 2, 2, C, 0, 0)) return fail(call, wrong);
  void* bend = nasml_room(sizeof(double) * 2 * C);
  if (!bend) return no_memory(call);
  bends(d, C, (double)t.images * t.height * t.width, affine->data, given->data, bend);
  t.maps = 1, t.map = &t.x, t.weights = bend, t.out = dx->data;
  run(call, chosen->weighted[d], &t, t.parts);
  nasml_leave(bend);
  return NULL;
}

// pairs_fit looks at maps and their scales and shifts from input first on, and
// takes the maps.
static int pairs_fit(const ffi_call* call, const task* t, int first, int n, const void** map) {
  for (int k = 0; k < n; k++) {
    const ffi_buffer *x = call->in.values[first + 2 * k], *affine = call->in.values[first + 2 * k + 1];
    if (!is_large(x, t) || !is(affine, 2, 2, t->channels, 0, 0)) return 0;
    map[k] = x->data;
  }
  return 1;
}

// weighted: w, and of every k a map and its scale and shift
// → Σₖ wₖ (scaleₖ xₖ + shiftₖ)
static void* weighted(ffi_call* call) {
  if (answered(call)) return NULL;
  task t;
  const int n = (int)(call->in.size - 1) / 2;
  if (n < 1 || !opened(call, &t, 1 + 2 * n, 1, 1)) return fail(call, wrong);
  const int C = t.channels, d = is_double(call);
  const ffi_buffer *w = call->in.values[0], *y = call->out.values[0];
  const void** map = nasml_room(sizeof *map * n + sizeof(double) * (n + 1) * C);
  if (!map) return no_memory(call);
  if (!is(w, 2, 1, n, 0, 0) || !is_large(y, &t) || !pairs_fit(call, &t, 1, n, map)) {
    nasml_leave(map);
    return fail(call, wrong);
  }
  void* weights = map + n;
  for (int c = 0; c < C; c++) {
    double shift = 0;
    for (int k = 0; k < n; k++) {
      const void* affine = call->in.values[2 + 2 * k]->data;
      const double own = number(w->data, d, k);
      set_number(weights, d, (size_t)k * C + c, own * number(affine, d, c));
      shift += own * number(affine, d, C + c);
    }
    set_number(weights, d, (size_t)n * C + c, shift);
  }
  t.maps = n, t.map = map, t.weights = weights, t.out = y->data;
  run(call, chosen->weighted[d], &t, t.parts);
  nasml_leave(map);
  return NULL;
}

// sums_of_map writes the gradients of the scale and shift of map k, whose weight is own,
// from the sums of the parts, and returns that of the weight.
static double sums_of_map(const task* t, int d, int k, double own, const void* affine, void* out) {
  const int C = t->channels;
  double total = 0;
  for (int c = 0; c < C; c++) {
    double sum = 0, product = 0;
    for (int part = 0; part < t->parts; part++) {
      const double* sums = t->moments + ((size_t)part * t->maps + k) * 2 * C;
      sum += sums[c], product += sums[C + c];
    }
    total += number(affine, d, c) * product + number(affine, d, C + c) * sum;
    set_number(out, d, c, own * product);
    set_number(out, d, C + c, own * sum);
  }
  return total;
}

// weighted_gradient: w, v, and of every k a map and its scale and shift
// → dw, and of every k the gradient of scale and shift, and wₖ scaleₖ
static void* weighted_gradient(ffi_call* call) {
  if (answered(call)) return NULL;
  task t;
  const int n = (int)(call->in.size - 2) / 2;
  if (n < 1 || !opened(call, &t, 2 + 2 * n, 1 + 2 * n, 1)) return fail(call, wrong);
  const int C = t.channels, d = is_double(call);
  const ffi_buffer *w = call->in.values[0], *dw = call->out.values[0];
  const void** map = nasml_room(sizeof *map * n + sizeof(double) * t.parts * n * 2 * C);
  if (!map) return no_memory(call);
  int fits = is(w, 2, 1, n, 0, 0) && is(dw, 2, 1, n, 0, 0) && pairs_fit(call, &t, 2, n, map);
  for (int k = 0; k < n; k++)
    fits = fits && is(call->out.values[1 + 2 * k], 2, 2, C, 0, 0) && is(call->out.values[2 + 2 * k], 2, 1, C, 0, 0);
  if (!fits) {
    nasml_leave(map);
    return fail(call, wrong);
  }
  t.maps = n, t.map = map, t.v = t.x, t.moments = (double*)(map + n);
  run(call, chosen->products[d], &t, t.parts);
  for (int k = 0; k < n; k++) {
    const void* affine = call->in.values[3 + 2 * k]->data;
    const double own = number(w->data, d, k);
    set_number(dw->data, d, k, sums_of_map(&t, d, k, own, affine, call->out.values[1 + 2 * k]->data));
    for (int c = 0; c < C; c++) set_number(call->out.values[2 + 2 * k]->data, d, c, own * number(affine, d, c));
  }
  nasml_leave(map);
  return NULL;
}

// gated_fits looks at weights and floors, and at maps and their scales and shifts from
// input first on, and takes them. maps has room for two lists.
static int gated_fits(const ffi_call* call, task* t, int first, int n, const void** maps) {
  ffi_buffer** in = call->in.values;
  if (!is(in[0], 2, 1, n, 0, 0) || !is(in[1], 2, 1, n, 0, 0) || !pairs_fit(call, t, first, n, maps)) return 0;
  for (int k = 0; k < n; k++) maps[n + k] = in[first + 2 * k + 1]->data;
  t->weights = in[0]->data, t->floors = in[1]->data, t->maps = n, t->map = maps, t->affines = maps + n;
  return 1;
}

// rectified: w, the floors, and of every k a map and its scale and shift
// → Σₖ wₖ max(floorₖ, scaleₖ xₖ + shiftₖ)
static void* rectified(ffi_call* call) {
  if (answered(call)) return NULL;
  task t;
  const int n = (int)(call->in.size - 2) / 2;
  if (n < 1 || !opened(call, &t, 2 + 2 * n, 1, 2)) return fail(call, wrong);
  const void** maps = nasml_room(sizeof *maps * 2 * n);
  if (!maps) return no_memory(call);
  const int fits = gated_fits(call, &t, 2, n, maps) && is_large(call->out.values[0], &t);
  if (fits) {
    t.out = call->out.values[0]->data;
    run(call, chosen->gated_sum[is_double(call)], &t, t.parts);
  }
  nasml_leave(maps);
  return fits ? NULL : fail(call, wrong);
}

// rectified_gradient: w, the floors, v, and of every k a map and its scale and shift
// → dw, and of every k the gradients in the map and in its scale and shift
static void* rectified_gradient(ffi_call* call) {
  if (answered(call)) return NULL;
  task t;
  const int n = (int)(call->in.size - 3) / 2;
  if (n < 1 || !opened(call, &t, 3 + 2 * n, 1 + 2 * n, 2)) return fail(call, wrong);
  const int C = t.channels, d = is_double(call);
  const ffi_buffer* dw = call->out.values[0];
  const void** maps = nasml_room(sizeof *maps * 3 * n + sizeof(double) * t.parts * n * 2 * C);
  if (!maps) return no_memory(call);
  void** slopes = (void**)(maps + 2 * n);
  int fits = gated_fits(call, &t, 3, n, maps) && is(dw, 2, 1, n, 0, 0);
  for (int k = 0; k < n; k++) {
    const ffi_buffer *dx = call->out.values[1 + 2 * k], *affine = call->out.values[2 + 2 * k];
    fits = fits && is_large(dx, &t) && is(affine, 2, 2, C, 0, 0);
    slopes[k] = dx->data;
  }
  if (!fits) {
    nasml_leave(maps);
    return fail(call, wrong);
  }
  t.v = t.x, t.slopes = slopes, t.moments = (double*)(slopes + n);
  run(call, chosen->gated[d], &t, t.parts);
  for (int k = 0; k < n; k++)
    set_number(dw->data, d, k,
               sums_of_map(&t, d, k, number(t.weights, d, k), t.affines[k], call->out.values[2 + 2 * k]->data));
  nasml_leave(maps);
  return NULL;
}
