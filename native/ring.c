/* A BPF ring buffer (kernel 5.8), read in bulk.
 *
 *   consumer page (read/write) | producer page | data          (read only)
 *
 * The kernel can map the data twice in a row, so that a record that wraps is contiguous; every page would then be
 * counted twice in RSS. Here it is mapped once, and a record that wraps is copied in two parts.
 *
 * The reader drains records when it runs; a thread drains them when it is late (backlog.h). */
#include "addon.h"
#include "backlog.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct ring {
  unsigned long *consumer; /* NULL: closed */
  unsigned long *producer;
  uint8_t *data;
  size_t page, size;
  int fd; /* of the map: valid while its object is open */
  uint64_t records, discarded, oversized; /* read while another thread counts */
  struct backlog *backlog; /* NULL: the reader drains everything */
};

static void ring_unmap(struct ring *ring)
{
  if (!ring->consumer)
    return;
  if (ring->backlog) /* its thread must end before its source is freed */
    backlog_free(ring->backlog);
  ring->backlog = NULL;
  munmap(ring->consumer, ring->page);
  munmap(ring->producer, ring->page + ring->size);
  ring->consumer = NULL;
}

static void ring_release(void *data)
{
  ring_unmap(data);
  free(data);
}

static napi_value ring_open(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  struct map *map;
  if (!read_arguments(env, info, 1, argument) || !(map = read_map(env, argument[0])))
    return NULL;
  if (map->type != BPF_MAP_TYPE_RINGBUF)
    return throw_errno(env, EINVAL, "cannot open ring '%s' (it is a map of another type)", map->name);
  struct ring *ring = calloc(1, sizeof *ring);
  if (!ring)
    return throw_errno(env, ENOMEM, "cannot open ring '%s'", map->name);
  ring->page = sysconf(_SC_PAGESIZE);
  ring->size = map->max_entries;
  ring->fd = map->fd;
  void *consumer = mmap(NULL, ring->page, PROT_READ | PROT_WRITE, MAP_SHARED, map->fd, 0);
  void *producer = consumer == MAP_FAILED
                     ? MAP_FAILED
                     : mmap(NULL, ring->page + ring->size, PROT_READ, MAP_SHARED, map->fd, ring->page);
  if (producer == MAP_FAILED) {
    int error = errno;
    if (consumer != MAP_FAILED)
      munmap(consumer, ring->page);
    free(ring);
    return throw_errno(env, error, "cannot open ring '%s'", map->name);
  }
  ring->consumer = consumer;
  ring->producer = producer;
  ring->data = (uint8_t *)producer + ring->page;
  napi_value handle = new_handle(env, &ring_tag, ring, ring_release);
  if (handle)
    set_number(env, handle, "size", ring->size);
  return handle;
}

static struct ring *read_ring(napi_env env, napi_value value)
{
  void *data;
  if (!read_handle(env, value, &ring_tag, "a ring", &data))
    return NULL;
  struct ring *ring = data;
  if (!ring->consumer)
    throw_errno(env, EBADF, "cannot read a ring (it is closed)");
  return ring->consumer ? ring : NULL;
}

static inline void copy_record(const struct ring *ring, unsigned long position, uint8_t *target, uint32_t length, size_t padded)
{
  memcpy(target, &length, 4);
  memset(target + 4, 0, 4);
  size_t at = position & (ring->size - 1), straight = ring->size - at;
  if (padded <= straight) {
    memcpy(target + 8, ring->data + at, padded);
  } else {
    memcpy(target + 8, ring->data + at, straight);
    memcpy(target + 8 + straight, ring->data, padded - straight);
  }
}

