/* Compiled BPF objects: open, prepare, load, attach, inspect, close. */
#include "addon.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A link is referenced by its object, which detaches it on close, and by its JavaScript handle; the last one frees
 * it. */
struct link {
  struct object *owner; /* NULL: detached */
  struct bpf_link *bpf;
  struct link *previous, *next;
  bool has_handle;
};

static void detach(struct link *link)
{
  if (!link->owner)
    return;
  bpf_link__destroy(link->bpf);
  if (link->previous)
    link->previous->next = link->next;
  else
    link->owner->links = link->next;
  if (link->next)
    link->next->previous = link->previous;
  link->owner = NULL;
  link->bpf = NULL;
  if (!link->has_handle)
    free(link);
}

static void link_release(void *data)
{
  struct link *link = data;
  link->has_handle = false;
  if (!link->owner)
    free(link);
}

static void close_object(struct object *object)
{
  await_load(object);
  while (object->links)
    detach(object->links);
  bpf_object__close(object->bpf);
  object->bpf = NULL;
}

void object_release(void *data)
{
  struct object *object = data;
  if (--object->references > 0)
    return;
  close_object(object);
  free(object->text.bytes);
  free(object);
}

struct object *read_object(napi_env env, napi_value value)
{
  void *data;
  if (!read_handle(env, value, &object_tag, "a BPF object", &data))
    return NULL;
  struct object *object = data;
  if (!object->bpf)
    throw_errno(env, EBADF, "cannot use BPF object '%s' (it is closed)", object->name);
  await_load(object);
  return object->bpf ? object : NULL;
}

static struct object *read_object_in(napi_env env, napi_value value, int state)
{
  struct object *object = read_object(env, value);
  if (!object || (int)object->state == state)
    return object;
  throw_errno(env, EINVAL, "cannot use BPF object '%s' (%s)", object->name,
              object->state == OPENED ? "it is not loaded yet"
              : state == OPENED       ? "this must be set before it is loaded"
                                      : "its load failed: open it again");
  return NULL;
}

struct object *read_opened(napi_env env, napi_value value)
{
  return read_object_in(env, value, OPENED);
}

struct bpf_program *read_program(napi_env env, struct object *object, napi_value value)
{
  char name[MAX_NAME];
  if (!read_name(env, value, "the program's name", name))
    return NULL;
  struct bpf_program *program = bpf_object__find_program_by_name(object->bpf, name);
  if (!program)
    throw_errno(env, ENOENT, "cannot find program '%s' in BPF object '%s'", name, object->name);
  return program;
}

static struct bpf_map *read_map_name(napi_env env, struct object *object, napi_value value)
{
  char name[MAX_NAME];
  if (!read_name(env, value, "the map's name", name))
    return NULL;
  struct bpf_map *map = bpf_object__find_map_by_name(object->bpf, name);
  if (!map)
    throw_errno(env, ENOENT, "cannot find map '%s' in BPF object '%s'", name, object->name);
  return map;
}

static napi_value object_open(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  uint8_t *bytes;
  size_t length;
  char name[MAX_NAME], line[256];
  if (!read_arguments(env, info, 2, argument) || !read_bytes(env, argument[0], "the object file", 1, &bytes, &length) ||
      !read_name(env, argument[1], "the object's name", name))
    return NULL;

  struct object *object = calloc(1, sizeof *object);
  void *copy = malloc(length); /* libelf needs it aligned and may write to it; libbpf keeps no reference */
  if (!object || !copy) {
    free(object);
    free(copy);
    return throw_errno(env, ENOMEM, "cannot open BPF object '%s'", name);
  }
  memcpy(copy, bytes, length);
  LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = name);
  struct text text;
  begin_capture(&text);
  object->bpf = bpf_object__open_mem(copy, length, &options);
  int error = errno;
  end_capture();
  free(copy);
  if (!object->bpf) {
    free(object);
    throw_errno(env, error, "cannot open BPF object '%s'%s", name, last_line(&text, line));
    free(text.bytes);
    return NULL;
  }
  free(text.bytes);
  object->references = 1;
  strcpy(object->name, name);
  return new_handle(env, &object_tag, object, object_release);
}

