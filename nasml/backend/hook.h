// What hook.go calls, see hook.c. Errors are PJRT's own, NULL where all went well.
#include "pjrt.h"

const nasml_api* nasml_open(const char* path, char** failed);
void* nasml_compile_program(const nasml_compile* given, char* code, size_t code_size, void** loaded);
void* nasml_serialize_program(void* loaded, nasml_serialize* out);
void* nasml_load_program(void* client, const char* bytes, size_t size, void** loaded);
void* nasml_client(void);
void nasml_drop_program(void* loaded);
void* nasml_describe(void* client, char* text, size_t room);
void nasml_free_serialized(nasml_serialize* out);
int nasml_register_kernels(const char* path, const char* isa, const char** names, int room);
void nasml_drop_error(void* error, char* text, size_t room);
void nasml_give_back(void);
