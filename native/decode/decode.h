// What the files of svc-decode share. The protocol, in the byte order of the machine:
//
//     request   KIND LENGTH payload
//       1       names, each with a zero byte behind it
//       2       begins to unpack what xz compressed: u32, how many bytes it may become, then the first of it
//       3       more of it; nothing: that was all
//     answer    KIND LENGTH payload
//       1       for each name, as people write it; nothing: it stays as it is
//       2       bytes that were unpacked
//       3       all that was sent is used up
//       4       that was all
//       5       nothing more comes of it; payload: u32, why
//
// KIND and LENGTH are u32. Who asks reads all answers to a request before the next one.
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

// Serves requests until there are none. False: what came is no request.
bool serve(void);

// The text of a name, 1 to MAX_DEMANGLED bytes; 0: it stays as it is.
size_t demangle(const char *mangled, size_t length, char text[MAX_DEMANGLED]);

// Each returns false where what came is no request.
bool begin_unpacking(const uint8_t *bytes, size_t length);
bool go_on_unpacking(const uint8_t *bytes, size_t length);
// Before its memory is forgotten.
void stop_unpacking(void);

void answer(enum answer_kind kind, const void *payload, size_t length);

// Given by the program, or by what tries it.

// Fills all of `bytes`. False: the input has ended.
bool take(void *bytes, size_t length);
void put(const void *bytes, size_t length);
// Processor time from now on, after which the program is killed; 0: none is measured.
void allow_cpu(unsigned milliseconds);
// Gives back all that was allocated.
void forget_memory(void);

#endif
