/* The addon's entry point and shared functions. */
#define _GNU_SOURCE
#include "addon.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

const napi_type_tag object_tag = { 0x5376634f626a6563, 1 }, link_tag = { 0x5376634c696e6b00, 1 },
                    map_tag = { 0x5376634d61700000, 1 }, ring_tag = { 0x53766352696e6700, 1 },
                    perf_tag = { 0x5376635065726600, 1 }, poll_tag = { 0x537663506f6c6c00, 1 },
                    stats_tag = { 0x5376635374617473, 1 }, uprobe_tag = { 0x5376637570726f62, 1 },
                    channel_tag = { 0x5376636368616e6e, 1 };

/* A verifier log can have 16 MB; its end has the reason, so the middle is cut. */
#define MAX_CAPTURE (128 * 1024)
#define MESSAGE_HEAD 2048
#define MAX_MESSAGE (60 * 1024)

static __thread struct text *capture;

static void append(struct text *text, const char *bytes, size_t length)
{
  if (length > MAX_CAPTURE - text->length)
    length = MAX_CAPTURE - text->length;
  if (text->length + length > text->capacity) {
    size_t capacity = (text->length + length) * 2;
    char *grown = realloc(text->bytes, capacity);
    if (!grown)
      return;
    text->bytes = grown;
    text->capacity = capacity;
  }
  if (length)
    memcpy(text->bytes + text->length, bytes, length);
  text->length += length;
}

static int on_print(enum libbpf_print_level level, const char *format, va_list arguments)
{
  if (!capture || level == LIBBPF_DEBUG)
    return 0;
  char *message = NULL;
  int length = vasprintf(&message, format, arguments);
  if (length < 0)
    return 0;
  if (length <= MAX_MESSAGE) {
    append(capture, message, length);
  } else {
    append(capture, message, MESSAGE_HEAD);
    append(capture, "\n[...]\n", 7);
    append(capture, message + length - (MAX_MESSAGE - MESSAGE_HEAD), MAX_MESSAGE - MESSAGE_HEAD);
  }
  free(message);
  return length;
}

void begin_capture(struct text *text)
{
  *text = (struct text){ 0 };
  capture = text;
}

void end_capture(void)
{
  capture = NULL;
}

const char *last_line(const struct text *text, char line[256])
{
  size_t end = text->length;
  while (end > 0 && (text->bytes[end - 1] == '\n' || text->bytes[end - 1] == ' '))
    end--;
  size_t start = end;
  while (start > 0 && text->bytes[start - 1] != '\n')
    start--;
  if (end - start > 8 && memcmp(text->bytes + start, "libbpf: ", 8) == 0)
    start += 8;
  if (start == end)
    return "";
  snprintf(line, 256, " (%.*s)", (int)(end - start > 200 ? 200 : end - start), text->bytes + start);
  return line;
}

void errno_name(int error, char name[32])
{
  uv_err_name_r(-error, name, 32);
  if (error == 524) /* the kernel-internal ENOTSUPP, which has no name in user space */
    strcpy(name, "ENOTSUPP");
  else if (error >= __LIBBPF_ERRNO__START && error < __LIBBPF_ERRNO__END)
    strcpy(name, "ELIBBPF");
  else if (strncmp(name, "Unknown", 7) == 0)
    snprintf(name, 32, "ERRNO_%d", error);
}

static napi_value throw_with_code(napi_env env, bool type_error, const char *code, int error, const char *message)
{
  napi_value text, name, object;
  if (napi_create_string_utf8(env, message, NAPI_AUTO_LENGTH, &text) != napi_ok ||
      napi_create_string_utf8(env, code, NAPI_AUTO_LENGTH, &name) != napi_ok)
    return NULL;
  if ((type_error ? napi_create_type_error : napi_create_error)(env, name, text, &object) != napi_ok)
    return NULL;
  if (error)
    set_number(env, object, "errno", error);
  napi_throw(env, object);
  return NULL;
}

napi_value throw_misuse(napi_env env, const char *format, ...)
{
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return throw_with_code(env, true, "ERR_INVALID_ARG", 0, message);
}

napi_value throw_errno(napi_env env, int error, const char *format, ...)
{
  char what[512], why[128], code[32], message[700];
  if (error < 0)
    error = -error;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  errno_name(error, code);
  if (error == 524)
    strcpy(why, "operation not supported by this kernel");
  else if (strcmp(code, "ELIBBPF") == 0)
    libbpf_strerror(error, why, sizeof why);
  else
    uv_strerror_r(-error, why, sizeof why);
  /* If a format ends with a detail, "(…)", it stays after the cause. */
  char *detail = strstr(what, " (");
  if (detail)
    snprintf(message, sizeof message, "%.*s: %s%s", (int)(detail - what), what, why, detail);
  else
    snprintf(message, sizeof message, "%s: %s", what, why);
  return throw_with_code(env, false, code, error, message);
}

