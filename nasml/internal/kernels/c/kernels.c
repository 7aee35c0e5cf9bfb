// Handlers that XLA calls in the place of functions that have kernels, and the
// table of them. A handler looks at its arrays, divides the work into parts
// that do not depend on the number of threads, and lets threads do them.
#define _GNU_SOURCE // of CPU_COUNT
#include "call.h"
#include "maps.h"
#include "convolutions.h"

// ---------------------------------------------------------------- steps of many arrays

// same says whether arrays of numbers of one of two types have as many of them,
// and how many.
static int same(const ffi_buffer* a, const ffi_buffer* b, int dtype, int64_t* size) {
  if (a->dtype != dtype || b->dtype != dtype || a->rank != b->rank) return 0;
  *size = 1;
  for (int64_t axis = 0; axis < a->rank; axis++) {
    if (a->dims[axis] != b->dims[axis] || a->dims[axis] < 0) return 0;
    *size *= a->dims[axis];
  }
  return 1;
}

// of_numbers says whether a call has arrays of float or double alone, the first of
// which is [n].
static int of_numbers(const ffi_call* call, int64_t n) {
  if (!chosen || call->in.size < 1 || call->out.size < 1) return 0;
  const int dtype = call->out.values[0]->dtype;
  const ffi_buffer* first = call->in.values[0];
  return (dtype == FFI_F32 || dtype == FFI_F64) && first->dtype == dtype && first->rank == 1 && first->dims[0] == n;
}

// squares: a number that is added, and arrays → that and Σ x² over all of them
static void* squares(ffi_call* call) {
  if (answered(call)) return NULL;
  const int64_t n = call->in.size - 1;
  if (n < 1 || !of_numbers(call, 1) || call->out.size != 1) return fail(call, wrong);
  ffi_buffer **x = call->in.values + 1, *out = call->out.values[0];
  if (out->rank != 1 || out->dims[0] != 1) return fail(call, wrong);
  const int d = is_double(call);
  double* sums = nasml_room((sizeof *sums + sizeof(int64_t) + sizeof(void*)) * n);
  if (!sums) return no_memory(call);
  int64_t* sizes = (int64_t*)(sums + n);
  const void** arrays = (const void**)(sizes + n);
  int fits = 1;
  for (int64_t i = 0; i < n; i++) fits = fits && same(x[i], x[i], out->dtype, sizes + i), arrays[i] = x[i]->data;
  if (fits) {
    const task t = {.sizes = sizes, .w = arrays, .moments = sums};
    run(call, chosen->squares[d], &t, (int)n);
    double sum = number(call->in.values[0]->data, d, 0);
    for (int64_t i = 0; i < n; i++) sum += sums[i];
    set_number(out->data, d, 0, sum);
  }
  nasml_leave(sums);
  return fits ? NULL : fail(call, wrong);
}

// step: rates [4], and of every array its numbers, gradient and velocity
// → of every array its numbers and velocity
static void* step(ffi_call* call, int ahead) {
  if (answered(call)) return NULL;
  const int64_t n = (call->in.size - 1) / 3;
  if (n < 1 || !of_numbers(call, 4) || call->in.size != 1 + 3 * n || call->out.size != 2 * n) return fail(call, wrong);
  ffi_buffer **in = call->in.values + 1, **out = call->out.values;
  void** lists = nasml_room((5 * sizeof *lists + sizeof(int64_t)) * n);
  if (!lists) return no_memory(call);
  int64_t* sizes = (int64_t*)(lists + 5 * n);
  int fits = 1;
  for (int64_t i = 0; i < n; i++) {
    ffi_buffer* of[] = {in[3 * i], in[3 * i + 1], in[3 * i + 2], out[2 * i], out[2 * i + 1]};
    for (int k = 0; k < 5; k++) fits = fits && same(of[0], of[k], out[0]->dtype, sizes + i), lists[k * n + i] = of[k]->data;
  }
  if (fits) {
    const task t = {.sizes = sizes, .ahead = ahead, .rates = call->in.values[0]->data,
                    .w = (const void* const*)lists, .g = (const void* const*)(lists + n),
                    .velocity = (const void* const*)(lists + 2 * n), .w2 = lists + 3 * n, .velocity2 = lists + 4 * n};
    run(call, chosen->momentum[is_double(call)], &t, (int)n);
  }
  nasml_leave(lists);
  return fits ? NULL : fail(call, wrong);
}

