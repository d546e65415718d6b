/* Programs at functions of user space: attached to a file, whoever maps it. */
#include "addon.h"

#include <errno.h>
#include <limits.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_PLACES 64

/* One link for many places (kernel 6.6), which libbpf 1.1 does not know yet: include/uapi/linux/bpf.h of the kernel. Each
 * link of its own, as before, costs a tenth of a second when it is taken off. */
#define TRACE_UPROBE_MULTI 48
#define MULTI_RETURN 1
struct multi_create {
  uint32_t program_fd, target_fd, attach_type, flags;
  uint64_t path, offsets, reference_counters, cookies;
  uint32_t count, multi_flags, pid;
};

/* Belongs to its JavaScript handle, which keeps the memory of the program's object. */
struct uprobe {
  struct object *owner;
  int multi; /* descriptor, -1: none */
  size_t count;
  struct bpf_link *links[MAX_PLACES];
};

struct place {
  const char *path;
  bool at_return;
  size_t count;
  uint64_t offsets[MAX_PLACES], cookies[MAX_PLACES];
};

static void detach(struct uprobe *uprobe)
{
  if (uprobe->multi >= 0)
    close(uprobe->multi);
  uprobe->multi = -1;
  while (uprobe->count > 0)
    bpf_link__destroy(uprobe->links[--uprobe->count]);
}

static void uprobe_release(void *data)
{
  struct uprobe *uprobe = data;
  detach(uprobe);
  object_release(uprobe->owner);
  free(uprobe);
}

static bool read_path(napi_env env, napi_value value, char path[PATH_MAX])
{
  size_t length;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok || length == 0 || length >= PATH_MAX) {
    throw_misuse(env, "the path must be a string of 1 to %d bytes", PATH_MAX - 1);
    return false;
  }
  if (napi_get_value_string_utf8(env, value, path, PATH_MAX, &length) != napi_ok)
    return false;
  if (strlen(path) == length)
    return true;
  throw_misuse(env, "the path must not hold a zero byte");
  return false;
}

/* An array of numbers: 1 to MAX_PLACES of them. */
static bool read_numbers(napi_env env, napi_value value, const char *what, uint64_t numbers[MAX_PLACES], size_t *count)
{
  bool is_array = false;
  uint32_t length = 0;
  if (napi_is_array(env, value, &is_array) != napi_ok || !is_array ||
      napi_get_array_length(env, value, &length) != napi_ok || length == 0 || length > MAX_PLACES) {
    throw_misuse(env, "%s must be an array of 1 to %d numbers", what, MAX_PLACES);
    return false;
  }
  for (uint32_t i = 0; i < length; i++) {
    napi_value element;
    if (napi_get_element(env, value, i, &element) != napi_ok ||
        !read_uint(env, element, what, 9007199254740991.0, &numbers[i]))
      return false;
  }
  *count = length;
  return true;
}

static napi_value uprobe_prepare(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  struct object *object;
  struct bpf_program *program;
  if (!read_arguments(env, info, 2, argument) || !(object = read_object(env, argument[0])) ||
      !(program = read_program(env, object, argument[1])))
    return NULL;
  int error = object->state == OPENED ? bpf_program__set_expected_attach_type(program, TRACE_UPROBE_MULTI) : -EINVAL;
  if (error)
    return throw_errno(env, error, "cannot prepare program '%s' of BPF object '%s' (it must not be loaded yet)",
                       bpf_program__name(program), object->name);
  return make_undefined(env);
}

/* All places by one link. Returns 0, or the errno. */
static int attach_multi(struct uprobe *uprobe, struct bpf_program *program, const struct place *place)
{
  struct multi_create create = {
    .program_fd = bpf_program__fd(program),
    .attach_type = TRACE_UPROBE_MULTI,
    .path = (uintptr_t)place->path,
    .offsets = (uintptr_t)place->offsets,
    .cookies = (uintptr_t)place->cookies,
    .count = place->count,
    .multi_flags = place->at_return ? MULTI_RETURN : 0,
  };
  uprobe->multi = syscall(SYS_bpf, BPF_LINK_CREATE, &create, sizeof create);
  return uprobe->multi < 0 ? errno : 0;
}

/* A link for each place. Returns 0, or the errno. */
static int attach_singly(struct uprobe *uprobe, struct bpf_program *program, const struct place *place)
{
  for (size_t i = 0; i < place->count; i++) {
    LIBBPF_OPTS(bpf_uprobe_opts, options, .retprobe = place->at_return, .bpf_cookie = place->cookies[i]);
    struct bpf_link *link = bpf_program__attach_uprobe_opts(program, -1, place->path, place->offsets[i], &options);
    if (!link) {
      int error = errno;
      detach(uprobe);
      return error;
    }
    uprobe->links[uprobe->count++] = link;
  }
  return 0;
}

static napi_value uprobe_attach(napi_env env, napi_callback_info info)
{
  napi_value argument[6];
  struct object *object;
  struct bpf_program *program;
  struct place place;
  char path[PATH_MAX], line[256];
  size_t cookies;
  if (!read_arguments(env, info, 6, argument) || !(object = read_object(env, argument[0])) ||
      !(program = read_program(env, object, argument[1])) || !read_path(env, argument[2], path) ||
      !read_numbers(env, argument[3], "the offsets", place.offsets, &place.count) ||
      !read_numbers(env, argument[4], "the cookies", place.cookies, &cookies) ||
      !read_bool(env, argument[5], "whether it is at the return", &place.at_return))
    return NULL;
  if (cookies != place.count)
    return throw_misuse(env, "there must be as many cookies as offsets");
  const char *name = bpf_program__name(program);
  if (object->state != LOADED || bpf_program__fd(program) < 0)
    return throw_errno(env, EINVAL, "cannot attach program '%s' of BPF object '%s' (it is not loaded)", name,
                       object->name);
  struct uprobe *uprobe = calloc(1, sizeof *uprobe);
  if (!uprobe)
    return throw_errno(env, ENOMEM, "cannot attach program '%s'", name);
  place.path = path;
  struct text text;
  begin_capture(&text);
  int error = attach_multi(uprobe, program, &place);
  if (error == EINVAL || error == EOPNOTSUPP || error == ENOSYS) /* an older kernel, or the place is at fault: one by one tells */
    error = attach_singly(uprobe, program, &place);
  end_capture();
  if (error) {
    free(uprobe);
    throw_errno(env, error, "cannot attach program '%s' to %.200s%s", name, path, last_line(&text, line));
    free(text.bytes);
    return NULL;
  }
  free(text.bytes);
  uprobe->owner = object;
  object->references++;
  return new_handle(env, &uprobe_tag, uprobe, uprobe_release);
}

static napi_value uprobe_detach(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  void *data;
  if (!read_arguments(env, info, 1, argument) || !read_handle(env, argument[0], &uprobe_tag, "a uprobe", &data))
    return NULL;
  detach(data);
  return make_undefined(env);
}

const struct function uprobe_functions[] = {
  { "uprobePrepare", uprobe_prepare },
  { "uprobeAttach", uprobe_attach },
  { "uprobeDetach", uprobe_detach },
  { NULL, NULL },
};
