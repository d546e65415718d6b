/* Buffers records for a slow reader: a thread drains a kernel buffer whenever that buffer requests it, and keeps the
 * records in memory that grows and shrinks. So a burst loses no record while JavaScript is late, up to a limit.
 *
 * It is independent of Node.js: test/fixtures/backlog-race.c runs it alone. */
#ifndef SVC_BACKLOG_H
#define SVC_BACKLOG_H

#include <stddef.h>
#include <stdint.h>

struct backlog_source {
  void *of;
  int fd; /* readable when much waits; is duplicated */
  /* Copies as many whole records as fit in the first `room` bytes of `target` after its first `used`; returns the bytes
   * used afterwards. Each is u32 length, u32, payload padded to 8. Never called by two threads at once. */
  size_t (*take)(void *of, uint8_t *target, size_t room, size_t used);
};

struct backlog_state {
  double held;     /* current bytes of memory */
  double peak;     /* its maximum so far */
  double absorbed; /* total bytes that the thread drained */
  size_t waiting;  /* current bytes of records */
  double oversized;
};

struct backlog;

/* Starts the thread. NULL: see errno. */
struct backlog *backlog_start(const struct backlog_source *source, size_t limit);
/* The next records, oldest first: kept ones, then the source's own. Skips and counts those that do not fit in an empty
 * target. */
size_t backlog_take(struct backlog *backlog, uint8_t *target, size_t room);
/* Limits its memory. Records above the limit are kept. */
void backlog_limit(struct backlog *backlog, size_t limit);
struct backlog_state backlog_state(struct backlog *backlog);
/* Ends the thread. Its records can still be taken. */
void backlog_stop(struct backlog *backlog);
/* Ends the thread and frees everything. */
void backlog_free(struct backlog *backlog);

#endif
