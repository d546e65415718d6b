/* Shared by the files of the addon: arguments, errors, handles and the capture of libbpf's messages.
 *
 * The addon provides only mechanisms: maps, programs, rings and file descriptors, but no protocols. For any arguments a
 * function throws a JavaScript error or succeeds; it never accesses memory that the arguments do not own. */
#ifndef SVC_ADDON_H
#define SVC_ADDON_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <node_api.h>
#include <bpf/libbpf.h>

#define MAX_ARGUMENTS 6
#define MAX_NAME 128

/* Arguments. Each reader throws a TypeError that names the argument and returns false if it is invalid. */
bool read_arguments(napi_env env, napi_callback_info info, size_t count, napi_value *values);
bool read_name(napi_env env, napi_value value, const char *what, char name[MAX_NAME]);
bool read_uint(napi_env env, napi_value value, const char *what, double limit, uint64_t *number);
bool read_bool(napi_env env, napi_value value, const char *what, bool *flag);
bool read_bytes(napi_env env, napi_value value, const char *what, size_t least, uint8_t **bytes, size_t *length);

/* Errors. Both return NULL, so that a caller can return them. */
napi_value throw_misuse(napi_env env, const char *format, ...) __attribute__((format(printf, 2, 3)));
napi_value throw_errno(napi_env env, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
void errno_name(int error, char name[32]);

/* Handles: JavaScript objects that own a C structure. The tag proves the kind, so a wrong object is an error. */
extern const napi_type_tag object_tag, link_tag, map_tag, ring_tag, perf_tag, poll_tag, stats_tag,
  uprobe_tag, channel_tag;
napi_value new_handle(napi_env env, const napi_type_tag *tag, void *data, void (*release)(void *data));
bool read_handle(napi_env env, napi_value value, const napi_type_tag *tag, const char *what, void **data);

/* Results. */
void set_number(napi_env env, napi_value object, const char *key, double number);
void set_string(napi_env env, napi_value object, const char *key, const char *text);
void set_bool(napi_env env, napi_value object, const char *key, bool flag);
napi_value make_number(napi_env env, double number);
napi_value make_bool(napi_env env, bool flag);
napi_value make_undefined(napi_env env);

/* Output of libbpf between begin_capture and end_capture on this thread. */
struct text {
  char *bytes;
  size_t length, capacity;
};
void begin_capture(struct text *text);
void end_capture(void);
/* " (message)" of the last captured line, or "". */
const char *last_line(const struct text *text, char line[256]);

/* An open object outlives its JavaScript handle while a handle of one of its maps exists. */
struct object {
  struct bpf_object *bpf; /* NULL: closed */
  struct link *links;
  int references;
  enum { OPENED, LOADING, LOADED, FAILED } state;
  pthread_t loader; /* while LOADING */
  bool ahead;       /* objectLoad returns what objectLoadAhead began */
  int error;        /* of the load */
  struct text text; /* captured during the load, until it is returned */
  char name[MAX_NAME];
};
void object_release(void *data);
/* Waits for a load that runs beside this thread. */
void await_load(struct object *object);
/* Read a handle of an open object, waiting for its load; of one that is not loaded yet; and the name of one of its
 * programs. NULL: an exception is pending. */
struct object *read_object(napi_env env, napi_value value);
struct object *read_opened(napi_env env, napi_value value);
struct bpf_program *read_program(napi_env env, struct object *object, napi_value value);

struct map {
  struct object *owner;
  int fd;
  uint32_t type, key_size, value_size, max_entries, flags;
  size_t slot_size; /* bytes of one value in system calls: of all CPUs in a per-CPU map */
  char name[MAX_NAME];
};
/* Reads a handle of a map whose object is still open. */
struct map *read_map(napi_env env, napi_value value);

/* Each file adds its functions to the exports. */
struct function {
  const char *name;
  napi_callback call;
};
extern const struct function object_functions[], load_functions[], map_functions[], ring_functions[], perf_functions[],
  poll_functions[], loop_functions[], probe_functions[], process_functions[], host_functions[], file_functions[],
  uprobe_functions[], channel_functions[], nvml_functions[];

#endif
