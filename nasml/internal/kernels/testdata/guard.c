// Calls every handler on arrays of random odd shapes that lie alone in memory: with
// AddressSanitizer whatever is read or written beside them ends the program. All
// of a result has to be written, and no input changed.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../c/ffi.h"

int nasml_choose(const char* isa);
extern const struct {
  const char* name;
  void* (*handler)(ffi_call*);
} nasml_handlers[];

static uint64_t state = 1;

static int draw(int n) {  // 0 … n − 1
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int)((state >> 33) % (uint64_t)n);
}

// ---------------------------------------------------------------- XLA's side

enum { MOST = 96 };
static int failed;

static void* num_threads(ffi_threads* ask) {
  *ask->threads = 1 + draw(4);
  return NULL;
}

static void* error_create(ffi_error_create* e) {
  fprintf(stderr, "%s\n", e->message);
  return &failed;
}

static void error_destroy(ffi_error_destroy* e) { (void)e; }

static const ffi_api api = {
    .error_create = error_create, .error_destroy = error_destroy, .num_threads = num_threads};

// ---------------------------------------------------------------- arrays

typedef struct {
  ffi_buffer buffer;
  int64_t dims[4], size;
  void* copy;
} array;

static array arrays[MOST];
static ffi_buffer* values[MOST];
static int count, is_double;

static void add(int rank, int d0, int d1, int d2, int d3) {
  array* a = &arrays[count];
  const int64_t dims[] = {d0, d1, d2, d3};
  memcpy(a->dims, dims, sizeof dims);
  a->size = 1;
  for (int i = 0; i < rank; i++) a->size *= dims[i];
  a->buffer = (ffi_buffer){.dtype = is_double ? FFI_F64 : FFI_F32, .rank = rank, .dims = a->dims};
  a->buffer.data = malloc(a->size * (is_double ? 8 : 4));
  a->copy = malloc(a->size * (is_double ? 8 : 4));
  for (int64_t i = 0; i < a->size; i++) {
    const double x = (draw(2001) - 1000) / 500. + 0.001;
    if (is_double) ((double*)a->buffer.data)[i] = x;
    else ((float*)a->buffer.data)[i] = (float)x;
  }
  memcpy(a->copy, a->buffer.data, a->size * (is_double ? 8 : 4));
  values[count++] = &a->buffer;
}

// thin makes two of three numbers of the last array 0.
static void thin(void) {
  array* a = &arrays[count - 1];
  for (int64_t i = 0; i < a->size; i++)
    if (draw(3)) memset((char*)a->buffer.data + i * (is_double ? 8 : 4), 0, is_double ? 8 : 4);
  memcpy(a->copy, a->buffer.data, a->size * (is_double ? 8 : 4));
}

static int B, H, W, C, M, K, S, D, N;

static void add_kind(char kind) {
  const int h = (H + S - 1) / S, w = (W + S - 1) / S;
  switch (kind) {
    case 'x': add(4, B, H, W, C); break;
    case 'y': add(4, B, h, w, C); break;
    case 'z': add(4, B, h, w, M); break;
    case 'k': add(3, K, K, C, 0); break;
    case 'p': add(2, C, M, 0, 0); break;
    case 'f': add(4, K, K, C, M); break;
    case 'c': add(2, 2, C, 0, 0); break;
    case 'd': add(2, 2, M, 0, 0); break;
    case 'g': add(2, 1, C, 0, 0); break;
    case 'h': add(2, 1, M, 0, 0); break;
    case 'w': add(2, 1, N, 0, 0); break;
    case '1': add(1, 1, 0, 0, 0); break;
    case '4': add(1, 4, 0, 0, 0); break;
    case 'r': add(1, 2 + N, 0, 0, 0); break;
    case 'm': add(1, C, 0, 0, 0); break;
    case 'e': add(3, B, H, 3 * C, 0), thin(); break;
    case 'u': add(4, B, 3 * C, W, 2 * M); break;
    case 'o': add(4, B, W, H, 2 * M); break;
    case 'X': add(4, B, N, 3 * M, 2 * C); break;
    case 'V': add(4, B, N, 3 * M, 9 * W); break;
    case 'Y': add(4, B, N, 9 * W, 2 * C); break;
    default: add(0, 0, 0, 0, 0);  // a scalar
  }
}

// add_all adds arrays as a signature says, N times what stands in parentheses.
static void add_all(const char* kinds) {
  for (; *kinds; kinds++) {
    if (*kinds != '(') {
      add_kind(*kinds);
      continue;
    }
    for (int n = 0; n < N; n++)
      for (const char* k = kinds + 1; *k != ')'; k++) add_kind(*k);
    kinds = strchr(kinds, ')');
  }
}

static void* handler(const char* name) {
  for (int i = 0; nasml_handlers[i].name; i++)
    if (!strcmp(nasml_handlers[i].name, name)) return (void*)nasml_handlers[i].handler;
  return NULL;
}

