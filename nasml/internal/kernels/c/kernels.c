// Handlers that XLA calls in the place of functions that have kernels, and the
// table of them. A handler looks at its arrays, divides the work into parts
// that do not depend on the number of threads, and lets threads do them.
#define _GNU_SOURCE // of CPU_COUNT
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ffi.h"
#include "jobs.h"
#include "rooms.h"
#include "task.h"

// ---------------------------------------------------------------- processors

extern const loops loops_plain;
#if defined(__x86_64__)
extern const loops loops_avx2, loops_avx512;
#endif

static const loops* best(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("fma"))
    return &loops_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &loops_avx2;
#endif
  return &loops_plain;
}

static const loops* chosen; // by nasml_choose

// nasml_choose takes the kernels for a kind of processor, "plain", "avx2" or
// "avx512", or the best that this one has, "". It returns 0 where it cannot.
int nasml_choose(const char* isa) {
  const loops* most = best();
  chosen = most;
  if (!*isa) return 1;
  if (!strcmp(isa, "plain")) chosen = &loops_plain;
#if defined(__x86_64__)
  else if (!strcmp(isa, "avx2") && most != &loops_plain) chosen = &loops_avx2;
  else if (!strcmp(isa, "avx512") && most == &loops_avx512) chosen = &loops_avx512;
#endif
  else return 0;
  return 1;
}

// ---------------------------------------------------------------- threads

// processors are those that this process may use.
static int processors(void) {
#if defined(__linux__)
  cpu_set_t set;
  if (!sched_getaffinity(0, sizeof set, &set)) return CPU_COUNT(&set);
#endif
  return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

// threads_of is how many threads a call may use: XLA has more than there are processors
// where these are few.
static int threads_of(const ffi_call* call) {
  int64_t threads = 1;
  ffi_threads ask = {.struct_size = sizeof ask, .context = call->context, .threads = &threads};
  void* error = call->api->num_threads(&ask);
  ffi_error_destroy destroy = {.struct_size = sizeof destroy, .error = error};
  if (error) call->api->error_destroy(&destroy);
  const int most = processors();
  return error ? 1 : threads < most ? (int)threads : most;
}

// run does all parts of a task.
static void run(const ffi_call* call, part_of_task work, const task* t, int parts) {
  share(work, t, parts, parts > 1 ? threads_of(call) - 1 : 0);
}

// ---------------------------------------------------------------- arrays

static void* fail(const ffi_call* call, const char* message) {
  ffi_error_create create = {.struct_size = sizeof create, .message = message, .code = FFI_INVALID_ARGUMENT};
  return call->api->error_create(&create);
}

static int attribute(const ffi_call* call, const char* name, int otherwise) {
  for (int64_t i = 0; i < call->attributes.size; i++) {
    const ffi_span* at = call->attributes.names[i];
    if (at->length != strlen(name) || memcmp(at->text, name, at->length)) continue;
    if (call->attributes.types[i] != FFI_SCALAR || call->attributes.values[i]->dtype != FFI_S64) return -1;
    return (int)*(const int64_t*)call->attributes.values[i]->value;
  }
  return otherwise;
}

// large and small fill in one side of a task from an array [images, rows,
// columns, channels].
static void large(task* t, const ffi_buffer* x) {
  t->images = (int)x->dims[0], t->height = (int)x->dims[1], t->width = (int)x->dims[2], t->channels = (int)x->dims[3];
}

static int small_fits(task* t, const ffi_buffer* y) {
  t->rows = (t->height + t->stride - 1) / t->stride, t->columns = (t->width + t->stride - 1) / t->stride;
  return y->dims[0] == t->images && y->dims[1] == t->rows && y->dims[2] == t->columns && y->dims[3] == t->channels;
}

static int kernel_fits(const task* t, const ffi_buffer* kernel) {
  return kernel->dims[0] == t->k && kernel->dims[1] == t->k && kernel->dims[2] == t->channels;
}

// places are the rows of y above the rows of x, and the columns likewise; one
// block that the caller frees.
static int* places(const task* t, int k, int dilation, int pad) {
  int* table = nasml_room(sizeof(int) * (size_t)(t->height + t->width) * k);
  if (!table) return NULL;
  for (int axis = 0, *out = table; axis < 2; axis++) {
    const int n = axis ? t->width : t->height, m = axis ? t->columns : t->rows;
    for (int h = 0; h < n; h++)
      for (int u = 0; u < k; u++) {
        const int at = h + pad - u * dilation;
        *out++ = at >= 0 && at % t->stride == 0 && at / t->stride < m ? at / t->stride : -1;
      }
  }
  return table;
}

// answer tells XLA of which version of its interface the handlers are: its own.
static int answered(const ffi_call* call) {
  if (!call->extensions || call->extensions->type != FFI_METADATA) return 0;
  ffi_metadata* ask = (ffi_metadata*)call->extensions;
  ask->metadata->version.major = call->api ? call->api->version.major : 0;
  ask->metadata->version.minor = call->api ? call->api->version.minor : 1;
  ask->metadata->traits = 0;
  return 1;
}

// prepared looks at the numbers and types of the arrays. ranks holds their
// ranks, inputs first.
static int prepared(const ffi_call* call, task* t, int inputs, const char* ranks) {
  *t = (task){.stride = attribute(call, "stride", 1), .dilation = attribute(call, "dilation", 1)};
  if (!chosen || call->in.size != inputs || call->out.size != 1 || t->stride < 1 || t->dilation < 1) return 0;
  const int dtype = call->out.values[0]->dtype;
  if (dtype != FFI_F32 && dtype != FFI_F64) return 0;
  for (int i = 0; i <= inputs; i++) {
    const ffi_buffer* a = i < inputs ? call->in.values[i] : call->out.values[0];
    if (a->dtype != dtype || a->rank != ranks[i] - '0') return 0;
    for (int64_t axis = 0; axis < a->rank; axis++)
      if (a->dims[axis] < 1 || a->dims[axis] > 1 << 30) return 0;
  }
  return 1;
}

static int is_double(const ffi_call* call) { return call->out.values[0]->dtype == FFI_F64; }

static int kernel_size(task* t, const ffi_buffer* kernel) {
  t->k = (int)kernel->dims[0];
  t->pad = t->dilation * (t->k - 1) / 2;
  return t->k == 3 || t->k == 5 || t->k == 7;
}

static const char* const wrong = "nasml: a kernel was called with other arrays than it is for";

// ---------------------------------------------------------------- handlers

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
