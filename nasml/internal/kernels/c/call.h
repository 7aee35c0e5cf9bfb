// What a handler asks of its call: the kernels for this processor, threads, and
// whether the arrays are those that it is for.
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