static napi_value object_close(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  void *data;
  if (!read_arguments(env, info, 1, argument) || !read_handle(env, argument[0], &object_tag, "a BPF object", &data))
    return NULL;
  close_object(data);
  return make_undefined(env);
}

static napi_value object_maps(napi_env env, napi_callback_info info)
{
  napi_value argument[1], list, item;
  struct object *object;
  if (!read_arguments(env, info, 1, argument) || !(object = read_object(env, argument[0])) ||
      napi_create_array(env, &list) != napi_ok)
    return NULL;
  uint32_t index = 0;
  struct bpf_map *map;
  bpf_object__for_each_map(map, object->bpf) {
    if (napi_create_object(env, &item) != napi_ok)
      return NULL;
    set_string(env, item, "name", bpf_map__name(map));
    set_string(env, item, "type", libbpf_bpf_map_type_str(bpf_map__type(map)));
    set_number(env, item, "keySize", bpf_map__key_size(map));
    set_number(env, item, "valueSize", bpf_map__value_size(map));
    set_number(env, item, "maxEntries", bpf_map__max_entries(map));
    napi_set_element(env, list, index++, item);
  }
  return list;
}

static napi_value object_programs(napi_env env, napi_callback_info info)
{
  napi_value argument[1], list, item;
  struct object *object;
  if (!read_arguments(env, info, 1, argument) || !(object = read_object(env, argument[0])) ||
      napi_create_array(env, &list) != napi_ok)
    return NULL;
  uint32_t index = 0;
  struct bpf_program *program;
  bpf_object__for_each_program(program, object->bpf) {
    if (napi_create_object(env, &item) != napi_ok)
      return NULL;
    set_string(env, item, "name", bpf_program__name(program));
    set_string(env, item, "section", bpf_program__section_name(program));
    set_string(env, item, "type", libbpf_bpf_prog_type_str(bpf_program__type(program)));
    set_bool(env, item, "autoload", bpf_program__autoload(program));
    napi_set_element(env, list, index++, item);
  }
  return list;
}

static napi_value object_set_max_entries(napi_env env, napi_callback_info info)
{
  napi_value argument[3];
  struct object *object;
  struct bpf_map *map;
  uint64_t entries;
  if (!read_arguments(env, info, 3, argument) || !(object = read_object_in(env, argument[0], OPENED)) ||
      !(map = read_map_name(env, object, argument[1])) ||
      !read_uint(env, argument[2], "the number of entries", UINT32_MAX, &entries))
    return NULL;
  int error = bpf_map__set_max_entries(map, entries);
  if (error)
    return throw_errno(env, error, "cannot set the size of map '%s' of BPF object '%s'", bpf_map__name(map), object->name);
  return make_undefined(env);
}

static napi_value object_reuse_map(napi_env env, napi_callback_info info)
{
  napi_value argument[3];
  struct object *object;
  struct bpf_map *map;
  struct map *shared;
  if (!read_arguments(env, info, 3, argument) || !(object = read_object_in(env, argument[0], OPENED)) ||
      !(map = read_map_name(env, object, argument[1])) || !(shared = read_map(env, argument[2])))
    return NULL;
  /* libbpf accepts any map; the programs are compiled for this kind. */
  bool matches = bpf_map__type(map) == shared->type && bpf_map__key_size(map) == shared->key_size &&
                 bpf_map__value_size(map) == shared->value_size;
  int error = matches ? bpf_map__reuse_fd(map, shared->fd) : EINVAL;
  if (error)
    return throw_errno(env, error, "cannot use map '%s' as map '%s' of BPF object '%s'", shared->name, bpf_map__name(map),
                       object->name);
  return make_undefined(env);
}

