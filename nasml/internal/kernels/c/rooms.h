// Memory that kernels need while they work. The C library looks long for some among what
// XLA has given back between two steps, behind a lock; a thread therefore keeps a few
// rooms that it had. A room begins where a line of memory does.
#ifndef NASML_ROOMS_H
#define NASML_ROOMS_H
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "task.h"

enum { ROOMS = 4, LINE = 64, MOST_KEPT = 4 << 20 };  // bytes of a line, and of a room that is kept

typedef struct {
  void* at;
  size_t size;
  int taken;
} kept_room;

static _Thread_local kept_room rooms[ROOMS];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t of_thread;
static int ends;  // a thread that ends gives back what it kept

static void end_rooms(void* all) {
  for (kept_room* r = all; r < (kept_room*)all + ROOMS; r++) free(r->at), *r = (kept_room){0};
}

static void begin_rooms(void) { ends = !pthread_key_create(&of_thread, end_rooms); }

static void* lines(size_t size) { return aligned_alloc(LINE, (size + LINE - 1) / LINE * LINE); }

// smaller says whether a is the smaller one of two rooms, and that any is smaller than none.
static int smaller(const kept_room* a, const kept_room* b) { return !b || a->size < b->size; }

// nasml_room is a room of some bytes, NULL without memory. The thread that takes it calls
// nasml_leave.
void* nasml_room(size_t size) {
  kept_room *fits = NULL, *least = NULL;
  if (size > SIZE_MAX - LINE || size > MOST_KEPT) return size > SIZE_MAX - LINE ? NULL : lines(size);
  for (kept_room* r = rooms; r < rooms + ROOMS; r++) {
    if (r->taken) continue;
    if (r->size >= size && smaller(r, fits)) fits = r;
    if (smaller(r, least)) least = r;
  }
  if (!fits) {
    pthread_once(&once, begin_rooms);
    if (!least || !ends || pthread_setspecific(of_thread, rooms)) return lines(size);
    free(least->at);
    *least = (kept_room){.at = lines(size)};
    if (!least->at) return NULL;
    least->size = size, fits = least;
  }
  fits->taken = 1;
  return fits->at;
}

void nasml_leave(void* room) {
  for (kept_room* r = rooms; r < rooms + ROOMS; r++)
    if (r->taken && r->at == room) {
      r->taken = 0;
      return;
    }
  free(room);
}

#endif
