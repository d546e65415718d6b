/* Maps of a loaded object: single elements, batches, and views of global data. */
#include "addon.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Content of a batch cursor: the caller's bytes, all zero at the start. */
struct cursor {
  uint32_t phase, seen;
};
enum { FRESH, BATCH, BY_KEY, FINISHED };
#define CURSOR_TOKEN sizeof(struct cursor)

static void map_release(void *data)
{
  struct map *map = data;
  object_release(map->owner);
  free(map);
}

struct map *read_map(napi_env env, napi_value value)
{
  void *data;
  if (!read_handle(env, value, &map_tag, "a map", &data))
    return NULL;
  struct map *map = data;
  if (!map->owner->bpf)
    throw_errno(env, EBADF, "cannot use map '%s' (its BPF object '%s' is closed)", map->name, map->owner->name);
  return map->owner->bpf ? map : NULL;
}

static bool is_per_cpu(uint32_t type)
{
  return type == BPF_MAP_TYPE_PERCPU_HASH || type == BPF_MAP_TYPE_PERCPU_ARRAY ||
         type == BPF_MAP_TYPE_LRU_PERCPU_HASH || type == BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE;
}

static struct bpf_map *find_map(napi_env env, struct object *object, const char *name)
{
  struct bpf_map *bpf = bpf_object__find_map_by_name(object->bpf, name);
  if (!bpf)
    throw_errno(env, ENOENT, "cannot open map '%s' of BPF object '%s'", name, object->name);
  return bpf;
}

static napi_value new_map(napi_env env, struct object *object, const struct bpf_map *bpf, const char *name)
{
  int cpus = libbpf_num_possible_cpus();
  if (cpus < 0)
    return throw_errno(env, cpus, "cannot count the CPUs");
  struct map *map = calloc(1, sizeof *map);
  if (!map)
    return throw_errno(env, ENOMEM, "cannot open map '%s' of BPF object '%s'", name, object->name);
  map->owner = object;
  object->references++;
  map->fd = bpf_map__fd(bpf);
  map->type = bpf_map__type(bpf);
  map->key_size = bpf_map__key_size(bpf);
  map->value_size = bpf_map__value_size(bpf);
  map->max_entries = bpf_map__max_entries(bpf);
  map->flags = bpf_map__map_flags(bpf);
  map->slot_size = is_per_cpu(map->type) ? ((map->value_size + 7u) & ~7u) * (size_t)cpus : map->value_size;
  strcpy(map->name, name);

  struct bpf_map_info kernel = { 0 };
  uint32_t size = sizeof kernel;
  if (map->fd >= 0)
    bpf_obj_get_info_by_fd(map->fd, &kernel, &size);
  const char *type = libbpf_bpf_map_type_str(map->type);
  napi_value handle = new_handle(env, &map_tag, map, map_release);
  if (!handle)
    return NULL;
  set_string(env, handle, "name", name);
  set_string(env, handle, "type", type);
  set_number(env, handle, "id", kernel.id);
  set_number(env, handle, "fd", map->fd);
  set_number(env, handle, "keySize", map->key_size);
  set_number(env, handle, "valueSize", map->value_size);
  set_number(env, handle, "slotSize", map->slot_size);
  set_number(env, handle, "maxEntries", map->max_entries);
  napi_object_freeze(env, handle);
  return handle;
}

static napi_value map_open(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  void *data;
  char name[MAX_NAME];
  if (!read_arguments(env, info, 2, argument) || !read_handle(env, argument[0], &object_tag, "a BPF object", &data) ||
      !read_name(env, argument[1], "the map's name", name))
    return NULL;
  struct object *object = data;
  if (!object->bpf || object->state != LOADED)
    return throw_errno(env, EBADF, "cannot open map '%s' (BPF object '%s' is %s)", name, object->name,
                       object->bpf ? "not loaded" : "closed");
  struct bpf_map *bpf = find_map(env, object, name);
  return bpf ? new_map(env, object, bpf, name) : NULL;
}

/* The object loads its types only with itself; storage of tasks requires them. NULL: none. */
static struct btf *load_types(const struct object *object)
{
  uint32_t size;
  const struct btf *types = bpf_object__btf(object->bpf);
  const void *raw = types ? btf__raw_data(types, &size) : NULL;
  struct btf *copy = raw ? btf__new(raw, size) : NULL;
  if (copy && btf__load_into_kernel(copy) == 0)
    return copy;
  btf__free(copy);
  return NULL;
}

