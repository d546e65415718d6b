/* Duration of event loop turns: from one wait for events to the next, without the wait. */
#include "addon.h"

#include <stdlib.h>
#include <uv.h>

/* Indexes in the output array, before the buckets. */
enum { TURNS, BUSY_SECONDS, LONGEST_SECONDS, BUCKETS };

struct watch {
  uv_prepare_t uv; /* runs before each wait */
  napi_env env;
  napi_ref bounds_reference, figures_reference; /* keep the memory below alive */
  napi_async_cleanup_hook_handle hook;
  const double *bounds;
  double *figures;
  size_t count;
  uint64_t last, idle;
};

static void on_closed(uv_handle_t *uv)
{
  struct watch *watch = uv->data;
  napi_delete_reference(watch->env, watch->bounds_reference);
  napi_delete_reference(watch->env, watch->figures_reference);
  napi_remove_async_cleanup_hook(watch->hook);
  free(watch);
}

static void on_environment_end(napi_async_cleanup_hook_handle hook, void *data)
{
  struct watch *watch = data;
  uv_close((uv_handle_t *)&watch->uv, on_closed);
}

static void on_turn(uv_prepare_t *uv)
{
  struct watch *watch = uv->data;
  uint64_t now = uv_hrtime(), idle = uv_metrics_idle_time(uv->loop);
  uint64_t passed = now - watch->last, waited = idle - watch->idle;
  double seconds = passed > waited ? (passed - waited) / 1e9 : 0;
  double *figures = watch->figures;
  watch->last = now;
  watch->idle = idle;
  figures[TURNS]++;
  figures[BUSY_SECONDS] += seconds;
  if (seconds > figures[LONGEST_SECONDS])
    figures[LONGEST_SECONDS] = seconds;
  size_t bucket = 0;
  while (bucket < watch->count && seconds > watch->bounds[bucket])
    bucket++;
  figures[BUCKETS + bucket]++;
}

static bool read_numbers(napi_env env, napi_value value, const char *what, double **numbers, size_t *count)
{
  napi_typedarray_type type;
  bool is_array = false;
  if (napi_is_typedarray(env, value, &is_array) == napi_ok && is_array &&
      napi_get_typedarray_info(env, value, &type, count, (void **)numbers, NULL, NULL) == napi_ok &&
      type == napi_float64_array)
    return true;
  throw_misuse(env, "%s must be a Float64Array", what);
  return false;
}

static napi_value loop_watch(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  double *bounds, *figures;
  size_t count, room;
  uv_loop_t *loop;
  if (!read_arguments(env, info, 2, argument) || !read_numbers(env, argument[0], "the bounds", &bounds, &count) ||
      !read_numbers(env, argument[1], "the figures", &figures, &room))
    return NULL;
  if (room != BUCKETS + count + 1)
    return throw_misuse(env, "the figures have no room for the bounds");
  if (napi_get_uv_event_loop(env, &loop) != napi_ok)
    return throw_misuse(env, "cannot watch the event loop");
  struct watch *watch = calloc(1, sizeof *watch);
  if (!watch)
    return throw_misuse(env, "cannot watch the event loop: no memory");
  *watch = (struct watch){ .env = env, .bounds = bounds, .figures = figures, .count = count };
  uv_prepare_init(loop, &watch->uv);
  watch->uv.data = watch;
  napi_create_reference(env, argument[0], 1, &watch->bounds_reference);
  napi_create_reference(env, argument[1], 1, &watch->figures_reference);
  napi_add_async_cleanup_hook(env, on_environment_end, watch, &watch->hook);
  watch->last = uv_hrtime();
  watch->idle = uv_metrics_idle_time(loop);
  uv_prepare_start(&watch->uv, on_turn);
  uv_unref((uv_handle_t *)&watch->uv);
  return make_undefined(env);
}

const struct function loop_functions[] = {
  { "loopWatch", loop_watch },
  { NULL, NULL },
};
