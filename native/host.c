/* Host data that only system calls provide: its clock, names, devices, network tables and performance counters. */
#define _GNU_SOURCE
#include "addon.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

static napi_value host_adjtimex(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  uint8_t *target;
  size_t length;
  struct timex clock = { .modes = 0 };
  if (!read_arguments(env, info, 1, argument) ||
      !read_bytes(env, argument[0], "the target", sizeof clock, &target, &length))
    return NULL;
  int state = adjtimex(&clock);
  if (state < 0)
    return throw_errno(env, errno, "cannot read the state of the clock");
  memcpy(target, &clock, sizeof clock);
  return make_number(env, state);
}

static napi_value host_uname(napi_env env, napi_callback_info info)
{
  struct utsname names;
  if (uname(&names) != 0)
    return throw_errno(env, errno, "cannot read the names of the system");
  const char *each[] = { names.sysname, names.nodename,  names.release,
                         names.version, names.machine, names.domainname };
  napi_value list, text;
  if (napi_create_array(env, &list) != napi_ok)
    return NULL;
  for (uint32_t i = 0; i < sizeof each / sizeof *each; i++) {
    if (napi_create_string_utf8(env, each[i], NAPI_AUTO_LENGTH, &text) != napi_ok ||
        napi_set_element(env, list, i, text) != napi_ok)
      return NULL;
  }
  return list;
}

/* A copy of an argument that ends at an unmapped page, so that a kernel that writes beyond the caller's buffer fails
 * with EFAULT instead. */
struct fenced {
  uint8_t *bytes;
  uint8_t *mapping;
  size_t size;
};

static bool fence(struct fenced *copy, const uint8_t *bytes, size_t length)
{
  size_t page = sysconf(_SC_PAGESIZE), room = (length + page - 1) / page * page;
  copy->size = room + page;
  copy->mapping = mmap(NULL, copy->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy->mapping == MAP_FAILED)
    return false;
  if (mprotect(copy->mapping + room, page, PROT_NONE) != 0) {
    munmap(copy->mapping, copy->size);
    return false;
  }
  copy->bytes = copy->mapping + room - length;
  if (length > 0) /* otherwise it may point nowhere */
    memcpy(copy->bytes, bytes, length);
  return true;
}

static napi_value host_flock(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  uint64_t fd;
  if (!read_arguments(env, info, 1, argument) || !read_uint(env, argument[0], "the descriptor", INT32_MAX, &fd))
    return NULL;
  if (flock((int)fd, LOCK_EX | LOCK_NB) == 0)
    return make_bool(env, true);
  return errno == EWOULDBLOCK ? make_bool(env, false) : throw_errno(env, errno, "cannot lock descriptor %d", (int)fd);
}

static napi_value host_ioctl(napi_env env, napi_callback_info info)
{
  napi_value argument[3];
  uint64_t fd, request;
  uint8_t *bytes;
  size_t length;
  if (!read_arguments(env, info, 3, argument) || !read_uint(env, argument[0], "the descriptor", INT32_MAX, &fd) ||
      !read_uint(env, argument[1], "the request", UINT32_MAX, &request) ||
      !read_bytes(env, argument[2], "the argument", 0, &bytes, &length))
    return NULL;
  struct fenced copy;
  if (!fence(&copy, bytes, length))
    return throw_errno(env, ENOMEM, "cannot copy the argument of an ioctl");
  int result = ioctl(fd, request, length ? copy.bytes : NULL), error = errno;
  if (result >= 0 && length > 0)
    memcpy(bytes, copy.bytes, length);
  munmap(copy.mapping, copy.size);
  if (result < 0)
    return throw_errno(env, error, "cannot perform ioctl 0x%lx", (unsigned long)request);
  return make_number(env, result);
}

static napi_value host_ethtool(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  char device[MAX_NAME];
  uint8_t *bytes;
  size_t length;
  uint32_t command;
  if (!read_arguments(env, info, 2, argument) || !read_name(env, argument[0], "the device", device) ||
      !read_bytes(env, argument[1], "the data", sizeof command, &bytes, &length))
    return NULL;
  struct ifreq request = { 0 };
  if (strlen(device) >= sizeof request.ifr_name)
    return throw_errno(env, ENODEV, "cannot query the device %s", device);
  strcpy(request.ifr_name, device);
  memcpy(&command, bytes, sizeof command);
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return throw_errno(env, errno, "cannot open a socket to query the device %s", device);
  struct fenced copy;
  if (!fence(&copy, bytes, length)) {
    close(fd);
    return throw_errno(env, ENOMEM, "cannot copy the request to the device %s", device);
  }
  request.ifr_data = (char *)copy.bytes;
  int result = ioctl(fd, SIOCETHTOOL, &request), error = errno;
  if (result >= 0)
    memcpy(bytes, copy.bytes, length);
  munmap(copy.mapping, copy.size);
  close(fd);
  if (result < 0)
    return throw_errno(env, error, "cannot query the device %s (ethtool command 0x%x)", device, command);
  return make_undefined(env);
}

/* The kernel's maximum size of a dump's part (netlink_dump in net/netlink/af_netlink.c). */
#define MOST_PART 32768

/* What follows a part of an answer: more, nothing (it was the last), or an error. */
enum progress { MORE, LAST, BROKEN };

