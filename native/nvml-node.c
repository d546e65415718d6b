/* NVIDIA's management library, for JavaScript. It calls the driver, and a hanging driver hangs its caller: each request
 * has its own thread, which is never joined and signals its answer with an eventfd. The event loop only reads answers,
 * and the thread's data lives until both have released it. A thread of libuv's pool would be blocked for as long, and
 * joined when the process exits. */
#include "nvml.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

static const napi_type_tag nvml_tag = { 0x7c1f0d4e5b2a4e9dULL, 0x9d3a6f1e8c7b2045ULL };

static const char *const value_names[VALUE_COUNT] = {
#define V(name) #name,
  VALUES(V)
#undef V
};

static void free_answer(struct answer *answer)
{
  if (!answer)
    return;
  for (unsigned i = 0; i < answer->count; i++) {
    free(answer->devices[i].processes);
    free(answer->devices[i].samples);
  }
  free(answer->devices);
  free(answer);
}

static void release(struct nvml *nvml)
{
  pthread_mutex_lock(&nvml->lock);
  int left = --nvml->references;
  pthread_mutex_unlock(&nvml->lock);
  if (left > 0)
    return;
  free_answer(nvml->answer);
  close(nvml->fd);
  pthread_mutex_destroy(&nvml->lock);
  free(nvml);
}

static void *run(void *data)
{
  struct nvml *nvml = data;
  prctl(PR_SET_NAME, "svc-nvml");
  pthread_mutex_lock(&nvml->lock);
  bool closing = nvml->closing;
  pthread_mutex_unlock(&nvml->lock);
  struct answer *answer = closing ? NULL : calloc(1, sizeof *answer);
  if (answer)
    nvml_look(nvml, answer);
  pthread_mutex_lock(&nvml->lock);
  nvml->answer = answer;
  closing = nvml->closing;
  nvml->running = false;
  pthread_mutex_unlock(&nvml->lock);
  /* Only this thread uses the library once it is closing. */
  if (closing)
    nvml_unload(nvml);
  else
    eventfd_write(nvml->fd, 1);
  release(nvml);
  return NULL;
}

/* The event loop. */

/* Returns 0 or an errno. Signals go to other threads: their handlers are Node's. */
static int start(struct nvml *nvml)
{
  sigset_t all, before;
  pthread_attr_t attributes;
  pthread_t thread;
  nvml->references++;
  nvml->running = true;
  sigfillset(&all);
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&thread, &attributes, run, nvml);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (error) {
    nvml->references--;
    nvml->running = false;
  }
  return error;
}

/* Shutting the library down may hang, too. */
static void end(struct nvml *nvml)
{
  pthread_mutex_lock(&nvml->lock);
  bool idle = !nvml->closing && !nvml->running && nvml->library;
  nvml->closing = true;
  if (idle)
    start(nvml);
  pthread_mutex_unlock(&nvml->lock);
}

static void nvml_release(void *data)
{
  end(data);
  release(data);
}

static struct nvml *read_nvml(napi_env env, napi_value value)
{
  void *data;
  return read_handle(env, value, &nvml_tag, "NVML", &data) ? data : NULL;
}

static napi_value nvml_open(napi_env env, napi_callback_info info)
{
  napi_value argument[1], path;
  uint32_t count;
  if (!read_arguments(env, info, 1, argument))
    return NULL;
  if (napi_get_array_length(env, argument[0], &count) != napi_ok || count == 0 || count > MAX_PATHS)
    return throw_misuse(env, "the libraries must be an array of 1 to %d", MAX_PATHS);
  struct nvml *nvml = calloc(1, sizeof *nvml);
  if (!nvml)
    return throw_errno(env, ENOMEM, "cannot use NVML");
  for (uint32_t i = 0; i < count; i++) {
    if (napi_get_element(env, argument[0], i, &path) != napi_ok ||
        !read_name(env, path, "the library", nvml->paths[i])) {
      free(nvml);
      return NULL;
    }
  }
  nvml->path_count = count;
  nvml->references = 1;
  nvml->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (nvml->fd < 0) {
    free(nvml);
    return throw_errno(env, errno, "cannot use NVML");
  }
  pthread_mutex_init(&nvml->lock, NULL);
  int fd = nvml->fd;
  napi_value handle = new_handle(env, &nvml_tag, nvml, nvml_release);
  if (handle)
    set_number(env, handle, "fd", fd);
  return handle;
}

static napi_value nvml_ask(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  bool per_process;
  if (!read_arguments(env, info, 2, argument) || !read_bool(env, argument[1], "per process", &per_process))
    return NULL;
  struct nvml *nvml = read_nvml(env, argument[0]);
  if (!nvml)
    return NULL;
  pthread_mutex_lock(&nvml->lock);
  int error = nvml->closing ? EBADF : nvml->running ? EBUSY : 0;
  if (!error) {
    free_answer(nvml->answer);
    nvml->answer = NULL;
    nvml->per_process = per_process;
    error = start(nvml);
  }
  pthread_mutex_unlock(&nvml->lock);
  return error ? throw_errno(env, error, "cannot ask NVML") : make_undefined(env);
}

