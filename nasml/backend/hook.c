//go:build cgo && ((linux && (amd64 || arm64)) || (darwin && arm64)) && !noxla

// A copy of a PJRT plugin's table of functions in which compiling a program is
// a function of hook.go, and calls to the plugin's own functions.
#include "hook.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

extern void* nasmlCompile(nasml_compile* args);
extern void nasmlClientEnds(void* client);

static const nasml_api* plugin; // the table of the plugin that was opened

static void* call(int function, void* args) { return plugin->functions[function](args); }

static void* hooked_compile(void* args) { return nasmlCompile(args); }

// The clients that were made and have not ended.
static struct {
  pthread_mutex_t lock;
  void* living[64];
} clients = {.lock = PTHREAD_MUTEX_INITIALIZER};

// replace puts a client into the place of another.
static void replace(void* before, void* after) {
  pthread_mutex_lock(&clients.lock);
  for (int i = 0; i < 64; i++)
    if (clients.living[i] == before) {
      clients.living[i] = after;
      break;
    }
  pthread_mutex_unlock(&clients.lock);
}

// nasml_client is the only client; NULL where there is none, or more than one.
void* nasml_client(void) {
  void* only = NULL;
  int n = 0;
  pthread_mutex_lock(&clients.lock);
  for (int i = 0; i < 64; i++)
    if (clients.living[i]) only = clients.living[i], n++;
  pthread_mutex_unlock(&clients.lock);
  return n == 1 ? only : NULL;
}

static void* hooked_create(void* args) {
  void* error = call(NASML_CLIENT_CREATE, args);
  if (!error) replace(NULL, ((nasml_client_create*)args)->client);
  return error;
}

static void* hooked_destroy(void* args) {
  void* ends = ((nasml_client_destroy*)args)->client;
  nasmlClientEnds(ends);
  replace(ends, NULL);
  return call(NASML_CLIENT_DESTROY, args);
}

// nasml_open loads a plugin and returns the copy of its table; NULL where it is
// no plugin, and NULL with a reason, which the caller frees, where it is of a
// version that is not known here.
const nasml_api* nasml_open(const char* path, char** failed) {
  void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL); // as go-xla does
  const nasml_api* (*get)(void) = library ? (const nasml_api* (*)(void))dlsym(library, "GetPjrtApi") : NULL;
  const nasml_api* table = get ? get() : NULL;
  if (!table) return NULL;
  if (table->version.major != 0 || table->version.minor < 54) {
    char text[80];
    snprintf(text, sizeof text, "its PJRT is version %d.%d, expected 0.54 or a later 0.x", table->version.major,
             table->version.minor);
    *failed = strdup(text);
    return NULL;
  }
  nasml_api* copy = malloc(table->struct_size);
  memcpy(copy, table, table->struct_size);
  copy->functions[NASML_CLIENT_COMPILE] = hooked_compile;
  copy->functions[NASML_CLIENT_CREATE] = hooked_create;
  copy->functions[NASML_CLIENT_DESTROY] = hooked_destroy;
  plugin = table;
  return copy;
}

// nasml_compile_program compiles other code in the place of the given one.
void* nasml_compile_program(const nasml_compile* given, char* code, size_t code_size, void** loaded) {
  nasml_program program = *given->program;
  program.code = code;
  program.code_size = code_size;
  nasml_compile args = *given;
  args.program = &program;
  void* error = call(NASML_CLIENT_COMPILE, &args);
  *loaded = args.executable;
  return error;
}

// nasml_serialize_program writes a compiled program; out->deleter frees it.
void* nasml_serialize_program(void* loaded, nasml_serialize* out) {
  nasml_get_executable get = {.struct_size = sizeof get, .loaded = loaded};
  void* error = call(NASML_LOADED_EXECUTABLE_GET_EXECUTABLE, &get);
  if (error) return error;
  *out = (nasml_serialize){.struct_size = sizeof *out, .executable = get.executable};
  error = call(NASML_EXECUTABLE_SERIALIZE, out);
  nasml_executable_destroy destroy = {.struct_size = sizeof destroy, .executable = get.executable};
  nasml_drop_error(call(NASML_EXECUTABLE_DESTROY, &destroy), NULL, 0);
  return error;
}

