/* What waits for its reader: a thread takes records out of a buffer of the kernel whenever that buffer asks for it, and
 * keeps them in memory that grows and shrinks. So a burst costs no record while JavaScript is late, up to a bound.
 *
 * It knows nothing of Node.js: test/fixtures/backlog-race.c runs it alone. */
#ifndef SVC_BACKLOG_H
#define SVC_BACKLOG_H

#include <stddef.h>
#include <stdint.h>

struct backlog_source {
  void *of;
  int fd; /* readable when much waits; is duplicated */
  /* Copies whole records, as many as fit into the first `room` bytes of `target` behind its first `used`; returns how
   * many bytes are used then. Each is u32 length, u32, payload padded to 8. Never called by two threads at once. */
  size_t (*take)(void *of, uint8_t *target, size_t room, size_t used);
};

struct backlog_state {
  double held;     /* bytes of memory now */
  double peak;     /* most that it has been */
  double absorbed; /* bytes that the thread took, ever */
  size_t waiting;  /* bytes of records now */
  double oversized;
};

struct backlog;

/* Starts the thread. NULL: errno says why. */
struct backlog *backlog_start(const struct backlog_source *source, size_t limit);
/* The next records, oldest first: those that are kept, else the source's own. Skips and counts those that would not fit an
 * empty target. */
size_t backlog_take(struct backlog *backlog, uint8_t *target, size_t room);
/* Memory that it may have. What it has above is not given up. */
void backlog_limit(struct backlog *backlog, size_t limit);
struct backlog_state backlog_state(struct backlog *backlog);
/* Ends the thread. What it took can still be taken. */
void backlog_stop(struct backlog *backlog);
/* Ends the thread and forgets all. */
void backlog_free(struct backlog *backlog);

#endif