static napi_value new_table(napi_env env, size_t length, double **numbers)
{
  napi_value buffer, table;
  *numbers = NULL;
  if (napi_create_arraybuffer(env, length * sizeof **numbers, (void **)numbers, &buffer) != napi_ok ||
      napi_create_typedarray(env, napi_float64_array, length, buffer, 0, &table) != napi_ok)
    return NULL;
  return table;
}

static double instance_or_none(unsigned id)
{
  return id == UINT32_MAX ? -1.0 : id;
}

static napi_value show_processes(napi_env env, const struct device *device)
{
  double *row;
  napi_value table = new_table(env, (size_t)device->process_count * 4, &row);
  for (unsigned i = 0; table && i < device->process_count; i++, row += 4) {
    const struct process_info *process = &device->processes[i];
    row[0] = process->pid;
    row[1] = process->memory == UINT64_MAX ? NAN : (double)process->memory;
    row[2] = instance_or_none(process->gpu_instance);
    row[3] = instance_or_none(process->compute_instance);
  }
  return table;
}

static napi_value show_samples(napi_env env, const struct device *device)
{
  double *row;
  napi_value table = new_table(env, (size_t)device->sample_count * 6, &row);
  for (unsigned i = 0; table && i < device->sample_count; i++, row += 6) {
    const struct process_sample *sample = &device->samples[i];
    row[0] = sample->pid;
    row[1] = sample->time;
    row[2] = sample->sm;
    row[3] = sample->memory;
    row[4] = sample->encoder;
    row[5] = sample->decoder;
  }
  return table;
}

static napi_value show_instances(napi_env env, const struct device *device)
{
  napi_value list, item;
  napi_create_array_with_length(env, device->instance_count, &list);
  for (unsigned i = 0; i < device->instance_count; i++) {
    const struct instance *instance = &device->instances[i];
    napi_create_object(env, &item);
    set_string(env, item, "uuid", instance->uuid);
    set_string(env, item, "name", instance->name);
    set_number(env, item, "gpuInstance", instance_or_none(instance->gpu_instance));
    set_number(env, item, "memoryTotal", instance->memory.total);
    set_number(env, item, "memoryUsed", instance->memory.used);
    napi_set_element(env, list, i, item);
  }
  return list;
}

static napi_value show_device(napi_env env, const struct device *device)
{
  napi_value object, values;
  napi_create_object(env, &object);
  napi_create_object(env, &values);
  set_number(env, object, "status", device->status);
  set_string(env, object, "error", device->error);
  set_string(env, object, "uuid", device->uuid);
  set_string(env, object, "name", device->name);
  set_string(env, object, "serial", device->serial);
  set_string(env, object, "bus", device->bus);
  for (int i = 0; i < VALUE_COUNT; i++)
    if (!isnan(device->values[i]))
      set_number(env, values, value_names[i], device->values[i]);
  napi_set_named_property(env, object, "values", values);
  napi_set_named_property(env, object, "instances", show_instances(env, device));
  napi_set_named_property(env, object, "processes", show_processes(env, device));
  if (device->has_samples)
    napi_set_named_property(env, object, "samples", show_samples(env, device));
  return object;
}

static napi_value nvml_take(napi_env env, napi_callback_info info)
{
  napi_value argument[1], object, devices;
  struct nvml *nvml;
  eventfd_t count;
  if (!read_arguments(env, info, 1, argument) || !(nvml = read_nvml(env, argument[0])))
    return NULL;
  eventfd_read(nvml->fd, &count);
  pthread_mutex_lock(&nvml->lock);
  struct answer *answer = nvml->running ? NULL : nvml->answer;
  if (answer)
    nvml->answer = NULL;
  pthread_mutex_unlock(&nvml->lock);
  if (!answer)
    return make_undefined(env);
  napi_create_object(env, &object);
  set_string(env, object, "failed", answer->failed);
  set_number(env, object, "status", answer->status);
  set_string(env, object, "error", answer->error);
  set_string(env, object, "driver", answer->driver);
  set_string(env, object, "library", answer->path);
  napi_create_array_with_length(env, answer->count, &devices);
  for (unsigned i = 0; i < answer->count; i++)
    napi_set_element(env, devices, i, show_device(env, &answer->devices[i]));
  napi_set_named_property(env, object, "devices", devices);
  free_answer(answer);
  return object;
}

static napi_value nvml_close(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  struct nvml *nvml;
  if (!read_arguments(env, info, 1, argument) || !(nvml = read_nvml(env, argument[0])))
    return NULL;
  end(nvml);
  return make_undefined(env);
}

const struct function nvml_functions[] = { { "nvmlOpen", nvml_open },
                                           { "nvmlAsk", nvml_ask },
                                           { "nvmlTake", nvml_take },
                                           { "nvmlClose", nvml_close },
                                           { 0 } };