bool read_arguments(napi_env env, napi_callback_info info, size_t count, napi_value *values)
{
  /* Omitted arguments are undefined, which the readers reject. */
  return napi_get_cb_info(env, info, &count, values, NULL, NULL) == napi_ok;
}

bool read_name(napi_env env, napi_value value, const char *what, char name[MAX_NAME])
{
  size_t length;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok || length == 0 || length >= MAX_NAME) {
    throw_misuse(env, "%s must be a string of 1 to %d bytes", what, MAX_NAME - 1);
    return false;
  }
  return napi_get_value_string_utf8(env, value, name, MAX_NAME, &length) == napi_ok;
}

bool read_uint(napi_env env, napi_value value, const char *what, double limit, uint64_t *number)
{
  double given;
  if (napi_get_value_double(env, value, &given) != napi_ok || !(given >= 0 && given <= limit) ||
      given != (double)(uint64_t)given) {
    throw_misuse(env, "%s must be a whole number from 0 to %.0f", what, limit);
    return false;
  }
  *number = (uint64_t)given;
  return true;
}

bool read_bool(napi_env env, napi_value value, const char *what, bool *flag)
{
  if (napi_get_value_bool(env, value, flag) == napi_ok)
    return true;
  throw_misuse(env, "%s must be true or false", what);
  return false;
}

bool read_bytes(napi_env env, napi_value value, const char *what, size_t least, uint8_t **bytes, size_t *length)
{
  bool is_array = false;
  napi_typedarray_type type;
  if (napi_is_typedarray(env, value, &is_array) != napi_ok || !is_array ||
      napi_get_typedarray_info(env, value, &type, length, (void **)bytes, NULL, NULL) != napi_ok ||
      type != napi_uint8_array) {
    throw_misuse(env, "%s must be a Uint8Array", what);
    return false;
  }
  if (!*bytes)
    *length = 0; /* detached */
  if (*length >= least)
    return true;
  throw_misuse(env, "%s must have at least %zu bytes, but has %zu", what, least, *length);
  return false;
}

static void on_finalize(napi_env env, void *data, void *hint)
{
  ((void (*)(void *))hint)(data);
}

napi_value new_handle(napi_env env, const napi_type_tag *tag, void *data, void (*release)(void *data))
{
  napi_value handle;
  if (napi_create_object(env, &handle) == napi_ok && napi_type_tag_object(env, handle, tag) == napi_ok &&
      napi_wrap(env, handle, data, on_finalize, (void *)release, NULL) == napi_ok)
    return handle;
  release(data);
  return throw_errno(env, ENOMEM, "cannot create a handle");
}

bool read_handle(napi_env env, napi_value value, const napi_type_tag *tag, const char *what, void **data)
{
  napi_valuetype type;
  bool same = false;
  if (napi_typeof(env, value, &type) == napi_ok && type == napi_object &&
      napi_check_object_type_tag(env, value, tag, &same) == napi_ok && same &&
      napi_unwrap(env, value, data) == napi_ok)
    return true;
  throw_misuse(env, "the handle of %s is invalid", what);
  return false;
}

napi_value make_number(napi_env env, double number)
{
  napi_value value = NULL;
  napi_create_double(env, number, &value);
  return value;
}

napi_value make_bool(napi_env env, bool flag)
{
  napi_value value = NULL;
  napi_get_boolean(env, flag, &value);
  return value;
}

napi_value make_undefined(napi_env env)
{
  napi_value value = NULL;
  napi_get_undefined(env, &value);
  return value;
}

void set_number(napi_env env, napi_value object, const char *key, double number)
{
  napi_set_named_property(env, object, key, make_number(env, number));
}

void set_bool(napi_env env, napi_value object, const char *key, bool flag)
{
  napi_set_named_property(env, object, key, make_bool(env, flag));
}

void set_string(napi_env env, napi_value object, const char *key, const char *text)
{
  napi_value value;
  if (napi_create_string_utf8(env, text ? text : "", NAPI_AUTO_LENGTH, &value) == napi_ok)
    napi_set_named_property(env, object, key, value);
}

static void add_functions(napi_env env, napi_value exports, const struct function *functions)
{
  for (; functions->name; functions++) {
    napi_value value;
    if (napi_create_function(env, functions->name, NAPI_AUTO_LENGTH, functions->call, NULL, &value) == napi_ok)
      napi_set_named_property(env, exports, functions->name, value);
  }
}

NAPI_MODULE_INIT()
{
  libbpf_set_print(on_print);
  add_functions(env, exports, object_functions);
  add_functions(env, exports, load_functions);
  add_functions(env, exports, map_functions);
  add_functions(env, exports, ring_functions);
  add_functions(env, exports, perf_functions);
  add_functions(env, exports, poll_functions);
  add_functions(env, exports, loop_functions);
  add_functions(env, exports, probe_functions);
  add_functions(env, exports, process_functions);
  add_functions(env, exports, host_functions);
  add_functions(env, exports, file_functions);
  add_functions(env, exports, uprobe_functions);
  add_functions(env, exports, channel_functions);
  add_functions(env, exports, nvml_functions);
  return exports;
}