static enum progress read_part(const uint8_t *bytes, size_t length, int *error)
{
  struct nlmsghdr header;
  for (size_t at = 0; length - at >= sizeof header; at += NLMSG_ALIGN(header.nlmsg_len)) {
    memcpy(&header, bytes + at, sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > length - at) {
      *error = EBADMSG;
      return BROKEN;
    }
    if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR) {
      int code = 0;
      if (header.nlmsg_len >= sizeof header + sizeof code)
        memcpy(&code, bytes + at + sizeof header, sizeof code);
      *error = -code;
      return code < 0 ? BROKEN : LAST;
    }
    if (!(header.nlmsg_flags & NLM_F_MULTI))
      return LAST;
    if (NLMSG_ALIGN(header.nlmsg_len) > length - at)
      break;
  }
  return MORE;
}

/* One datagram from the kernel; -1 with errno. Skips those of other processes. */
static ssize_t receive(int fd, uint8_t *target, size_t room)
{
  for (;;) {
    struct sockaddr_nl sender = { 0 };
    struct iovec vector = { target, room };
    struct msghdr message = { .msg_name = &sender,
                              .msg_namelen = sizeof sender,
                              .msg_iov = &vector,
                              .msg_iovlen = 1 };
    ssize_t length = recvmsg(fd, &message, 0);
    if (length < 0 && errno == EINTR)
      continue;
    if (length < 0)
      return length;
    if (sender.nl_pid != 0)
      continue;
    if (message.msg_flags & MSG_TRUNC) {
      errno = EMSGSIZE;
      return -1;
    }
    return length;
  }
}

/* Calls `take`, which may run any code, so the buffer is looked up again. */
static bool hand_over(napi_env env, napi_value take, size_t filled, napi_value buffer, uint8_t **bytes, size_t *room)
{
  napi_value nothing = make_undefined(env), amount = make_number(env, filled), result;
  return napi_call_function(env, nothing, take, 1, &amount, &result) == napi_ok &&
         read_bytes(env, buffer, "the buffer", MOST_PART, bytes, room);
}

static napi_value host_netlink(napi_env env, napi_callback_info info)
{
  napi_value argument[4];
  uint64_t protocol;
  uint8_t *request, *buffer;
  size_t length, room;
  napi_valuetype type;
  if (!read_arguments(env, info, 4, argument) || !read_uint(env, argument[0], "the protocol", 255, &protocol) ||
      !read_bytes(env, argument[1], "the request", sizeof(struct nlmsghdr), &request, &length) ||
      !read_bytes(env, argument[2], "the buffer", MOST_PART, &buffer, &room))
    return NULL;
  if (napi_typeof(env, argument[3], &type) != napi_ok || type != napi_function)
    return throw_misuse(env, "the callback must be a function");
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
  if (fd < 0)
    return throw_errno(env, errno, "cannot open a netlink socket of protocol %d", (int)protocol);
  struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
  struct timeval patience = { .tv_sec = 1 };
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (sendto(fd, request, length, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0) {
    int error = errno;
    close(fd);
    return throw_errno(env, error, "cannot send over netlink protocol %d", (int)protocol);
  }
  enum progress progress = MORE;
  bool taken = true;
  size_t filled = 0;
  int error = 0;
  while (progress == MORE && taken) {
    ssize_t got = receive(fd, buffer + filled, room - filled);
    if (got < 0) {
      error = errno;
      progress = BROKEN;
      break;
    }
    progress = read_part(buffer + filled, got, &error);
    filled += NLMSG_ALIGN((size_t)got);
    if (progress == LAST || (progress == MORE && (filled > room || room - filled < MOST_PART))) {
      taken = hand_over(env, argument[3], filled > room ? room : filled, argument[2], &buffer, &room);
      filled = 0;
    }
  }
  close(fd);
  if (!taken)
    return NULL; /* an exception is pending */
  if (progress == BROKEN)
    return throw_errno(env, error, "cannot read the answer over netlink protocol %d", (int)protocol);
  return make_undefined(env);
}

/* A number that may also be -1. */
static bool read_id(napi_env env, napi_value value, const char *what, int *id)
{
  double given;
  if (napi_get_value_double(env, value, &given) != napi_ok || !(given >= -1 && given <= INT32_MAX) ||
      given != (double)(int)given) {
    throw_misuse(env, "%s must be a whole number from -1 to %d", what, INT32_MAX);
    return false;
  }
  *id = given;
  return true;
}

static napi_value host_perf_event_open(napi_env env, napi_callback_info info)
{
  napi_value argument[5];
  uint8_t *bytes;
  size_t length;
  int pid, cpu, group;
  uint64_t flags;
  if (!read_arguments(env, info, 5, argument) ||
      !read_bytes(env, argument[0], "the attributes", PERF_ATTR_SIZE_VER0, &bytes, &length) ||
      !read_id(env, argument[1], "the process", &pid) || !read_id(env, argument[2], "the CPU", &cpu) ||
      !read_id(env, argument[3], "the group's descriptor", &group) ||
      !read_uint(env, argument[4], "the flags", UINT32_MAX, &flags))
    return NULL;
  struct perf_event_attr attributes = { 0 };
  size_t size = length < sizeof attributes ? length : sizeof attributes;
  memcpy(&attributes, bytes, size);
  attributes.size = size / 8 * 8;
  int fd = syscall(SYS_perf_event_open, &attributes, pid, cpu, group, flags | PERF_FLAG_FD_CLOEXEC);
  if (fd < 0)
    return throw_errno(env, errno, "cannot open performance event %u:%llu on CPU %d", attributes.type,
                       (unsigned long long)attributes.config, cpu);
  return make_number(env, fd);
}

const struct function host_functions[] = {
  { "adjtimex", host_adjtimex },
  { "uname", host_uname },
  { "flock", host_flock },
  { "ioctl", host_ioctl },
  { "ethtool", host_ethtool },
  { "netlink", host_netlink },
  { "perfEventOpen", host_perf_event_open },
  { NULL, NULL },
};
