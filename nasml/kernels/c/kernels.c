// Handlers that XLA calls in the place of depthwise convolutions and pools, and
// the table of them. A handler looks at its arrays, divides the work into parts
// that do not depend on the number of threads, and lets XLA's threads do them.
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ffi.h"
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

// A job is shared by the thread that was called and those that help it; who
// leaves it last frees it. A helper that comes late finds no part left and
// looks at nothing else: the task may be gone.
typedef struct {
  part_of_task work;
  const task* task;
  int parts;
  atomic_int next, done, users;
} job;

static void leave(job* j) {
  if (atomic_fetch_sub(&j->users, 1) == 1) free(j);
}

static void take_parts(job* j) {
  for (int part; (part = atomic_fetch_add(&j->next, 1)) < j->parts;) {
    j->work(j->task, part);
    atomic_fetch_add(&j->done, 1);
  }
}

static void help(void* data) {
  take_parts(data);
  leave(data);
}

static void drop(const ffi_call* call, void* error) {
  ffi_error_destroy destroy = {.struct_size = sizeof destroy, .error = error};
  if (error) call->api->error_destroy(&destroy);
}

static int threads_of(const ffi_call* call) {
  int64_t threads = 1;
  ffi_threads ask = {.struct_size = sizeof ask, .context = call->context, .threads = &threads};
  void* error = call->api->num_threads(&ask);
  drop(call, error);
  return error ? 1 : (int)threads;
}

// run does all parts of a task. It needs no helper to come.
static void run(const ffi_call* call, part_of_task work, const task* t, int parts) {
  int helpers = parts > 1 ? threads_of(call) - 1 : 0;
  if (helpers > parts - 1) helpers = parts - 1;
  job* j = helpers > 0 ? malloc(sizeof *j) : NULL;
  if (!j) {
    for (int part = 0; part < parts; part++) work(t, part);
    return;
  }
  *j = (job){.work = work, .task = t, .parts = parts};
  atomic_init(&j->next, 0);
  atomic_init(&j->done, 0);
  atomic_init(&j->users, 1 + helpers);
  for (int i = 0; i < helpers; i++) {
    ffi_schedule ask = {.struct_size = sizeof ask, .context = call->context, .task = help, .data = j};
    void* error = call->api->schedule(&ask);
    if (error) leave(j);
    drop(call, error);
  }
  take_parts(j);
  while (atomic_load(&j->done) < parts) sched_yield(); // others are at their last part
  leave(j);
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
  int* table = malloc(sizeof(int) * (size_t)(t->height + t->width) * k);
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
  free(table);
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
enum { MOST_PARTS = 16 };

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
  t.x = x->data, t.v = v->data, t.sums = malloc(n * size * t.parts);
  if (!t.sums) return fail(call, "nasml: no memory for a kernel");
  run(call, chosen->depthwise_kernel[is_double(call)], &t, t.parts);
  for (size_t i = 0; i < n; i++) {
    double sum = 0; // of few numbers, for either type
    for (int part = 0; part < t.parts; part++)
      sum += is_double(call) ? ((double*)t.sums)[part * n + i] : ((float*)t.sums)[part * n + i];
    if (is_double(call)) ((double*)out->data)[i] = sum;
    else ((float*)out->data)[i] = (float)sum;
  }
  free(t.sums);
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

// mean_of is the mean over all pixels of the k-th sum of a channel.
static double mean_of(const task* t, int is_double, int k, int c) {
  double sum = 0;
  for (int part = 0; part < t->parts; part++) sum += number(t->sums, is_double, ((size_t)part * 3 + k) * t->channels + c);
  return sum / ((double)t->images * t->height * t->width);
}

static const double epsilon = 1e-5; // as kernels.go has it

// batch_norm: x → (x − mean)/√(var + ε); batch_norm_input: x, v → its gradient,
//
//	v/σ − mean(v)/σ − (x − mean) mean(v (x − mean))/σ³, σ = √(var + ε).
static void* normalize(ffi_call* call, int inputs) {
  if (answered(call)) return NULL;
  task t;
  if (!prepared(call, &t, inputs, "444")) return fail(call, wrong);
  const ffi_buffer *x = call->in.values[0], *v = call->in.values[inputs - 1], *out = call->out.values[0];
  large(&t, x);
  if (memcmp(x->dims, out->dims, 4 * sizeof *x->dims) || memcmp(v->dims, out->dims, 4 * sizeof *x->dims))
    return fail(call, wrong);
  const int d = is_double(call), C = t.channels;
  const size_t size = d ? sizeof(double) : sizeof(float);
  t.parts = MOST_PARTS;
  t.sums = calloc((3 * MOST_PARTS + 4) * (size_t)C, size);
  if (!t.sums) return fail(call, "nasml: no memory for a kernel");
  t.mean = (char*)t.sums + 3 * MOST_PARTS * C * size;
  t.slope = (char*)t.mean + C * size, t.scale = (char*)t.slope + C * size, t.shift = (char*)t.scale + C * size;
  t.x = x->data, t.v = inputs == 2 ? v->data : NULL, t.out = out->data;
  run(call, chosen->batch_sum[d], &t, t.parts);
  for (int c = 0; c < C; c++) set_number(t.mean, d, c, mean_of(&t, d, 0, c));
  run(call, chosen->batch_moments[d], &t, t.parts);
  for (int c = 0; c < C; c++) {
    const double inverse = 1 / sqrt(mean_of(&t, d, 0, c) + epsilon);
    set_number(t.slope, d, c, t.v ? -mean_of(&t, d, 2, c) * inverse * inverse * inverse : inverse);
    set_number(t.scale, d, c, inverse);
    set_number(t.shift, d, c, -mean_of(&t, d, 1, c) * inverse);
  }
  run(call, chosen->batch_affine[d], &t, t.parts);
  free(t.sums);
  return NULL;
}

static void* batch_norm(ffi_call* call) { return normalize(call, 1); }
static void* batch_norm_input(ffi_call* call) { return normalize(call, 2); }

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
    {"nasml_batch_norm", batch_norm},
    {"nasml_batch_norm_input", batch_norm_input},
    {"nasml_mean_pool", mean_pool},
    {"nasml_mean_pool_input", mean_pool_input},
    {NULL, NULL},
};
