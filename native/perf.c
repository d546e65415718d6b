/* Perf buffers: one ring per CPU, filled by bpf_perf_event_output. For kernels before 5.8. */
#include "addon.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In the second word of a record, beside the CPU: more records of this CPU wait. */
#define MORE_WAITS (1U << 31)
/* Minimum room of each CPU in one drain: more than the largest record. */
#define LEAST_ROOM 65536

struct cpu {
  uint32_t number;
  int fd;
  struct perf_event_mmap_page *page;
  double records, lost, oversized;
};

struct perf {
  struct object *owner;
  int map_fd, epoll; /* epoll -1: closed */
  size_t page, size; /* size: of the data of one CPU, a power of two */
  uint32_t count, next;
  struct cpu cpus[];
};

static void perf_unmap(struct perf *perf)
{
  if (perf->epoll < 0)
    return;
  for (uint32_t i = 0; i < perf->count; i++) {
    struct cpu *cpu = &perf->cpus[i];
    if (perf->owner->bpf) /* otherwise its descriptor is no longer ours */
      bpf_map_delete_elem(perf->map_fd, &cpu->number);
    munmap(cpu->page, perf->page + perf->size);
    close(cpu->fd);
  }
  close(perf->epoll);
  perf->epoll = -1;
}

static void perf_release(void *data)
{
  struct perf *perf = data;
  perf_unmap(perf);
  object_release(perf->owner);
  free(perf);
}

/* Adds the ring of one CPU. Returns 0 or the errno. */
static int open_cpu(struct perf *perf, uint32_t number, uint32_t wakeup)
{
  struct perf_event_attr attributes = {
    .type = PERF_TYPE_SOFTWARE,
    .size = sizeof attributes,
    .config = PERF_COUNT_SW_BPF_OUTPUT,
    .sample_type = PERF_SAMPLE_RAW,
    .sample_period = 1,
    .watermark = 1,
    .wakeup_watermark = wakeup,
  };
  struct cpu *cpu = &perf->cpus[perf->count];
  int fd = syscall(SYS_perf_event_open, &attributes, -1, number, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0)
    return errno;
  void *page = mmap(NULL, perf->page + perf->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) {
    int error = errno;
    close(fd);
    return error;
  }
  struct epoll_event event = { .events = EPOLLIN };
  *cpu = (struct cpu){ .number = number, .fd = fd, .page = page };
  perf->count++;
  if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) != 0 || epoll_ctl(perf->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
    return errno;
  return -bpf_map_update_elem(perf->map_fd, &number, &fd, BPF_ANY);
}

static napi_value perf_open(napi_env env, napi_callback_info info)
{
  napi_value argument[3];
  struct map *map;
  uint64_t pages, wakeup;
  if (!read_arguments(env, info, 3, argument) || !(map = read_map(env, argument[0])) ||
      !read_uint(env, argument[1], "the pages of one CPU", 65536, &pages) ||
      !read_uint(env, argument[2], "the bytes of one wake-up", UINT32_MAX, &wakeup))
    return NULL;
  if (!pages || (pages & (pages - 1)))
    return throw_misuse(env, "the pages of one CPU must be a power of two");
  if (map->type != BPF_MAP_TYPE_PERF_EVENT_ARRAY)
    return throw_errno(env, EINVAL, "cannot open perf buffer '%s' (it is a map of another type)", map->name);
  uint32_t possible = libbpf_num_possible_cpus();
  if (possible > map->max_entries)
    possible = map->max_entries;
  struct perf *perf = calloc(1, sizeof *perf + possible * sizeof *perf->cpus);
  if (!perf)
    return throw_errno(env, ENOMEM, "cannot open perf buffer '%s'", map->name);
  perf->owner = map->owner;
  perf->owner->references++;
  perf->map_fd = map->fd;
  perf->page = sysconf(_SC_PAGESIZE);
  perf->size = pages * perf->page;
  perf->epoll = epoll_create1(EPOLL_CLOEXEC);
  int error = perf->epoll < 0 ? errno : 0;
  for (uint32_t i = 0; i < possible && !error; i++) {
    error = open_cpu(perf, i, wakeup);
    if (error == ENODEV)
      error = 0; /* this CPU is offline */
  }
  if (error) {
    throw_errno(env, error, "cannot open perf buffer '%s'", map->name);
    perf_release(perf);
    return NULL;
  }
  int epoll = perf->epoll;
  napi_value handle = new_handle(env, &perf_tag, perf, perf_release);
  if (handle)
    set_number(env, handle, "fd", epoll);
  return handle;
}

