// The part of XLA's interface for handlers (XLA FFI, version 0.x) that
// kernels.c uses: what a handler is called with, and how many threads it may use.
#ifndef NASML_FFI_H
#define NASML_FFI_H
#include <stddef.h>
#include <stdint.h>

enum { FFI_F32 = 11, FFI_F64 = 12, FFI_S64 = 5 };      // types of numbers
enum { FFI_SCALAR = 3 };                               // a type of attributes
enum { FFI_METADATA = 1, FFI_INVALID_ARGUMENT = 3 };   // type of extension, code of error

typedef struct ffi_extension {
  size_t struct_size;
  int type;
  struct ffi_extension* next;
} ffi_extension;

typedef struct {
  size_t struct_size;
  ffi_extension* extensions;
  int major, minor;
} ffi_version;

// A question for the handler's version in the place of a call.
typedef struct {
  ffi_extension base;
  struct {
    size_t struct_size;
    ffi_version version;
    uint32_t traits;
  } * metadata;
} ffi_metadata;

typedef struct {
  size_t struct_size;
  ffi_extension* extensions;
  const char* message;
  int code;
} ffi_error_create;

typedef struct {
  size_t struct_size;
  ffi_extension* extensions;
  void* error;
} ffi_error_destroy;

typedef struct {
  size_t struct_size;
  ffi_extension* extensions;
  void* context;
  int64_t* threads;
} ffi_threads;

typedef struct {
  size_t struct_size;
  ffi_extension* extensions;
  ffi_version version;
  void* internal;
  void* (*error_create)(ffi_error_create*);
  void* error_message;
  void (*error_destroy)(ffi_error_destroy*);
  void* between[9]; // registration, streams, contexts, states, memory and XLA's own threads
  void* (*num_threads)(ffi_threads*);
} ffi_api;

typedef struct {
  size_t struct_size;
  ffi_extension* extensions;
  int dtype;
  void* data;
  int64_t rank;
  int64_t* dims;
} ffi_buffer;

typedef struct {
  size_t struct_size;
  ffi_extension* extensions;
  int64_t size;
  int* types;
  ffi_buffer** values;
} ffi_buffers;

typedef struct {
  const char* text;
  size_t length;
} ffi_span;

typedef struct {
  int dtype;
  void* value;
} ffi_scalar;

typedef struct {
  size_t struct_size;
  ffi_extension* extensions;
  int64_t size;
  int* types;
  ffi_span** names;
  ffi_scalar** values;
} ffi_attributes;

typedef struct {
  size_t struct_size;
  ffi_extension* extensions;
  const ffi_api* api;
  void* context;
  int stage;
  ffi_buffers in, out;
  ffi_attributes attributes;
} ffi_call;

#endif