static void* momentum(ffi_call* call) { return step(call, 0); }
static void* nesterov(ffi_call* call) { return step(call, 1); }

// running: the weights of what is there and of what is new, and of every map
// n/(n − 1), in [2 + maps];
// and of every map its moments [2, C], and the mean and variance [C] so far
// → of every map mean and variance
static void* running(ffi_call* call) {
  if (answered(call)) return NULL;
  const int64_t n = (call->in.size - 1) / 3;
  if (n < 1 || !of_numbers(call, 2 + n) || call->in.size != 1 + 3 * n || call->out.size != 2 * n) return fail(call, wrong);
  const int d = is_double(call);
  const void* rates = call->in.values[0]->data;
  const double keep = number(rates, d, 0), now = number(rates, d, 1);
  for (int64_t i = 0; i < n; i++) {
    ffi_buffer **in = call->in.values + 1 + 3 * i, **out = call->out.values + 2 * i;
    int64_t C, same_C;
    const int dtype = out[0]->dtype;
    if (in[1]->rank != 1 || !same(in[1], in[2], dtype, &C) || !same(in[1], out[0], dtype, &same_C) ||
        !same(in[1], out[1], dtype, &same_C) || in[0]->dtype != dtype || !is(in[0], 2, 2, (int)C, 0, 0))
      return fail(call, wrong);
    for (int row = 0; row < 2; row++) {
      const double share = row ? now * number(rates, d, 2 + i) : now;
      for (int64_t c = 0; c < C; c++)
        set_number(out[row]->data, d, c, keep * number(in[1 + row]->data, d, c) +
                                             share * number(in[0]->data, d, row * C + c));
    }
  }
  return NULL;
}

// ---------------------------------------------------------------- examples most numbers of which are 0

enum { SPAN = 96, SLACK = 16 };  // rows that have lists of their own, places behind a list: those of sparse.h

// sparse_product looks at the arrays of a product, x [S, B, D], w [S, D, V, K], and z or v
// [S, V, B, K], and does it.
static void* sparse_product(const ffi_call* call, sparse* s, const ffi_buffer* x, const ffi_buffer* w, const ffi_buffer* z) {
  const ffi_buffer* of[] = {x, w, z};
  const int dtype = call->out.values[0]->dtype, d = is_double(call);
  for (int i = 0; i < 3; i++) {
    if (of[i]->dtype != dtype || of[i]->rank != (i ? 4 : 3)) return fail(call, wrong);
    for (int64_t axis = 0; axis < of[i]->rank; axis++)
      if (of[i]->dims[axis] < 1 || of[i]->dims[axis] > 1 << 24) return fail(call, wrong);
  }
  const int sets = (int)w->dims[0];
  s->batch = (int)x->dims[1], s->high = (int)w->dims[1], s->variants = (int)w->dims[2], s->wide = (int)w->dims[3];
  s->blocks = (s->wide + chosen->tall[d] - 1) / chosen->tall[d];
  s->room = (size_t)s->batch * s->high + SLACK;
  const int64_t spans = (s->high + SPAN - 1) / SPAN, lists = s->gradient ? s->high : spans * s->batch;
  const int64_t parts = (int64_t)sets * s->variants * s->blocks;
  if (!is(x, 3, sets, s->batch, s->high, 0) || !is(z, 4, sets, s->variants, s->batch, s->wide) ||
      s->room > INT32_MAX || parts > INT32_MAX)
    return fail(call, wrong);
  s->lists = (int)lists;
  int32_t* places = nasml_room(sets * (lists + 1 + s->room) * sizeof *places);
  s->first = places, s->at = places + sets * (lists + 1), s->value = nasml_room(sets * s->room * (d ? sizeof(double) : sizeof(float)));
  task t = {.sparse = s, .failed = !places || !s->value};
  if (!t.failed) run(call, chosen->listed[d], &t, sets);
  if (!t.failed) run(call, (s->gradient ? chosen->sparse_gradient : chosen->sparse)[d], &t, (int)parts);
  nasml_leave(places), nasml_leave(s->value);
  return t.failed ? no_memory(call) : NULL;
}

