// The kernels for one kind of processor: the compiler is called with ISA, the
// name of the kind, and WIDTH, the bytes of its vectors. Channels are taken in
// groups of as many lanes as there are, then of fewer, down to one.
#include "task.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define ALWAYS inline __attribute__((always_inline))
#define MAX_K 7
#define PASTE2(a, b, c) a##_##b##_##c
#define PASTE(a, b, c) PASTE2(a, b, c)
#define N(name) PASTE(name, T, L)

#define T float
#define I int32_t
#define L 1
#include "lanes.h"
#undef L
#define L 4
#include "lanes.h"
#undef L
#if WIDTH >= 32
#define L 8
#include "lanes.h"
#undef L
#endif
#if WIDTH >= 64
#define L 16
#include "lanes.h"
#undef L
#endif
#undef T
#undef I

#define T double
#define I int64_t
#define L 1
#include "lanes.h"
#undef L
#define L 2
#include "lanes.h"
#undef L
#if WIDTH >= 32
#define L 4
#include "lanes.h"
#undef L
#endif
#if WIDTH >= 64
#define L 8
#include "lanes.h"
#undef L
#endif
#undef T
#undef I

// In groups of lanes, the widest first.
#define GROUPS(kernel, type, lanes) \
  for (; c + (lanes) <= t->channels; c += (lanes)) kernel##_##type##_##lanes(t, part, c);
#if WIDTH >= 64
#define FLOATS(kernel) GROUPS(kernel, float, 16) GROUPS(kernel, float, 8)
#define DOUBLES(kernel) GROUPS(kernel, double, 8) GROUPS(kernel, double, 4)
#elif WIDTH >= 32
#define FLOATS(kernel) GROUPS(kernel, float, 8)
#define DOUBLES(kernel) GROUPS(kernel, double, 4)
#else
#define FLOATS(kernel)
#define DOUBLES(kernel)
#endif
#define KERNEL(kernel)                                      \
  static void kernel##_floats(const task* t, int part) {    \
    int c = 0;                                              \
    FLOATS(kernel)                                          \
    GROUPS(kernel, float, 4) GROUPS(kernel, float, 1)       \
  }                                                         \
  static void kernel##_doubles(const task* t, int part) {   \
    int c = 0;                                              \
    DOUBLES(kernel)                                         \
    GROUPS(kernel, double, 2) GROUPS(kernel, double, 1)     \
  }
KERNEL(depthwise)
KERNEL(depthwise_input)
KERNEL(depthwise_kernel)
KERNEL(max_pool)
KERNEL(max_pool_input)
KERNEL(mean_pool)
KERNEL(mean_pool_input)

// EACH_OF calls a row's function for all channels.
#define ROW_GROUPS(f, type, lanes, n, ...) \
  for (; c_ + (lanes) <= (n); c_ += (lanes)) f##_##type##_##lanes(__VA_ARGS__, c_);
#if WIDTH >= 64
#define EACH_float(f, n, ...)                                             \
  do {                                                                    \
    int c_ = 0;                                                           \
    ROW_GROUPS(f, float, 16, n, __VA_ARGS__) ROW_GROUPS(f, float, 8, n, __VA_ARGS__) \
    ROW_GROUPS(f, float, 4, n, __VA_ARGS__) ROW_GROUPS(f, float, 1, n, __VA_ARGS__)  \
  } while (0)
#define EACH_double(f, n, ...)                                            \
  do {                                                                    \
    int c_ = 0;                                                           \
    ROW_GROUPS(f, double, 8, n, __VA_ARGS__) ROW_GROUPS(f, double, 4, n, __VA_ARGS__) \
    ROW_GROUPS(f, double, 2, n, __VA_ARGS__) ROW_GROUPS(f, double, 1, n, __VA_ARGS__) \
  } while (0)
#elif WIDTH >= 32
#define EACH_float(f, n, ...)                                             \
  do {                                                                    \
    int c_ = 0;                                                           \
    ROW_GROUPS(f, float, 8, n, __VA_ARGS__)                               \
    ROW_GROUPS(f, float, 4, n, __VA_ARGS__) ROW_GROUPS(f, float, 1, n, __VA_ARGS__) \
  } while (0)
#define EACH_double(f, n, ...)                                            \
  do {                                                                    \
    int c_ = 0;                                                           \
    ROW_GROUPS(f, double, 4, n, __VA_ARGS__)                              \
    ROW_GROUPS(f, double, 2, n, __VA_ARGS__) ROW_GROUPS(f, double, 1, n, __VA_ARGS__) \
  } while (0)
#else
#define EACH_float(f, n, ...)                                             \
  do {                                                                    \
    int c_ = 0;                                                           \
    ROW_GROUPS(f, float, 4, n, __VA_ARGS__) ROW_GROUPS(f, float, 1, n, __VA_ARGS__) \
  } while (0)
#define EACH_double(f, n, ...)                                            \
  do {                                                                    \
    int c_ = 0;                                                           \
    ROW_GROUPS(f, double, 2, n, __VA_ARGS__) ROW_GROUPS(f, double, 1, n, __VA_ARGS__) \
  } while (0)
#endif

// SIDE vectors are the columns of a panel of products: as many as registers leave.
#if WIDTH >= 64
#define SIDE 4
#else
#define SIDE 2
#endif

#define R(name) PASTE_TYPE(name, T)
#define PASTE_TYPE(name, type) PASTE_TYPE2(name, type)
#define PASTE_TYPE2(name, type) name##_##type##s
#if WIDTH >= 64
#define WIDE_float 16
#define WIDE_double 8
#elif WIDTH >= 32
#define WIDE_float 8
#define WIDE_double 4
#else
#define WIDE_float 4
#define WIDE_double 2
#endif

#define T float
#define I int32_t
#define L WIDE_float
#define EACH EACH_float
#include "stage.h"
#include "dense.h"
#include "sparse.h"
#include "product.h"
#undef T
#undef I
#undef L
#undef EACH
#define T double
#define I int64_t
#define L WIDE_double
#define EACH EACH_double
#include "stage.h"
#include "dense.h"
#include "sparse.h"
#include "product.h"
#undef T
#undef I
#undef L
#undef EACH

#define BOTH(kernel) .kernel = {kernel##_floats, kernel##_doubles}
#define LOOPS2(isa) loops_##isa
#define LOOPS(isa) LOOPS2(isa)
const loops LOOPS(ISA) = {BOTH(depthwise), BOTH(depthwise_input), BOTH(depthwise_kernel), BOTH(max_pool),
                          BOTH(max_pool_input), BOTH(mean_pool), BOTH(mean_pool_input), BOTH(moments), BOTH(weighted), BOTH(products), BOTH(gated_sum), BOTH(gated), BOTH(stage),
                          BOTH(stage_gradient), BOTH(dense_weights), BOTH(dense), BOTH(dense_gradient), BOTH(dense_slopes), BOTH(pointwise), BOTH(pointwise_gradient), BOTH(squares), BOTH(momentum),
                          BOTH(listed), BOTH(sparse), BOTH(sparse_gradient), BOTH(product),
                          .tall = {4 * WIDE_float, 4 * WIDE_double},
                          .side = {SIDE * WIDE_float, SIDE * WIDE_double}};
