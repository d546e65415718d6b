/* Loads of BPF objects, on this thread or beside it. */
#include "addon.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

/* The initial values of global data are in the kernel now. libbpf keeps its copies in shared memory, of 8 MB for profiles;
 * from version 1.5 on they are the maps themselves, which refuse this. */
static void forget_initial_values(struct bpf_object *bpf)
{
  struct bpf_map *map;
  bpf_object__for_each_map(map, bpf) {
    size_t size;
    void *value = (void *)bpf_map__initial_value(map, &size);
    if (value)
      madvise(value, size, MADV_REMOVE);
  }
}

static void *run_load(void *data)
{
  struct object *object = data;
  begin_capture(&object->text);
  /* libbpf loads a rejected program once more with a log, which it prints. */
  object->error = -bpf_object__load(object->bpf);
  end_capture();
  if (!object->error)
    forget_initial_values(object->bpf);
  return NULL;
}

void await_load(struct object *object)
{
  if (object->state != LOADING)
    return;
  pthread_join(object->loader, NULL);
  object->state = object->error ? FAILED : LOADED;
}

/* Loads on a thread if `ahead` and there is one, else on this one. */
static void load(struct object *object, bool ahead)
{
  /* A pending signal ends the verifier with EAGAIN, and libbpf gives up at the fifth time: verification that takes half
   * a second would never succeed beside a timer's signals. The thread inherits the mask. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  object->state = LOADING;
  if (!ahead || pthread_create(&object->loader, NULL, run_load, object) != 0) {
    run_load(object);
    object->state = object->error ? FAILED : LOADED;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static napi_value object_load_ahead(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  struct object *object;
  if (!read_arguments(env, info, 1, argument) || !(object = read_opened(env, argument[0])))
    return NULL;
  load(object, true);
  object->ahead = true;
  return make_undefined(env);
}

static napi_value object_load(napi_env env, napi_callback_info info)
{
  napi_value argument[1], result, log;
  struct object *object;
  if (!read_arguments(env, info, 1, argument) || !(object = read_object(env, argument[0])))
    return NULL;
  if (!object->ahead) {
    if (!read_opened(env, argument[0]))
      return NULL;
    load(object, false);
  }
  object->ahead = false;
  char code[32] = "";
  if (object->error)
    errno_name(object->error, code);
  bool made = napi_create_object(env, &result) == napi_ok &&
              napi_create_string_utf8(env, object->text.bytes ? object->text.bytes : "", object->text.length, &log) == napi_ok;
  free(object->text.bytes);
  object->text = (struct text){ 0 };
  if (!made)
    return NULL;
  set_number(env, result, "errno", object->error);
  set_string(env, result, "code", code);
  napi_set_named_property(env, result, "log", log);
  return result;
}

const struct function load_functions[] = {
  { "objectLoadAhead", object_load_ahead },
  { "objectLoad", object_load },
  { NULL, NULL },
};