static int arrays(const ffi_call* call, int inputs) {
  return chosen && call->in.size == inputs && call->out.size == 1 &&
         (call->out.values[0]->dtype == FFI_F32 || call->out.values[0]->dtype == FFI_F64);
}

// sparse_of: x, w → z
static void* sparse_of(ffi_call* call) {
  if (answered(call)) return NULL;
  if (!arrays(call, 2)) return fail(call, wrong);
  ffi_buffer **in = call->in.values, *z = call->out.values[0];
  sparse s = {.x = in[0]->data, .w = in[1]->data, .out = z->data};
  return sparse_product(call, &s, in[0], in[1], z);
}

// sparse_gradient: x, v → the gradient in w
static void* sparse_gradient(ffi_call* call) {
  if (answered(call)) return NULL;
  if (!arrays(call, 2)) return fail(call, wrong);
  ffi_buffer **in = call->in.values, *out = call->out.values[0];
  sparse s = {.x = in[0]->data, .v = in[1]->data, .out = out->data, .gradient = 1};
  return sparse_product(call, &s, in[0], out, in[1]);
}

// sparse_descent: a rate [1], x, v, w → w less rate times the gradient, which may be where w is
static void* sparse_descent(ffi_call* call) {
  if (answered(call)) return NULL;
  if (!arrays(call, 4) || !of_numbers(call, 1)) return fail(call, wrong);
  ffi_buffer **in = call->in.values, *out = call->out.values[0];
  int64_t size;
  if (!same(in[3], out, out->dtype, &size)) return fail(call, wrong);
  sparse s = {.rate = in[0]->data, .x = in[1]->data, .v = in[2]->data, .w = in[3]->data, .out = out->data, .gradient = 1};
  return sparse_product(call, &s, in[1], out, in[2]);
}

// ---------------------------------------------------------------- sets of matrices

// multiply does the products of a call's two sets of matrices [S, V, ., .].
static void* multiply(const ffi_call* call, product* p) {
  const ffi_buffer *a = call->in.values[0], *b = call->in.values[1], *z = call->out.values[0];
  const int d = is_double(call);
  p->panels = (p->columns + chosen->side[d] - 1) / chosen->side[d];
  p->a = a->data, p->b = b->data, p->z = z->data;
  const int64_t parts = z->dims[0] * z->dims[1] * p->panels;
  task t = {.product = p};
  if (parts > INT32_MAX) return fail(call, wrong);
  run(call, chosen->product[d], &t, (int)parts);
  return t.failed ? no_memory(call) : NULL;
}

// matrices says whether a call takes two sets of as many matrices and returns one.
static int matrices(const ffi_call* call) {
  if (!arrays(call, 2)) return 0;
  const ffi_buffer* of[] = {call->in.values[0], call->in.values[1], call->out.values[0]};
  for (int i = 0; i < 3; i++) {
    if (of[i]->dtype != of[2]->dtype || of[i]->rank != 4) return 0;
    for (int axis = 0; axis < 4; axis++)
      if (of[i]->dims[axis] < 1 || of[i]->dims[axis] > 1 << 24) return 0;
    if (of[i]->dims[0] != of[2]->dims[0] || of[i]->dims[1] != of[2]->dims[1]) return 0;
  }
  return 1;
}

