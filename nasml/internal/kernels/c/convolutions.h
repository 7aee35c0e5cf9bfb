// Handlers of convolutions with all that stands around them: stages of depthwise ones,
// and those with all channels.

// stage_fits looks at the inputs of a stage: x, affine, kernel, pointwise.
static int stage_fits(const ffi_call* call, task* t) {
  ffi_buffer** in = call->in.values;
  if (in[2]->rank != 3 || in[3]->rank != 2) return 0;
  t->wide = (int)in[3]->dims[1];
  t->affine = in[1]->data, t->kernel = in[2]->data, t->pointwise = in[3]->data;
  return kernel_size(t, in[2]) && kernel_fits(t, in[2]) && is(in[1], 2, 2, t->channels, 0, 0) &&
         is(in[3], 2, t->channels, t->wide, 0, 0);
}

// stage: x, its scale and shift, the kernels → z, its scale and shift, mean and
// variance
static void* stage(ffi_call* call) {
  if (answered(call)) return NULL;
  task t;
  if (!opened(call, &t, 4, 3, 0) || !stage_fits(call, &t)) return fail(call, wrong);
  const ffi_buffer *z = call->out.values[0], *affine = call->out.values[1], *moments = call->out.values[2];
  const int W = t.wide, d = is_double(call);
  if (!is_small(z, &t, W) || !is(affine, 2, 2, W, 0, 0) || !is(moments, 2, 2, W, 0, 0)) return fail(call, wrong);
  t.out = z->data, t.moments = nasml_room(sizeof(double) * t.parts * 2 * W);
  if (!t.moments) return no_memory(call);
  run(call, chosen->stage[d], &t, t.parts);
  normalizers(&t, d, z->data, W, t.images, (int64_t)t.rows * t.columns, affine->data, moments->data);
  nasml_leave(t.moments);
  return t.failed ? no_memory(call) : NULL;
}

// added writes the sums of the parts, n numbers of a part side by side.
static void added(const task* t, int d, const void* sums, size_t n, void* out) {
  for (size_t i = 0; i < n; i++) {
    double sum = 0;
    for (int part = 0; part < t->parts; part++) sum += number(sums, d, part * n + i);
    set_number(out, d, i, sum);
  }
}

// scales_of writes the gradients of scale and shift from the sums of the parts, or adds
// them to what is there.
static void scales_of(const task* t, int d, const double* sums, int more, void* out) {
  const int C = t->channels;
  for (int c = 0; c < C; c++) {
    double sum = 0, product = 0;
    for (int part = 0; part < t->parts; part++)
      sum += sums[(size_t)part * 2 * C + c], product += sums[(size_t)part * 2 * C + C + c];
    add_number(out, d, c, product, more);
    add_number(out, d, C + c, sum, more);
  }
}

// backward: x, its scale and shift, the kernels, v and what it is multiplied by, z,
// its scale and shift, their gradients → dx, the gradients of scale and shift and, of stage_gradient, those
// of the kernels.
static void* backward(ffi_call* call, int weights) {
  if (answered(call)) return NULL;
  task t;
  if (!opened(call, &t, 9, weights ? 4 : 2, 0) || !stage_fits(call, &t)) return fail(call, wrong);
  ffi_buffer **in = call->in.values, **out = call->out.values;
  const int C = t.channels, W = t.wide, d = is_double(call);
  if (!is_small(in[4], &t, W) || !is(in[5], 2, 1, W, 0, 0) || !is_small(in[6], &t, W) || !is(in[7], 2, 2, W, 0, 0) ||
      !is(in[8], 2, 2, W, 0, 0) || !is_large(out[0], &t) || !is(out[1], 2, 2, C, 0, 0) ||
      (weights && (!is(out[2], 3, t.k, t.k, C, 0) || !is(out[3], 2, C, W, 0, 0))))
    return fail(call, wrong);
  const size_t taps = (size_t)t.k * t.k * C, products = (size_t)C * W, size = d ? sizeof(double) : sizeof(float);
  t.moments = nasml_room(sizeof(double) * (t.parts * 2 * C + 2 * W) + size * t.parts * (taps + products));
  if (!t.moments) return no_memory(call);
  void* bend = t.moments + t.parts * 2 * C;
  t.sums = (double*)bend + 2 * W, t.sums2 = weights ? (char*)t.sums + size * t.parts * taps : NULL;
  bends(d, W, (double)t.images * t.rows * t.columns, in[7]->data, in[8]->data, bend);
  t.v = in[4]->data, t.own = in[5]->data, t.z = in[6]->data, t.bend = bend, t.out = out[0]->data;
  run(call, chosen->stage_gradient[d], &t, t.parts);
  scales_of(&t, d, t.moments, 0, out[1]->data);
  if (weights) {
    added(&t, d, t.sums, taps, out[2]->data);
    added(&t, d, t.sums2, products, out[3]->data);
  }
  nasml_leave(t.moments);
  return t.failed ? no_memory(call) : NULL;
}

