// Parts of a task by several threads. Who is called does parts itself; helpers, threads
// of our own, do others. One of XLA's threads would have to be woken for every kernel,
// which takes as long as a small one, and where a machine packs its threads on few
// processors it would wait there for the one that it is to help. Helpers look for the
// next job for a while before they sleep.
#ifndef NASML_JOBS_H
#define NASML_JOBS_H
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "task.h"

// A job is what they share.
typedef struct job {
  part_of_task work;
  const task* task;
  int parts, helpers;  // helpers: that may still come
  atomic_int next, done;
  int users;           // who leaves it last frees it
  struct job* behind;
} job;

static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER; // of what follows, and of users and helpers of jobs
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;
static job* first_job;         // of those that want helpers
static atomic_int wanted;      // how many helpers are wanted
static int helpers, sleeping;  // of ours

enum { LINGER = 300000 }; // nanoseconds that a helper looks for a job before it sleeps

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void leave(job* j) {
  pthread_mutex_lock(&door);
  const int last = --j->users == 0;
  pthread_mutex_unlock(&door);
  if (last) free(j);
}

static void take_parts(job* j) {
  for (int part; (part = atomic_fetch_add(&j->next, 1)) < j->parts;) {
    j->work(j->task, part);
    atomic_fetch_add(&j->done, 1);
  }
}

// enter takes a place at the first job that wants a helper. The door is locked.
static job* enter(void) {
  job* j = first_job;
  if (!j) return NULL;
  j->users++, atomic_fetch_sub(&wanted, 1);
  if (--j->helpers == 0) first_job = j->behind;
  return j;
}

// withdraw ends the coming of helpers.
static void withdraw(job* j) {
  pthread_mutex_lock(&door);
  for (job** at = &first_job; *at; at = &(*at)->behind)
    if (*at == j) {
      atomic_fetch_sub(&wanted, j->helpers);
      *at = j->behind;
      break;
    }
  pthread_mutex_unlock(&door);
}

// next_job waits for a job, awake at first.
static job* next_job(void) {
  for (const int64_t until = now() + LINGER; !atomic_load(&wanted) && now() < until;) sched_yield();
  pthread_mutex_lock(&door);
  job* j;
  for (sleeping++; !(j = enter());) pthread_cond_wait(&bell, &door);
  sleeping--;
  pthread_mutex_unlock(&door);
  return j;
}

static void* help(void* nothing) {
  (void)nothing;
  for (;;) {
    job* j = next_job();
    take_parts(j);
    leave(j);
  }
  return NULL;
}

// hire makes threads until there are so many, or as many as can be. The door is locked.
static void hire(int most) {
  pthread_t thread;
  while (helpers < most && !pthread_create(&thread, NULL, help, NULL)) {
    pthread_detach(thread);
    helpers++;
  }
}

// post lets helpers come to a job.
static void post(job* j, int most) {
  const int come = j->helpers;
  pthread_mutex_lock(&door);
  hire(most);
  job** at = &first_job;
  while (*at) at = &(*at)->behind;
  *at = j;
  atomic_fetch_add(&wanted, come);
  const int asleep = sleeping;
  pthread_mutex_unlock(&door);
  for (int i = 0; i < asleep && i < come; i++) pthread_cond_signal(&bell);
}

// share does all parts of a task, with at most so many helpers. It needs none to come.
static void share(part_of_task work, const task* t, int parts, int most) {
  job* j = most > 0 ? malloc(sizeof *j) : NULL;
  if (!j) {
    for (int part = 0; part < parts; part++) work(t, part);
    return;
  }
  *j = (job){.work = work, .task = t, .parts = parts, .helpers = most < parts - 1 ? most : parts - 1, .users = 1};
  atomic_init(&j->next, 0);
  atomic_init(&j->done, 0);
  post(j, most);
  take_parts(j);
  withdraw(j);
  while (atomic_load(&j->done) < parts) sched_yield(); // others are at their last part
  leave(j);
}

#endif