static int of_size(const ffi_buffer* x, int rows, int columns) { return x->dims[2] == rows && x->dims[3] == columns; }

// product_of: x [S, V, B, K], w [S, V, L, K] → z [S, V, B, L] = x wᵀ
static void* product_of(ffi_call* call) {
  if (answered(call)) return NULL;
  if (!matrices(call)) return fail(call, wrong);
  ffi_buffer *x = call->in.values[0], *w = call->in.values[1];
  const int B = (int)x->dims[2], K = (int)x->dims[3], W = (int)w->dims[2];
  if (!of_size(w, W, K) || !of_size(call->out.values[0], B, W)) return fail(call, wrong);
  product p = {.rows = B, .columns = W, .depth = K, .turned = 1, .row = K, .step = 1};
  return multiply(call, &p);
}

// product_input: v [S, V, B, L], w → v w, as x
static void* product_input(ffi_call* call) {
  if (answered(call)) return NULL;
  if (!matrices(call)) return fail(call, wrong);
  ffi_buffer *v = call->in.values[0], *w = call->in.values[1];
  const int B = (int)v->dims[2], W = (int)v->dims[3], K = (int)w->dims[3];
  if (!of_size(w, W, K) || !of_size(call->out.values[0], B, K)) return fail(call, wrong);
  product p = {.rows = B, .columns = K, .depth = W, .row = W, .step = 1};
  return multiply(call, &p);
}

// product_weights: v, x → vᵀ x, as w
static void* product_weights(ffi_call* call) {
  if (answered(call)) return NULL;
  if (!matrices(call)) return fail(call, wrong);
  ffi_buffer *v = call->in.values[0], *x = call->in.values[1];
  const int B = (int)v->dims[2], W = (int)v->dims[3], K = (int)x->dims[3];
  if (!of_size(x, B, K) || !of_size(call->out.values[0], W, K)) return fail(call, wrong);
  product p = {.rows = W, .columns = K, .depth = B, .row = 1, .step = W};
  return multiply(call, &p);
}

// nasml_handlers are the handlers by name; the last has none.
const struct {
  const char* name;
  void* (*handler)(ffi_call*);
} nasml_handlers[] = {
    {"nasml_depthwise", depthwise},
    {"nasml_depthwise_input", depthwise_input},
    {"nasml_depthwise_kernel", depthwise_kernel},
    {"nasml_max_pool", max_pool},
    {"nasml_max_pool_input", max_pool_input},
    {"nasml_mean_pool", mean_pool},
    {"nasml_mean_pool_input", mean_pool_input},
    {"nasml_normal", normal},
    {"nasml_normal_input", normal_input},
    {"nasml_weighted", weighted},
    {"nasml_weighted_gradient", weighted_gradient},
    {"nasml_rectified", rectified},
    {"nasml_rectified_gradient", rectified_gradient},
    {"nasml_stage", stage},
    {"nasml_stage_gradient", stage_gradient},
    {"nasml_stage_input", stage_input},
    {"nasml_dense", dense},
    {"nasml_dense_gradient", dense_gradient},
    {"nasml_dense_input", dense_input},
    {"nasml_linear", linear},
    {"nasml_linear_gradient", linear_gradient},
    {"nasml_linear_input", linear_input},
    {"nasml_squares", squares},
    {"nasml_momentum", momentum},
    {"nasml_nesterov", nesterov},
    {"nasml_running", running},
    {"nasml_sparse", sparse_of},
    {"nasml_sparse_gradient", sparse_gradient},
    {"nasml_sparse_descent", sparse_descent},
    {"nasml_product", product_of},
    {"nasml_product_input", product_input},
    {"nasml_product_weights", product_weights},
    {NULL, NULL},
};
