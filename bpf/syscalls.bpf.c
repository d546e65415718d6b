/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Back end "syscalls" (kernel 4.18 and newer): the tracepoints of the system calls that move bytes over sockets. There
 * is no socket in hand, so a connection is a process's descriptor from its connect or accept to its close; its ends are
 * told by the tracepoint of the socket's state, or found in /proc by user space. All framing is done there.
 *
 *   enter: remembers the arguments         exit: whose bytes, how many
 *                                            │ known           │ not yet known
 *                                            ▼                 ▼
 *                                          part ◀── recognised ── stages of the classification
 *                                            │ again, until the turn's share is used
 *                                            ▼
 *                                          end: the last bytes of what is not captured
 */
#include "include/syscalls-begin.h"
#include "include/syscalls-end.h"
#include "include/syscalls-enter.h"
#include "include/syscalls-stages.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
