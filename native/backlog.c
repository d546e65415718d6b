#include "backlog.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define CHUNK (1 << 20) /* its pages cost nothing before they are written */
#define SLICE (1 << 17) /* drained while the reader must wait; above the largest record */
#define STACK (1 << 18)
#define NICE -10        /* it does little, and late records are lost */

struct chunk {
  struct chunk *next;
  size_t filled, read;
  uint8_t bytes[CHUNK - 3 * sizeof(size_t)];
};

struct backlog {
  pthread_mutex_t lock; /* protects everything below, and the source's records */
  struct backlog_source source;
  struct chunk *first, *last;
  size_t held, peak, waiting, limit;
  double absorbed, oversized;
  bool starved; /* the limit blocks the thread */
  bool ending, joined;
  int kick, epoll;
  pthread_t thread;
};

static void kick(struct backlog *backlog)
{
  uint64_t one = 1;
  while (write(backlog->kick, &one, sizeof one) < 0 && errno == EINTR)
    ;
}

/* Waits for the source too, or only to be kicked. */
static void listen_to_source(struct backlog *backlog, bool on)
{
  /* Edge-triggered: a ring with a few new records is always readable, and not worth waking for. */
  struct epoll_event event = { .events = on ? EPOLLIN | EPOLLET : 0, .data.fd = backlog->source.fd };
  epoll_ctl(backlog->epoll, EPOLL_CTL_MOD, backlog->source.fd, &event);
}

/* Drains a slice. False: nothing is left, or there is no room for it. */
static bool absorb(struct backlog *backlog)
{
  struct chunk *fresh = NULL;
  pthread_mutex_lock(&backlog->lock);
  bool go = !backlog->ending;
  struct chunk *chunk = backlog->last;
  if (go && (!chunk || sizeof chunk->bytes - chunk->filled < SLICE)) {
    go = !(backlog->starved = backlog->held + CHUNK > backlog->limit);
    pthread_mutex_unlock(&backlog->lock);
    if (!go)
      return false;
    fresh = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_mutex_lock(&backlog->lock);
    if (fresh == MAP_FAILED) {
      fresh = NULL;
      go = false; /* the source will signal again */
    }
    chunk = fresh;
  }
  if (go) {
    size_t filled = chunk->filled;
    size_t used = backlog->source.take(backlog->source.of, chunk->bytes, filled + SLICE, filled);
    go = used > filled;
    chunk->filled = used;
    backlog->waiting += used - filled;
    backlog->absorbed += used - filled;
    if (fresh && go) {
      if (backlog->last)
        backlog->last->next = fresh;
      else
        backlog->first = fresh;
      backlog->last = fresh;
      fresh = NULL;
      backlog->held += CHUNK;
      if (backlog->peak < backlog->held)
        backlog->peak = backlog->held;
    }
  }
  pthread_mutex_unlock(&backlog->lock);
  if (fresh)
    munmap(fresh, CHUNK);
  return go;
}

static void *run(void *data)
{
  struct backlog *backlog = data;
  prctl(PR_SET_NAME, "svc-ring");
  setpriority(PRIO_PROCESS, 0, NICE); /* for this thread; unchanged without CAP_SYS_NICE */
  for (bool listens = true;;) {
    struct epoll_event events[2];
    int count = epoll_wait(backlog->epoll, events, 2, -1);
    for (int i = 0; i < count; i++) {
      uint64_t kicks;
      if (events[i].data.fd == backlog->kick && read(backlog->kick, &kicks, sizeof kicks) < 0)
        continue; /* another one follows */
    }
    while (absorb(backlog))
      ;
    pthread_mutex_lock(&backlog->lock);
    bool ending = backlog->ending, wanted = !backlog->starved;
    pthread_mutex_unlock(&backlog->lock);
    if (ending)
      return NULL;
    if (wanted != listens)
      listen_to_source(backlog, listens = wanted);
  }
}

