// Several threads share jobs of random sizes with their helpers at once: every part is
// done once, and nobody looks at a task that is over. With ThreadSanitizer whatever is
// not in order ends the program.
#include "../c/jobs.h"

#include <stdio.h>
#include <string.h>

enum { CALLERS = 4, ROUNDS = 2000, MOST_PARTS = 40 };

// A job of the test: the task is its first member.
typedef struct {
  task task;
  int done[MOST_PARTS];
} counted;

static void count_part(const task* t, int part) {
  for (volatile int i = 0; i < t->k; i++);  // some time
  ((counted*)t)->done[part]++;
}

static void* caller(void* data) {
  uint64_t state = (uintptr_t)data;
  for (int round = 0; round < ROUNDS; round++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const int parts = (int)(state >> 33) % (MOST_PARTS + 1), most = (int)(state >> 40) % 6;
    counted c;
    memset(&c, 0, sizeof c);
    c.task.k = (int)(state >> 45) % 2000;
    share(count_part, &c.task, parts, most);
    for (int part = 0; part < MOST_PARTS; part++)
      if (c.done[part] != (part < parts)) return "failed";
    if (round % 500 == 0) nanosleep(&(struct timespec){.tv_nsec = 2 * LINGER}, NULL);  // helpers sleep
  }
  return NULL;
}

int main(void) {
  pthread_t threads[CALLERS];
  int failed = 0;
  for (intptr_t i = 0; i < CALLERS; i++) pthread_create(&threads[i], NULL, caller, (void*)(i + 1));
  for (int i = 0; i < CALLERS; i++) {
    void* said;
    pthread_join(threads[i], &said);
    failed |= said != NULL;
  }
  pthread_mutex_lock(&door);
  failed |= first_job || wanted || helpers > 5;
  pthread_mutex_unlock(&door);
  puts(failed ? "failed" : "clean");
  return failed;
}