static void* stage_gradient(ffi_call* call) { return backward(call, 1); }
static void* stage_input(ffi_call* call) { return backward(call, 0); }

// dense_fits looks at the inputs of convolutions with all channels of one map, x and
// its scale and shift first, then of every convolution so many, the kernel first.
static int dense_fits(const ffi_call* call, task* t, int each) {
  ffi_buffer** in = call->in.values;
  if (in[2]->rank != 4) return 0;
  t->k = (int)in[2]->dims[0], t->wide = (int)in[2]->dims[3], t->affine = in[1]->data;
  if ((t->k != 1 && t->k != 3) || t->stride != 1 || t->dilation != 1 || !is(in[1], 2, 2, t->channels, 0, 0)) return 0;
  for (int i = 0; i < t->filters; i++)
    if (!is(in[2 + each * i], 4, t->k, t->k, t->channels, t->wide)) return 0;
  return t->filters == 1 || t->k == 1;
}

// dense_size is how many numbers the weights of all places are.
static size_t dense_size(const task* t) { return (size_t)(t->k == 3 ? 16 : 1) * t->channels * t->wide; }

// piece takes so many bytes of memory.
static void* piece(char** memory, size_t n) {
  void* p = *memory;
  *memory += n;
  return p;
}

// dense_forward: x, its scale and shift, and of every convolution its kernel
// → of each z, its scale and shift, mean and variance
static void* dense_forward(ffi_call* call, int linear) {
  if (answered(call)) return NULL;
  task t;
  const int n = (int)call->in.size - 2;
  if (n < 1 || !opened(call, &t, 2 + n, 3 * n, 0)) return fail(call, wrong);
  t.filters = n, t.linear = linear;
  if (!dense_fits(call, &t, 1)) return fail(call, wrong);
  ffi_buffer** out = call->out.values;
  const int W = t.wide, d = is_double(call);
  for (int i = 0; i < n; i++)
    if (!is_small(out[3 * i], &t, W) || !is(out[3 * i + 1], 2, 2, W, 0, 0) || !is(out[3 * i + 2], 2, 2, W, 0, 0))
      return fail(call, wrong);
  const size_t sums = sizeof(double) * t.parts * 2 * W, weights = sizeof(double) * dense_size(&t);
  t.filter = nasml_room(n * (sizeof(filter) + sums + weights));
  if (!t.filter) return no_memory(call);
  char* memory = (char*)(t.filter + n);
  for (int i = 0; i < n; i++)
    t.filter[i] = (filter){.kernel = call->in.values[2 + i]->data, .z = out[3 * i]->data,
                           .moments = piece(&memory, sums), .ready = piece(&memory, weights)};
  run(call, chosen->dense_weights[d], &t, n * t.channels);
  run(call, (t.k == 1 ? chosen->pointwise : chosen->dense)[d], &t, t.parts);
  const int64_t pixels = (int64_t)t.rows * t.columns;
  const int alone = t.k == 1; // parts are of pixels, not of images
  for (int i = 0; i < n; i++) {
    t.moments = t.filter[i].moments;
    normalizers(&t, d, t.filter[i].z, W, alone ? t.images * pixels : t.images, alone ? 1 : pixels,
                out[3 * i + 1]->data, out[3 * i + 2]->data);
  }
  nasml_leave(t.filter);
  return t.failed ? no_memory(call) : NULL;
}

