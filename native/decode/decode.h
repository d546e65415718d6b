// Shared by the files of svc-decode. The protocol, in host byte order:
//
//     request   KIND LENGTH payload
//       1       names, each followed by a zero byte
//       2       starts unpacking xz: u32, the maximum size of the output, then the first input
//       3       more input; empty: the end
//     answer    KIND LENGTH payload
//       1       for each name, its demangled form; empty: unchanged
//       2       unpacked bytes
//       3       all input is consumed
//       4       the output is complete
//       5       unpacking failed; payload: u32, the reason
//
// KIND and LENGTH are u32. The client reads all answers to a request before it sends the next one.
#ifndef SVC_DECODE_H
#define SVC_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_PAYLOAD (64 * 1024)
#define MAX_MANGLED 4096
#define MAX_DEMANGLED 4096

enum request_kind { ASK_NAMES = 1, ASK_UNPACK = 2, ASK_MORE = 3 };
enum answer_kind { ANSWER_NAME = 1, ANSWER_BYTES = 2, ANSWER_GO_ON = 3, ANSWER_END = 4, ANSWER_FAULT = 5 };
enum fault { FAULT_BROKEN = 1, FAULT_TOO_LARGE = 2, FAULT_MEMORY = 3 };

// Serves requests until the input ends. False: the input is no request.
bool serve(void);

// Demangles a name to 1 to MAX_DEMANGLED bytes; 0: unchanged.
size_t demangle(const char *mangled, size_t length, char text[MAX_DEMANGLED]);

// Each returns false if the input is no request.
bool begin_unpacking(const uint8_t *bytes, size_t length);
bool go_on_unpacking(const uint8_t *bytes, size_t length);
// Call before its memory is freed.
void stop_unpacking(void);

void answer(enum answer_kind kind, const void *payload, size_t length);

// Provided by the program, or by its test.

// Fills all of `bytes`. False: the input has ended.
bool take(void *bytes, size_t length);
void put(const void *bytes, size_t length);
// Limits CPU time from now on: the program is killed after it; 0: no limit.
void allow_cpu(unsigned milliseconds);
// Frees all allocations.
void forget_memory(void);

#endif