static bool add(struct backlog *backlog, int fd, uint32_t events)
{
  struct epoll_event event = { .events = events, .data.fd = fd };
  return epoll_ctl(backlog->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* The thread blocks all signals: Node.js handles them on other threads. */
static int start_thread(struct backlog *backlog)
{
  pthread_attr_t attributes;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK);
  int error = pthread_create(&backlog->thread, &attributes, run, backlog);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

static void release(struct backlog *backlog)
{
  for (struct chunk *next, *chunk = backlog->first; chunk; chunk = next) {
    next = chunk->next;
    munmap(chunk, CHUNK);
  }
  if (backlog->source.fd >= 0)
    close(backlog->source.fd);
  if (backlog->kick >= 0)
    close(backlog->kick);
  if (backlog->epoll >= 0)
    close(backlog->epoll);
  pthread_mutex_destroy(&backlog->lock);
  free(backlog);
}

struct backlog *backlog_start(const struct backlog_source *source, size_t limit)
{
  struct backlog *backlog = calloc(1, sizeof *backlog);
  if (!backlog)
    return NULL;
  pthread_mutex_init(&backlog->lock, NULL);
  backlog->source = *source;
  backlog->limit = limit;
  backlog->source.fd = fcntl(source->fd, F_DUPFD_CLOEXEC, 3);
  backlog->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  backlog->epoll = epoll_create1(EPOLL_CLOEXEC);
  bool ready = backlog->source.fd >= 0 && backlog->kick >= 0 && backlog->epoll >= 0 &&
               add(backlog, backlog->kick, EPOLLIN) && add(backlog, backlog->source.fd, EPOLLIN | EPOLLET);
  int error = ready ? start_thread(backlog) : errno;
  if (!error)
    return backlog;
  release(backlog);
  errno = error;
  return NULL;
}

/* Copies records of a chunk. Returns the bytes used; copied records count as read. */
static size_t copy_kept(struct backlog *backlog, struct chunk *chunk, uint8_t *target, size_t room, size_t used)
{
  size_t from = chunk->read, at = from;
  while (at < chunk->filled) {
    uint32_t length;
    memcpy(&length, chunk->bytes + at, 4);
    size_t size = 8 + (((size_t)length + 7) & ~(size_t)7);
    if (size > room) {
      /* Copy what precedes it first, so that the copy is contiguous. */
      if (at > from)
        break;
      backlog->oversized++;
      at = from = from + size;
      continue;
    }
    if (size > room - used - (at - from))
      break;
    at += size;
  }
  memcpy(target + used, chunk->bytes + from, at - from);
  backlog->waiting -= at - chunk->read;
  chunk->read = at;
  return used + (at - from);
}

size_t backlog_take(struct backlog *backlog, uint8_t *target, size_t room)
{
  size_t used = 0;
  struct chunk *empty = NULL;
  bool resume = false;
  pthread_mutex_lock(&backlog->lock);
  while (backlog->first) {
    struct chunk *chunk = backlog->first;
    used = copy_kept(backlog, chunk, target, room, used);
    if (chunk->read < chunk->filled)
      break;
    backlog->first = chunk->next;
    if (!backlog->first)
      backlog->last = NULL;
    chunk->next = empty;
    empty = chunk;
    backlog->held -= CHUNK;
  }
  if (!backlog->first)
    used = backlog->source.take(backlog->source.of, target, room, used);
  if (backlog->starved && backlog->held + CHUNK <= backlog->limit) {
    backlog->starved = false;
    resume = true;
  }
  pthread_mutex_unlock(&backlog->lock);
  if (resume)
    kick(backlog);
  for (struct chunk *next; empty; empty = next) {
    next = empty->next;
    munmap(empty, CHUNK);
  }
  return used;
}

void backlog_limit(struct backlog *backlog, size_t limit)
{
  pthread_mutex_lock(&backlog->lock);
  backlog->limit = limit;
  bool resume = backlog->starved && backlog->held + CHUNK <= limit;
  if (resume)
    backlog->starved = false;
  pthread_mutex_unlock(&backlog->lock);
  if (resume)
    kick(backlog);
}

struct backlog_state backlog_state(struct backlog *backlog)
{
  pthread_mutex_lock(&backlog->lock);
  struct backlog_state state = { .held = backlog->held,
                                 .peak = backlog->peak,
                                 .absorbed = backlog->absorbed,
                                 .waiting = backlog->waiting,
                                 .oversized = backlog->oversized };
  pthread_mutex_unlock(&backlog->lock);
  return state;
}

void backlog_stop(struct backlog *backlog)
{
  if (backlog->joined)
    return;
  pthread_mutex_lock(&backlog->lock);
  backlog->ending = true;
  pthread_mutex_unlock(&backlog->lock);
  kick(backlog);
  pthread_join(backlog->thread, NULL);
  backlog->joined = true;
}

void backlog_free(struct backlog *backlog)
{
  backlog_stop(backlog);
  release(backlog);
}