// dense_backward: x, its scale and shift, and of every convolution the kernel, v and
// what it is multiplied by, z, its scale and shift, their gradients → dx, the gradients
// of scale and shift and, of dense_gradient, those of the kernels.
static void* dense_backward(ffi_call* call, int linear, int weights) {
  if (answered(call)) return NULL;
  task t;
  const int n = (int)(call->in.size - 2) / 6;
  if (n < 1 || !opened(call, &t, 2 + 6 * n, 2 + (weights ? n : 0), 0)) return fail(call, wrong);
  t.filters = n, t.linear = linear;
  if (!dense_fits(call, &t, 6)) return fail(call, wrong);
  ffi_buffer** out = call->out.values;
  const int C = t.channels, W = t.wide, d = is_double(call);
  int fits = is_large(out[0], &t) && is(out[1], 2, 2, C, 0, 0);
  for (int i = 0; i < n; i++) {
    ffi_buffer** in = call->in.values + 2 + 6 * i;
    fits = fits && is_small(in[1], &t, W) && is(in[2], 2, 1, W, 0, 0) && is_small(in[3], &t, W) &&
           is(in[4], 2, 2, W, 0, 0) && is(in[5], 2, 2, W, 0, 0) && (!weights || is(out[2 + i], 4, t.k, t.k, C, W));
  }
  if (!fits) return fail(call, wrong);
  t.parts = DENSE_PARTS;
  const size_t sums = sizeof(double) * t.parts * 2 * C, bend = sizeof(double) * 2 * W,
               each = sizeof(double) * dense_size(&t), slopes = weights ? each * t.parts : 0;
  t.filter = nasml_room(n * (sizeof(filter) + sums + bend + each + slopes));
  if (!t.filter) return no_memory(call);
  char* memory = (char*)(t.filter + n);
  for (int i = 0; i < n; i++) {
    ffi_buffer** in = call->in.values + 2 + 6 * i;
    void* bent = piece(&memory, bend);
    bends(d, W, (double)t.images * t.rows * t.columns, in[4]->data, in[5]->data, bent);
    t.filter[i] = (filter){.kernel = in[0]->data, .v = in[1]->data, .own = in[2]->data, .z = in[3]->data, .bend = bent,
                           .moments = piece(&memory, sums), .turned = piece(&memory, each),
                           .sums = weights ? piece(&memory, slopes) : NULL, .slopes = weights ? out[2 + i]->data : NULL};
  }
  t.out = out[0]->data;
  run(call, chosen->dense_weights[d], &t, n * C);
  run(call, (t.k == 1 ? chosen->pointwise_gradient : chosen->dense_gradient)[d], &t, t.parts);
  for (int i = n - 1; i >= 0; i--) scales_of(&t, d, t.filter[i].moments, i < n - 1, out[1]->data);
  if (weights) run(call, chosen->dense_slopes[d], &t, n * C);
  nasml_leave(t.filter);
  return t.failed ? no_memory(call) : NULL;
}

static void* dense(ffi_call* call) { return dense_forward(call, 0); }
static void* dense_gradient(ffi_call* call) { return dense_backward(call, 0, 1); }
static void* dense_input(ffi_call* call) { return dense_backward(call, 0, 0); }
static void* linear(ffi_call* call) { return dense_forward(call, 1); }
static void* linear_gradient(ffi_call* call) { return dense_backward(call, 1, 1); }
static void* linear_input(ffi_call* call) { return dense_backward(call, 1, 0); }