static int wrong(const char* name, const char* what) {
  fprintf(stderr, "%s: %s: images %d, %d × %d, channels %d and %d, k %d, stride %d, dilation %d, maps %d, double %d\n",
          name, what, B, H, W, C, M, K, S, D, N, is_double);
  return 1;
}

// try calls a handler once.
static int try(const char* name, const char* in, const char* out) {
  count = 0;
  add_all(in);
  const int inputs = count;
  add_all(out);
  for (int i = inputs; i < count; i++) memset(arrays[i].buffer.data, 0xff, arrays[i].size * (is_double ? 8 : 4));
  int64_t stride = S, dilation = D;
  ffi_scalar numbers[] = {{FFI_S64, &dilation}, {FFI_S64, &stride}}, *scalars[] = {&numbers[0], &numbers[1]};
  ffi_span texts[] = {{"dilation", 8}, {"stride", 6}}, *names[] = {&texts[0], &texts[1]};
  int types[] = {FFI_SCALAR, FFI_SCALAR};
  ffi_call call = {.api = &api,
                   .in = {.size = inputs, .values = values},
                   .out = {.size = count - inputs, .values = values + inputs},
                   .attributes = {.size = 2, .types = types, .names = names, .values = scalars}};
  void* (*f)(ffi_call*) = (void* (*)(ffi_call*))handler(name);
  int bad = !f || f(&call) ? wrong(name, "the call failed") : 0;
  for (int i = 0; i < count; i++) {
    array* a = &arrays[i];
    if (i < inputs && memcmp(a->copy, a->buffer.data, a->size * (is_double ? 8 : 4))) bad |= wrong(name, "an input changed");
    for (int64_t n = 0; i >= inputs && n < a->size; n++)
      if (!isfinite(is_double ? ((double*)a->buffer.data)[n] : ((float*)a->buffer.data)[n])) {
        bad |= wrong(name, "a result was not written");
        break;
      }
    free(a->buffer.data), free(a->copy);
  }
  return bad;
}

static int all(void) {
  int bad = try("nasml_depthwise", "xk", "y") | try("nasml_depthwise_input", "yk", "x") |
            try("nasml_depthwise_kernel", "xy", "k") | try("nasml_stage", "xckp", "zdd");
  bad |= try("nasml_stage_gradient", "xckpzhzdd", "xckp") | try("nasml_stage_input", "xckpzhzdd", "xc");
  D = 1;
  bad |= try("nasml_max_pool", "x", "y") | try("nasml_max_pool_input", "xy", "x") | try("nasml_mean_pool", "x", "y") |
         try("nasml_mean_pool_input", "y", "x");
  S = 1;
  bad |= try("nasml_normal", "x", "cc") | try("nasml_normal_input", "xcc", "x") | try("nasml_weighted", "w(xc)", "x") |
         try("nasml_weighted_gradient", "wx(xc)", "w(cg)");
  bad |= try("nasml_rectified", "ww(xc)", "x") | try("nasml_rectified_gradient", "wwx(xc)", "w(xc)");
  K = 1 + 2 * draw(2);
  if (K == 3) N = 1;
  for (const char* of[] = {"dense", "linear"}, **f = of; f < of + 2; f++) {
    char name[64];
    bad |= try(strcat(strcpy(name, "nasml_"), *f), "xc(f)", "(zdd)");
    bad |= try(strcat(name, "_gradient"), "xc(fzhzdd)", "xc(f)");
    bad |= try(strcat(strcat(strcpy(name, "nasml_"), *f), "_input"), "xc(fzhzdd)", "xc");
  }
  K = 3;
  bad |= try("nasml_squares", "1(xkpm)s", "1") | try("nasml_running", "r(cmm)", "(mm)");
  bad |= try("nasml_sparse", "eu", "o") | try("nasml_sparse_gradient", "eo", "u") |
         try("nasml_sparse_descent", "1eou", "u");
  bad |= try("nasml_product", "XY", "V") | try("nasml_product_input", "VY", "X") | try("nasml_product_weights", "VX", "Y");
  bad |= try("nasml_momentum", "4(ppp)xxxsss", "(pp)xxss") | try("nasml_nesterov", "4(mmm)kkk", "(mm)kk");
  return bad;
}

int main(int argc, char** argv) {
  int bad = 0;
  for (int i = 1; i < argc; i++) {
    if (!nasml_choose(argv[i])) continue;  // not of this processor
    for (int n = 0; n < 150 && !bad; n++) {
      B = draw(5) ? 1 + draw(4) : 15 + draw(6), H = 1 + draw(9), W = 1 + draw(9), C = 1 + draw(37), M = 1 + draw(37);
      K = 3 + 2 * draw(3), S = 1 + draw(3), D = 1 + draw(3), N = 1 + draw(9), is_double = draw(2);
      bad = all();
    }
    printf("%s: %s\n", argv[i], bad ? "failed" : "clean");
  }
  return bad;
}