static napi_value object_set_data(napi_env env, napi_callback_info info)
{
  napi_value argument[4];
  struct object *object;
  struct bpf_map *map;
  uint64_t offset;
  uint8_t *bytes;
  size_t length, size = 0;
  if (!read_arguments(env, info, 4, argument) || !(object = read_object_in(env, argument[0], OPENED)) ||
      !(map = read_map_name(env, object, argument[1])) ||
      !read_uint(env, argument[2], "the offset", UINT32_MAX, &offset) ||
      !read_bytes(env, argument[3], "the data", 0, &bytes, &length))
    return NULL;
  /* Before the load this is ordinary memory; libbpf makes it the map's initial value. */
  uint8_t *value = (uint8_t *)bpf_map__initial_value(map, &size);
  if (!value)
    return throw_errno(env, EINVAL, "cannot set data of map '%s' of BPF object '%s' (it is not a section of global data)",
                       bpf_map__name(map), object->name);
  if (offset > size || length > size - offset)
    return throw_errno(env, ERANGE, "cannot set %zu bytes at %zu of map '%s' of BPF object '%s' (it has %zu bytes)", length,
                       (size_t)offset, bpf_map__name(map), object->name, size);
  if (length)
    memcpy(value + offset, bytes, length);
  return make_undefined(env);
}

static napi_value object_set_autoload(napi_env env, napi_callback_info info)
{
  napi_value argument[3];
  struct object *object;
  struct bpf_program *program;
  bool on;
  if (!read_arguments(env, info, 3, argument) || !(object = read_object_in(env, argument[0], OPENED)) ||
      !(program = read_program(env, object, argument[1])) || !read_bool(env, argument[2], "autoload", &on))
    return NULL;
  int error = bpf_program__set_autoload(program, on);
  if (error)
    return throw_errno(env, error, "cannot switch program '%s' of BPF object '%s'", bpf_program__name(program), object->name);
  return make_undefined(env);
}

/* Attaches by the program's section; to a perf event if `event` is not negative. */
static napi_value attach(napi_env env, napi_value handle, napi_value name, int event)
{
  struct object *object;
  struct bpf_program *program;
  if (!(object = read_object_in(env, handle, LOADED)) || !(program = read_program(env, object, name)))
    return NULL;
  const char *title = bpf_program__name(program);
  if (bpf_program__fd(program) < 0)
    return throw_errno(env, EINVAL, "cannot attach program '%s' of BPF object '%s' (it was left out of the load)", title,
                       object->name);
  struct link *link = calloc(1, sizeof *link);
  if (!link)
    return throw_errno(env, ENOMEM, "cannot attach program '%s' of BPF object '%s'", title, object->name);
  struct text text;
  char line[256];
  begin_capture(&text);
  link->bpf = event < 0 ? bpf_program__attach(program) : bpf_program__attach_perf_event(program, event);
  int error = errno;
  end_capture();
  if (!link->bpf) {
    free(link);
    throw_errno(env, error, "cannot attach program '%s' of BPF object '%s'%s", title, object->name, last_line(&text, line));
    free(text.bytes);
    return NULL;
  }
  free(text.bytes);
  link->owner = object;
  link->next = object->links;
  if (link->next)
    link->next->previous = link;
  object->links = link;
  link->has_handle = true;
  return new_handle(env, &link_tag, link, link_release);
}

static napi_value object_attach(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  return read_arguments(env, info, 2, argument) ? attach(env, argument[0], argument[1], -1) : NULL;
}

static napi_value perf_event_attach(napi_env env, napi_callback_info info)
{
  napi_value argument[3];
  uint64_t event;
  if (!read_arguments(env, info, 3, argument) ||
      !read_uint(env, argument[2], "the event's descriptor", INT32_MAX, &event))
    return NULL;
  return attach(env, argument[0], argument[1], event);
}