/* The load then uses it as it uses a shared one. */
static napi_value map_make(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  struct object *object;
  struct bpf_map *bpf;
  char name[MAX_NAME];
  if (!read_arguments(env, info, 2, argument) || !(object = read_opened(env, argument[0])) ||
      !read_name(env, argument[1], "the map's name", name) || !(bpf = find_map(env, object, name)))
    return NULL;
  LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = bpf_map__map_flags(bpf));
  struct btf *types = load_types(object);
  if (types) {
    options.btf_fd = btf__fd(types);
    options.btf_key_type_id = bpf_map__btf_key_type_id(bpf);
    options.btf_value_type_id = bpf_map__btf_value_type_id(bpf);
  }
  int fd = bpf_map_create(bpf_map__type(bpf), name, bpf_map__key_size(bpf), bpf_map__value_size(bpf),
                          bpf_map__max_entries(bpf), &options);
  btf__free(types);
  int error = fd < 0 ? fd : bpf_map__reuse_fd(bpf, fd);
  if (fd >= 0)
    close(fd); /* the object has its own */
  return error ? throw_errno(env, error, "cannot create map '%s' of BPF object '%s'", name, object->name)
               : new_map(env, object, bpf, name);
}

static bool read_key(napi_env env, napi_value value, struct map *map, uint8_t **key)
{
  size_t length;
  return read_bytes(env, value, "the key", map->key_size, key, &length);
}

static bool read_slot(napi_env env, napi_value value, struct map *map, uint8_t **slot)
{
  size_t length;
  return read_bytes(env, value, "the value", map->slot_size, slot, &length);
}

static napi_value map_lookup(napi_env env, napi_callback_info info)
{
  napi_value argument[3];
  struct map *map;
  uint8_t *key, *value;
  if (!read_arguments(env, info, 3, argument) || !(map = read_map(env, argument[0])) ||
      !read_key(env, argument[1], map, &key) || !read_slot(env, argument[2], map, &value))
    return NULL;
  int error = -bpf_map_lookup_elem(map->fd, key, value);
  if (error && error != ENOENT)
    return throw_errno(env, error, "cannot read map '%s'", map->name);
  return make_bool(env, !error);
}

static napi_value map_update(napi_env env, napi_callback_info info)
{
  napi_value argument[4];
  struct map *map;
  uint8_t *key, *value;
  uint64_t flags;
  if (!read_arguments(env, info, 4, argument) || !(map = read_map(env, argument[0])) ||
      !read_key(env, argument[1], map, &key) || !read_slot(env, argument[2], map, &value) ||
      !read_uint(env, argument[3], "the flags", 7, &flags))
    return NULL;
  int error = bpf_map_update_elem(map->fd, key, value, flags);
  if (error)
    return throw_errno(env, error, "cannot write to map '%s'", map->name);
  return make_undefined(env);
}

static napi_value map_delete(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  struct map *map;
  uint8_t *key;
  if (!read_arguments(env, info, 2, argument) || !(map = read_map(env, argument[0])) ||
      !read_key(env, argument[1], map, &key))
    return NULL;
  int error = -bpf_map_delete_elem(map->fd, key);
  if (error && error != ENOENT)
    return throw_errno(env, error, "cannot delete from map '%s'", map->name);
  return make_bool(env, !error);
}

static napi_value map_next_key(napi_env env, napi_callback_info info)
{
  napi_value argument[3];
  struct map *map;
  uint8_t *key = NULL, *next;
  napi_valuetype type;
  if (!read_arguments(env, info, 3, argument) || !(map = read_map(env, argument[0])) ||
      napi_typeof(env, argument[1], &type) != napi_ok ||
      (type != napi_undefined && !read_key(env, argument[1], map, &key)) || !read_key(env, argument[2], map, &next))
    return NULL;
  int error = -bpf_map_get_next_key(map->fd, key, next);
  if (error && error != ENOENT)
    return throw_errno(env, error, "cannot list the keys of map '%s'", map->name);
  return make_bool(env, !error);
}

/* Reads key by key, for kernels and map types without batches. Returns the number of elements read, or -errno. An
 * element that is deleted during the walk restarts it in the kernel, so `seen` bounds it. */
static int walk(struct map *map, struct cursor *cursor, uint8_t *token, uint8_t *keys, uint8_t *values, uint32_t room, bool take)
{
  uint32_t count = 0;
  while (count < room) {
    uint8_t *key = keys + (size_t)count * map->key_size;
    int error = cursor->seen >= 2ull * map->max_entries
                  ? -ENOENT
                  : bpf_map_get_next_key(map->fd, cursor->seen && !take ? token : NULL, key);
    if (error == -ENOENT) {
      cursor->phase = FINISHED;
      break;
    }
    if (error)
      return error;
    cursor->seen++;
    memcpy(token, key, map->key_size);
    error = bpf_map_lookup_elem(map->fd, key, values + count * map->slot_size);
    if (error == -ENOENT)
      continue;
    if (!error && take)
      error = bpf_map_delete_elem(map->fd, key);
    if (error && error != -ENOENT)
      return error;
    count++;
  }
  return count;
}

