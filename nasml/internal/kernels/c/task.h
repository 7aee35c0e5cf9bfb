// What a kernel works on: NHWC arrays of float or double.
#ifndef NASML_TASK_H
#define NASML_TASK_H

#include <stddef.h>
#include <stdint.h>

// A convolution with all channels, kernel [k, k, channels, wide].
typedef struct {
  const void* kernel;
  void *ready, *turned;           // the weights of every place [places, channels, wide], or [places, wide, channels]
  void* z;                        // [images, height, width, wide]
  double* moments;                // [parts, 2, wide], or of a gradient [parts, 2, channels]
  const void *v, *own, *bend;     // of a gradient, as those of a stage
  void* sums;                     // [parts, places, channels, wide]; NULL: without the kernel's gradient
  void* slopes;                   // the kernel's gradient
} filter;

// Products of examples x [sets, batch, high], most numbers of which are 0, with matrices
// w [sets, high, variants, wide].
typedef struct {
  int batch, high, variants, wide;
  const void *w, *x, *v;  // v [sets, variants, batch, wide]: of a gradient; w: what it is subtracted from,
  const void* rate;       // so many times
  void* out;
  int gradient, lists, blocks;  // lists of a set, parts of a variant
  size_t room;                  // for the entries of a set
  int32_t *first, *at;          // [sets, lists + 1], [sets, room]: a list's first entry; where each stands,
  void* value;                  // and what it is
} sparse;

// Products of matrices, z [sets, rows, columns] = a b.
typedef struct {
  int rows, columns, depth;
  int panels;            // of a matrix z: groups of columns
  int turned;            // b is [sets, columns, depth], not [sets, depth, columns]
  const void *a, *b;
  size_t row, step;      // a's rows stand so far apart, and what is added up
  void* z;
} product;

typedef struct {
  int images, height, width, channels;  // of x, the large side
  int rows, columns;                    // of y, the small side, ⌈height/stride⌉ × ⌈width/stride⌉
  int k, stride, dilation, pad;         // pad = dilation (k − 1)/2
  const void *x, *kernel, *v;           // input, kernel [k, k, channels], gradient of y
  void* out;
  int parts;           // of sums: each part has its own
  void* sums;          // [parts, k, k, channels] of a kernel's gradient, of type T
  double* moments;     // [parts, 2, channels or width] of other sums
  _Atomic int failed;  // there was no memory for a part
  // The row of y that sees row h of x as its tap u, or −1: above[h k + u]; left
  // is the same for columns. Of gradients in x.
  const int *above, *left;

  // Of a stage: y[., m] = Σ_c depthwise(max(0, scale x + shift))[., c] pointwise[c, m].
  int wide;                        // channels of y
  const void *affine, *pointwise;  // [2, channels], [channels, wide]
  const void *own, *z, *bend;      // [wide]; y itself; [2, wide]: v is own v + bend₀ y + bend₁
  void* sums2;                     // [parts, channels, wide]; NULL: without the kernels' gradients

  // Of convolutions of one map with all channels, each to wide of them.
  int linear;       // of scale x + shift, not of max(0, scale x + shift)
  int filters;      // as many
  filter* filter;

  // Of sums of maps of the pixels' channels.
  int maps;
  const void* const* map;
  const void* weights;             // [maps + 1, channels]

  // Of sums of maps that are cut off: weights and floors are [maps].
  const void* floors;
  const void* const* affines;      // [2, channels] each
  void* const* slopes;             // the gradients in the maps

  // Of steps of many arrays: the numbers of array i and where it is.
  const int64_t* sizes;
  const void *const *w, *const *g, *const *velocity;
  void *const *w2, *const *velocity2;
  const void* rates;  // η, factor, μ, decay
  int ahead;          // Nesterov's

  const sparse* sparse;
  const product* product;
} task;

// Rooms for vectors: of some bytes, NULL without memory, and given back by who took it.
void* nasml_room(size_t size);
void nasml_leave(void* room);

// One part of a task, such as an image.
typedef void (*part_of_task)(const task*, int part);

// The kernels for float (0) and double (1).
typedef struct {
  part_of_task depthwise[2], depthwise_input[2], depthwise_kernel[2];
  part_of_task max_pool[2], max_pool_input[2], mean_pool[2], mean_pool_input[2];
  part_of_task moments[2], weighted[2], products[2], gated_sum[2], gated[2], stage[2], stage_gradient[2];
  part_of_task dense_weights[2], dense[2], dense_gradient[2], dense_slopes[2], pointwise[2], pointwise_gradient[2];
  part_of_task squares[2], momentum[2];
  part_of_task listed[2], sparse[2], sparse_gradient[2], product[2];
  int tall[2], side[2];  // columns of a part of sparse products, and of products
} loops;

#endif