static napi_value link_detach(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  void *data;
  if (!read_arguments(env, info, 1, argument) || !read_handle(env, argument[0], &link_tag, "a link", &data))
    return NULL;
  detach(data);
  return make_undefined(env);
}

static struct link *read_attached(napi_env env, napi_value value)
{
  void *data;
  if (!read_handle(env, value, &link_tag, "a link", &data))
    return NULL;
  struct link *link = data;
  if (!link->owner)
    throw_errno(env, EBADF, "cannot use a link (it is detached)");
  return link->owner ? link : NULL;
}

static napi_value link_info(napi_env env, napi_callback_info info)
{
  napi_value argument[1], result;
  struct link *link;
  if (!read_arguments(env, info, 1, argument) || !(link = read_attached(env, argument[0])))
    return NULL;
  struct bpf_link_info kernel = { 0 };
  uint32_t size = sizeof kernel;
  /* Before 5.15 perf events have no kernel link, and no id. */
  if (bpf_obj_get_info_by_fd(bpf_link__fd(link->bpf), &kernel, &size) != 0)
    kernel = (struct bpf_link_info){ 0 };
  if (napi_create_object(env, &result) != napi_ok)
    return NULL;
  set_number(env, result, "id", kernel.id);
  set_number(env, result, "programId", kernel.prog_id);
  set_string(env, result, "type", kernel.id ? libbpf_bpf_link_type_str(kernel.type) : "perf_event");
  return result;
}

static napi_value program_info(napi_env env, napi_callback_info info)
{
  napi_value argument[2], result;
  struct object *object;
  struct bpf_program *program;
  if (!read_arguments(env, info, 2, argument) || !(object = read_object_in(env, argument[0], LOADED)) ||
      !(program = read_program(env, object, argument[1])))
    return NULL;
  struct bpf_prog_info kernel = { 0 };
  uint32_t size = sizeof kernel;
  int fd = bpf_program__fd(program);
  int error = fd < 0 ? fd : bpf_obj_get_info_by_fd(fd, &kernel, &size);
  if (error)
    return throw_errno(env, error, "cannot read program '%s' of BPF object '%s'", bpf_program__name(program), object->name);
  char tag[2 * BPF_TAG_SIZE + 1];
  for (size_t i = 0; i < BPF_TAG_SIZE; i++)
    sprintf(tag + 2 * i, "%02x", kernel.tag[i]);
  if (napi_create_object(env, &result) != napi_ok)
    return NULL;
  set_number(env, result, "id", kernel.id);
  set_string(env, result, "type", libbpf_bpf_prog_type_str(kernel.type));
  set_string(env, result, "tag", tag);
  set_number(env, result, "runTimeNs", (double)kernel.run_time_ns);
  set_number(env, result, "runCount", (double)kernel.run_cnt);
  set_number(env, result, "instructions", kernel.xlated_prog_len / 8);
  return result;
}

static napi_value iterator_open(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  struct link *link;
  if (!read_arguments(env, info, 1, argument) || !(link = read_attached(env, argument[0])))
    return NULL;
  int fd = bpf_iter_create(bpf_link__fd(link->bpf));
  if (fd < 0)
    return throw_errno(env, fd, "cannot read an iterator of BPF object '%s'", link->owner->name);
  return make_number(env, fd);
}

const struct function object_functions[] = {
  { "objectOpen", object_open },
  { "objectClose", object_close },
  { "objectMaps", object_maps },
  { "objectPrograms", object_programs },
  { "objectSetMaxEntries", object_set_max_entries },
  { "objectReuseMap", object_reuse_map },
  { "objectSetData", object_set_data },
  { "objectSetAutoload", object_set_autoload },
  { "objectAttach", object_attach },
  { "perfEventAttach", perf_event_attach },
  { "linkDetach", link_detach },
  { "linkInfo", link_info },
  { "programInfo", program_info },
  { "iteratorOpen", iterator_open },
  { NULL, NULL },
};