/* Implements `take` of backlog.h. */
static size_t drain(void *of, uint8_t *target, size_t room, size_t used)
{
  struct ring *ring = of;
  uint64_t records = 0, discarded = 0, oversized = 0;
  unsigned long position = *ring->consumer; /* this thread is the only writer */
  unsigned long published = position;
  bool more = true;
  while (more) {
    unsigned long produced = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
    if (position == produced)
      break;
    while (position != produced) {
      uint32_t word = __atomic_load_n((uint32_t *)(ring->data + (position & (ring->size - 1))), __ATOMIC_ACQUIRE);
      uint32_t length = word & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
      size_t padded = ((size_t)length + 7) & ~(size_t)7;
      if ((word & BPF_RINGBUF_BUSY_BIT) || padded > ring->size) {
        more = false; /* unfinished: the records after it wait, too */
        break;
      }
      if (word & BPF_RINGBUF_DISCARD_BIT) {
        discarded++;
      } else if (padded + 8 > room) {
        oversized++;
      } else if (padded + 8 > room - used) {
        more = false;
        break;
      } else {
        copy_record(ring, position + 8, target + used, length, padded);
        used += padded + 8;
        records++;
      }
      position += padded + 8;
      /* Space is released in large steps: each store takes the cache line from the writing CPUs. */
      if (position - published >= ring->size / 8) {
        __atomic_store_n(ring->consumer, position, __ATOMIC_RELEASE);
        published = position;
      }
    }
    /* Ordered before the next read of the producer: a writer that saw the old position sends no wakeup. */
    __atomic_store_n(ring->consumer, position, __ATOMIC_SEQ_CST);
    published = position;
  }
  __atomic_fetch_add(&ring->records, records, __ATOMIC_RELAXED);
  __atomic_fetch_add(&ring->discarded, discarded, __ATOMIC_RELAXED);
  __atomic_fetch_add(&ring->oversized, oversized, __ATOMIC_RELAXED);
  return used;
}

static napi_value ring_drain(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  struct ring *ring;
  uint8_t *target;
  size_t room;
  if (!read_arguments(env, info, 2, argument) || !(ring = read_ring(env, argument[0])) ||
      !read_bytes(env, argument[1], "the target", 16, &target, &room))
    return NULL;
  return make_number(env, ring->backlog ? backlog_take(ring->backlog, target, room) : drain(ring, target, room, 0));
}

static napi_value ring_absorb(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  struct ring *ring;
  uint64_t limit;
  if (!read_arguments(env, info, 2, argument) || !(ring = read_ring(env, argument[0])) ||
      !read_uint(env, argument[1], "the limit in bytes", 9007199254740991.0, &limit))
    return NULL;
  if (ring->backlog) {
    backlog_limit(ring->backlog, limit);
    return make_undefined(env);
  }
  struct backlog_source source = { .of = ring, .fd = ring->fd, .take = drain };
  ring->backlog = backlog_start(&source, limit);
  return ring->backlog ? make_undefined(env) : throw_errno(env, errno, "cannot start a thread that empties a ring");
}

static napi_value ring_available(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  struct ring *ring;
  if (!read_arguments(env, info, 1, argument) || !(ring = read_ring(env, argument[0])))
    return NULL;
  double waiting = ring->backlog ? backlog_state(ring->backlog).waiting : 0;
  unsigned long consumed = __atomic_load_n(ring->consumer, __ATOMIC_RELAXED);
  return make_number(env, waiting + (__atomic_load_n(ring->producer, __ATOMIC_ACQUIRE) - consumed));
}

static napi_value ring_counters(napi_env env, napi_callback_info info)
{
  napi_value argument[1], result;
  struct ring *ring;
  if (!read_arguments(env, info, 1, argument) || !(ring = read_ring(env, argument[0])) ||
      napi_create_object(env, &result) != napi_ok)
    return NULL;
  struct backlog_state kept = { 0 };
  if (ring->backlog)
    kept = backlog_state(ring->backlog);
  set_number(env, result, "records", __atomic_load_n(&ring->records, __ATOMIC_RELAXED) - kept.oversized);
  set_number(env, result, "discarded", __atomic_load_n(&ring->discarded, __ATOMIC_RELAXED));
  set_number(env, result, "oversized", __atomic_load_n(&ring->oversized, __ATOMIC_RELAXED) + kept.oversized);
  set_number(env, result, "absorbedBytes", kept.absorbed);
  set_number(env, result, "heldBytes", kept.held);
  set_number(env, result, "peakBytes", kept.peak);
  return result;
}

static napi_value ring_close(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  void *data;
  if (!read_arguments(env, info, 1, argument) || !read_handle(env, argument[0], &ring_tag, "a ring", &data))
    return NULL;
  ring_unmap(data);
  return make_undefined(env);
}

const struct function ring_functions[] = {
  { "ringOpen", ring_open },
  { "ringDrain", ring_drain },
  { "ringAbsorb", ring_absorb },
  { "ringAvailable", ring_available },
  { "ringCounters", ring_counters },
  { "ringClose", ring_close },
  { NULL, NULL },
};