static napi_value map_read_batch(napi_env env, napi_callback_info info)
{
  napi_value argument[5];
  struct map *map;
  uint8_t *place, *keys, *values;
  size_t place_length, keys_length, values_length;
  bool take;
  if (!read_arguments(env, info, 5, argument) || !(map = read_map(env, argument[0])))
    return NULL;
  if (!map->key_size || !map->slot_size)
    return throw_errno(env, EOPNOTSUPP, "cannot list map '%s' (it has no keys or no values)", map->name);
  size_t token_size = map->key_size < 8 ? 8 : map->key_size;
  if (!read_bytes(env, argument[1], "the cursor", CURSOR_TOKEN + token_size, &place, &place_length) ||
      !read_bytes(env, argument[2], "the keys", map->key_size, &keys, &keys_length) ||
      !read_bytes(env, argument[3], "the values", map->slot_size, &values, &values_length) ||
      !read_bool(env, argument[4], "take", &take))
    return NULL;
  struct cursor cursor;
  memcpy(&cursor, place, sizeof cursor);
  uint8_t *token = place + CURSOR_TOKEN;
  size_t room = keys_length / map->key_size;
  if (room > values_length / map->slot_size)
    room = values_length / map->slot_size;
  if (room > INT32_MAX)
    room = INT32_MAX;
  int count = 0;
  if (cursor.phase == FRESH || cursor.phase == BATCH) {
    uint32_t moved = room;
    void *from = cursor.phase == BATCH ? token : NULL;
    LIBBPF_OPTS(bpf_map_batch_opts, options);
    int error = take ? bpf_map_lookup_and_delete_batch(map->fd, from, token, keys, values, &moved, &options)
                     : bpf_map_lookup_batch(map->fd, from, token, keys, values, &moved, &options);
    if (cursor.phase == FRESH && (error == -EINVAL || error == -524 || error == -EOPNOTSUPP)) {
      cursor.phase = BY_KEY; /* before 5.6, or a type without batches (524: ENOTSUPP) */
    } else if (error == 0 || (error == -EINTR && moved > 0)) {
      cursor.phase = BATCH;
      count = moved;
    } else if (error == -ENOENT) {
      cursor.phase = FINISHED;
      count = moved;
    } else {
      return throw_errno(env, error, "cannot read map '%s' in batches%s", map->name,
                         error == -ENOSPC ? " (one bucket of it has more elements than there is room for)" : "");
    }
  }
  if (cursor.phase == BY_KEY)
    count = walk(map, &cursor, token, keys, values, room, take);
  if (count < 0)
    return throw_errno(env, count, "cannot read map '%s'", map->name);
  memcpy(place, &cursor, sizeof cursor);
  return make_number(env, count);
}

static void unmap(napi_env env, void *data, void *hint)
{
  munmap(data, (size_t)hint);
}

static napi_value map_view(napi_env env, napi_callback_info info)
{
  napi_value argument[1], buffer;
  struct map *map;
  if (!read_arguments(env, info, 1, argument) || !(map = read_map(env, argument[0])))
    return NULL;
  size_t page = sysconf(_SC_PAGESIZE), stride = (map->value_size + 7ull) & ~7ull, size = stride * map->max_entries;
  size_t mapped = (size + page - 1) & ~(page - 1);
  if (map->type != BPF_MAP_TYPE_ARRAY || !(map->flags & BPF_F_MMAPABLE) || !size)
    return throw_errno(env, EINVAL, "cannot view map '%s' (it is not an array with BPF_F_MMAPABLE)", map->name);
  /* Writable or not at all: a JavaScript buffer cannot be read-only. */
  void *memory = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, map->fd, 0);
  if (memory == MAP_FAILED)
    return throw_errno(env, errno, "cannot view map '%s'", map->name);
  /* The mapping lives as long as the buffer and references the map, even after the object is closed. */
  if (napi_create_external_arraybuffer(env, memory, size, unmap, (void *)mapped, &buffer) != napi_ok) {
    munmap(memory, mapped);
    return throw_errno(env, ENOMEM, "cannot view map '%s'", map->name);
  }
  return buffer;
}

const struct function map_functions[] = {
  { "mapOpen", map_open },
  { "mapMake", map_make },
  { "mapLookup", map_lookup },
  { "mapUpdate", map_update },
  { "mapDelete", map_delete },
  { "mapNextKey", map_next_key },
  { "mapReadBatch", map_read_batch },
  { "mapView", map_view },
  { NULL, NULL },
};
