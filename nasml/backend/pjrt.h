// The part of PJRT's C interface (version 0.x, x ≥ 54) that hook.c uses. PJRT
// only adds to the end of its structures and of its table of functions, so
// that places and names here hold for every later version; TestPJRTLayout
// compares them with the whole interface.
#ifndef NASML_PJRT_H
#define NASML_PJRT_H
#include <stddef.h>
#include <stdint.h>

typedef struct nasml_extension {
  size_t struct_size;
  int type;
  struct nasml_extension* next;
} nasml_extension;

// Places in the table of functions, after its head.
enum {
  NASML_ERROR_DESTROY = 0,
  NASML_ERROR_MESSAGE = 1,
  NASML_CLIENT_CREATE = 10,
  NASML_CLIENT_DESTROY = 11,
  NASML_CLIENT_PLATFORM_VERSION = 14,
  NASML_CLIENT_ADDRESSABLE_DEVICES = 16,
  NASML_CLIENT_COMPILE = 20,
  NASML_DEVICE_DESCRIPTION_KIND = 26,
  NASML_DEVICE_GET_DESCRIPTION = 29,
  NASML_EXECUTABLE_DESTROY = 40,
  NASML_EXECUTABLE_SERIALIZE = 49,
  NASML_LOADED_EXECUTABLE_DESTROY = 50,
  NASML_LOADED_EXECUTABLE_GET_EXECUTABLE = 51,
  NASML_EXECUTABLE_DESERIALIZE_AND_LOAD = 56,
  NASML_EXTENSION_FFI = 5, // an extension's type
};

typedef void* (*nasml_function)(void*);

// The plugin's table: its head, then functions, each of which takes a pointer to
// its own structure of arguments and returns an error or NULL.
typedef struct {
  size_t struct_size;
  nasml_extension* extensions;
  struct {
    size_t struct_size;
    nasml_extension* extensions;
    int major, minor;
  } version;
  nasml_function functions[];
} nasml_api;

// Each structure of arguments begins with its size and a list of extensions.
#define NASML_ARGS(name, fields) \
  typedef struct {               \
    size_t struct_size;          \
    nasml_extension* extensions; \
    fields                       \
  } name

NASML_ARGS(nasml_program, char* code; size_t code_size; const char* format; size_t format_size;);
NASML_ARGS(nasml_error_destroy, void* error;);
NASML_ARGS(nasml_error_message, const void* error; const char* message; size_t message_size;);
NASML_ARGS(nasml_platform_version, void* client; const char* version; size_t version_size;);
NASML_ARGS(nasml_devices, void* client; void* const* devices; size_t num_devices;);
NASML_ARGS(nasml_get_description, void* device; void* description;);
NASML_ARGS(nasml_kind, void* description; const char* kind; size_t kind_size;);
NASML_ARGS(nasml_compile, void* client; const nasml_program* program; const char* options; size_t options_size;
           void* executable;);
NASML_ARGS(nasml_get_executable, void* loaded; void* executable;);
NASML_ARGS(nasml_executable_destroy, void* executable;);
NASML_ARGS(nasml_client_create, const void* options; size_t num_options; void* callbacks[4]; void* client;);
NASML_ARGS(nasml_client_destroy, void* client;);
NASML_ARGS(nasml_serialize, const void* executable; const char* bytes; size_t size; void* serialized;
           void (*deleter)(void*););
NASML_ARGS(nasml_deserialize, void* client; const char* bytes; size_t size; void* loaded; const char* options;
           size_t options_size;);

// The extension for handlers, and what it takes to register one.
typedef struct {
  nasml_extension base;
  nasml_function type_id_register, user_data_add, register_handler;
} nasml_ffi;

typedef struct {
  size_t struct_size;
  const char* target;
  size_t target_size;
  void* handler;
  const char* platform;
  size_t platform_size;
  int traits;
} nasml_register;

#endif