void nasml_free_serialized(nasml_serialize* out) { out->deleter(out->serialized); }

void* nasml_load_program(void* client, const char* bytes, size_t size, void** loaded) {
  nasml_deserialize args = {.struct_size = sizeof args, .client = client, .bytes = bytes, .size = size};
  void* error = call(NASML_EXECUTABLE_DESERIALIZE_AND_LOAD, &args);
  *loaded = args.loaded;
  return error;
}

void nasml_drop_program(void* loaded) {
  nasml_executable_destroy args = {.struct_size = sizeof args, .executable = loaded};
  nasml_drop_error(call(NASML_LOADED_EXECUTABLE_DESTROY, &args), NULL, 0);
}

// nasml_describe writes down what a client computes on: the platform's version,
// the number of devices and the kind of the first.
void* nasml_describe(void* client, char* text, size_t room) {
  nasml_platform_version version = {.struct_size = sizeof version, .client = client};
  void* error = call(NASML_CLIENT_PLATFORM_VERSION, &version);
  if (error) return error;
  nasml_devices devices = {.struct_size = sizeof devices, .client = client};
  if ((error = call(NASML_CLIENT_ADDRESSABLE_DEVICES, &devices))) return error;
  nasml_kind kind = {.struct_size = sizeof kind, .kind = ""};
  if (devices.num_devices > 0) {
    nasml_get_description get = {.struct_size = sizeof get, .device = devices.devices[0]};
    if ((error = call(NASML_DEVICE_GET_DESCRIPTION, &get))) return error;
    kind.description = get.description;
    if ((error = call(NASML_DEVICE_DESCRIPTION_KIND, &kind))) return error;
  }
  snprintf(text, room, "%.*s, %zu × %.*s", (int)version.version_size, version.version, devices.num_devices,
           (int)kind.kind_size, kind.kind);
  return NULL;
}

// nasml_drop_error frees an error, if it is one, and writes down what it says.
void nasml_drop_error(void* error, char* text, size_t room) {
  if (!error) return;
  if (room > 0) {
    nasml_error_message message = {.struct_size = sizeof message, .error = error};
    call(NASML_ERROR_MESSAGE, &message);
    snprintf(text, room, "%.*s", (int)message.message_size, message.message);
  }
  nasml_error_destroy destroy = {.struct_size = sizeof destroy, .error = error};
  call(NASML_ERROR_DESTROY, &destroy);
}

// The version of PJRT for which the extension for handlers is known.
enum { FFI_MINOR = 81 };

static const nasml_ffi* handlers_extension(void) {
  if (plugin->version.minor != FFI_MINOR) return NULL;
  for (nasml_extension* e = plugin->extensions; e; e = e->next)
    if (e->type == NASML_EXTENSION_FFI) return (const nasml_ffi*)e;
  return NULL;
}

// nasml_register_kernels loads the kernels' library, takes those for a kind of
// processor, and registers their handlers on the CPU. It returns how many there
// are, with their names; 0 where the plugin takes none, −1 where the library
// does not load, −2 where this processor is of another kind.
int nasml_register_kernels(const char* path, const char* isa, const char** names, int room) {
  const nasml_ffi* ffi = handlers_extension();
  if (!ffi) return 0;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  int (*choose)(const char*) = library ? (int (*)(const char*))dlsym(library, "nasml_choose") : NULL;
  const struct {
    const char* name;
    void* handler;
  }* handlers = library ? dlsym(library, "nasml_handlers") : NULL;
  if (!choose || !handlers) return -1;
  if (!choose(isa)) return -2;
  int n = 0;
  for (; handlers->name && n < room; handlers++) {
    nasml_register args = {.struct_size = sizeof args,
                           .target = handlers->name,
                           .target_size = strlen(handlers->name),
                           .handler = handlers->handler,
                           .platform = "Host",
                           .platform_size = strlen("Host")};
    void* error = ffi->register_handler(&args);
    nasml_drop_error(error, NULL, 0);
    if (!error) names[n++] = handlers->name;
  }
  return n;
}

// nasml_give_back gives the system back what memory the C library has left.
void nasml_give_back(void) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}