static struct perf *read_perf(napi_env env, napi_value value)
{
  void *data;
  if (!read_handle(env, value, &perf_tag, "a perf buffer", &data))
    return NULL;
  struct perf *perf = data;
  if (perf->epoll < 0)
    throw_errno(env, EBADF, "cannot read a perf buffer (it is closed)");
  return perf->epoll < 0 ? NULL : perf;
}

static void copy_out(const struct perf *perf, const uint8_t *data, uint64_t position, void *target, size_t length)
{
  size_t at = position & (perf->size - 1), straight = perf->size - at;
  if (length <= straight) {
    memcpy(target, data + at, length);
  } else {
    memcpy(target, data + at, straight);
    memcpy((uint8_t *)target + straight, data, length - straight);
  }
}

/* Copies the records of one CPU that fit below `limit`. Returns the bytes used. A record that does not fit in all of
 * `room` never will. */
static size_t drain_cpu(struct perf *perf, struct cpu *cpu, uint8_t *target, size_t room, size_t limit, size_t used)
{
  const uint8_t *data = (const uint8_t *)cpu->page + perf->page;
  uint64_t head = __atomic_load_n(&cpu->page->data_head, __ATOMIC_ACQUIRE), position = cpu->page->data_tail;
  uint32_t more = cpu->number | MORE_WAITS;
  uint8_t *last = NULL;
  while (position < head) {
    struct perf_event_header header;
    copy_out(perf, data, position, &header, sizeof header);
    if (header.size < sizeof header)
      break;
    if (header.type == PERF_RECORD_LOST) {
      uint64_t lost; /* after the header and the id of the event */
      copy_out(perf, data, position + sizeof header + 8, &lost, sizeof lost);
      cpu->lost += lost;
    } else if (header.type == PERF_RECORD_SAMPLE && header.size >= sizeof header + 4) {
      uint32_t length;
      copy_out(perf, data, position + sizeof header, &length, sizeof length);
      if (length > header.size - sizeof header - 4)
        length = header.size - sizeof header - 4;
      size_t padded = ((size_t)length + 7) & ~(size_t)7;
      if (padded + 8 > room) {
        cpu->oversized++;
      } else if (padded + 8 > limit - used) {
        if (last)
          memcpy(last + 4, &more, 4);
        break;
      } else {
        last = target + used;
        memcpy(target + used, &length, 4);
        memcpy(target + used + 4, &cpu->number, 4);
        copy_out(perf, data, position + sizeof header + 4, target + used + 8, length);
        memset(target + used + 8 + length, 0, padded - length);
        used += padded + 8;
        cpu->records++;
      }
    }
    position += header.size;
  }
  __atomic_store_n(&cpu->page->data_tail, position, __ATOMIC_RELEASE);
  return used;
}

static napi_value perf_drain(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  struct perf *perf;
  uint8_t *target;
  size_t room, used = 0;
  if (!read_arguments(env, info, 2, argument) || !(perf = read_perf(env, argument[0])) ||
      !read_bytes(env, argument[1], "the target", 16, &target, &room))
    return NULL;
  /* All CPUs get equal room, plus the unused room of those before: sorting the records must not wait for one CPU.
   * Starts at a different CPU each time, as the room may not suffice for all. */
  for (uint32_t i = 0; i < perf->count; i++) {
    size_t share = (room - used) / (perf->count - i), limit = share < LEAST_ROOM ? used + LEAST_ROOM : used + share;
    used = drain_cpu(perf, &perf->cpus[(perf->next + i) % perf->count], target, room, limit < room ? limit : room, used);
  }
  perf->next++;
  return make_number(env, used);
}

static napi_value perf_counters(napi_env env, napi_callback_info info)
{
  napi_value argument[1], list, item;
  struct perf *perf;
  if (!read_arguments(env, info, 1, argument) || !(perf = read_perf(env, argument[0])) ||
      napi_create_array(env, &list) != napi_ok)
    return NULL;
  for (uint32_t i = 0; i < perf->count && napi_create_object(env, &item) == napi_ok; i++) {
    set_number(env, item, "cpu", perf->cpus[i].number);
    set_number(env, item, "records", perf->cpus[i].records);
    set_number(env, item, "lost", perf->cpus[i].lost);
    set_number(env, item, "oversized", perf->cpus[i].oversized);
    napi_set_element(env, list, i, item);
  }
  return list;
}

static napi_value perf_close(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  void *data;
  if (!read_arguments(env, info, 1, argument) || !read_handle(env, argument[0], &perf_tag, "a perf buffer", &data))
    return NULL;
  perf_unmap(data);
  return make_undefined(env);
}

const struct function perf_functions[] = {
  { "perfOpen", perf_open },   { "perfDrain", perf_drain }, { "perfCounters", perf_counters },
  { "perfClose", perf_close }, { NULL, NULL },
};
