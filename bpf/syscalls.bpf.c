/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Back end "syscalls" (kernel 4.18 and later): the tracepoints of system calls that move bytes over sockets. Programs have
 * no access to the socket, so a connection is a process's descriptor from its connect or accept to its close; its ends
 * come from the tracepoint of the socket's state, or from /proc in user space. All framing is done there.
 *
 *   enter: stores the arguments            exit: whose bytes, how many
 *                                            │ known           │ not yet known
 *                                            ▼                 ▼
 *                                          part ◀── recognised ── stages of the classification
 *                                            │ repeated until the turn's share is used
 *                                            ▼
 *                                          end: last bytes of the part that is not captured
 */
#include "include/syscalls-begin.h"
#include "include/syscalls-end.h"
#include "include/syscalls-enter.h"
#include "include/syscalls-stages.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
