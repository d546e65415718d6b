// Parses requests and builds answers.
#include "decode.h"

#include <string.h>

// Per name, and for everything unpacked per request. An ordinary name takes a few microseconds.
#define NAME_CPU_MS 50
#define UNPACK_CPU_MS 2000

struct head {
	uint32_t kind;
	uint32_t length;
};

static uint8_t waiting[MAX_PAYLOAD];
static size_t waits;

static void flush(void)
{
	if (waits > 0)
		put(waiting, waits);
	waits = 0;
}

void answer(enum answer_kind kind, const void *payload, size_t length)
{
	struct head head = { kind, (uint32_t)length };
	if (waits + sizeof(head) + length > sizeof(waiting))
		flush();
	memcpy(waiting + waits, &head, sizeof(head));
	waits += sizeof(head);
	// Output larger than the buffer is written directly.
	if (waits + length > sizeof(waiting)) {
		flush();
		put(payload, length);
	} else if (length > 0) {
		memcpy(waiting + waits, payload, length);
		waits += length;
	}
}

static bool answer_names(const char *names, size_t length)
{
	static char text[MAX_DEMANGLED];
	if (length == 0 || names[length - 1] != '\0')
		return false;
	for (size_t at = 0; at < length;) {
		size_t its = strlen(names + at);
		allow_cpu(NAME_CPU_MS);
		answer(ANSWER_NAME, text, demangle(names + at, its, text));
		forget_memory();
		at += its + 1;
	}
	return true;
}

bool serve(void)
{
	static uint8_t payload[MAX_PAYLOAD];
	struct head head;
	bool served = true;
	while (served && take(&head, sizeof(head))) {
		if (head.length > sizeof(payload))
			return false;
		if (!take(payload, head.length))
			return true;
		if (head.kind != ASK_MORE) {
			stop_unpacking();
			forget_memory();
		}
		if (head.kind == ASK_NAMES) {
			served = answer_names((const char *)payload, head.length);
		} else if (head.kind == ASK_UNPACK) {
			allow_cpu(UNPACK_CPU_MS);
			served = begin_unpacking(payload, head.length);
		} else {
			served = head.kind == ASK_MORE && go_on_unpacking(payload, head.length);
		}
		if (head.kind == ASK_NAMES)
			allow_cpu(0);
		flush();
	}
	return served;
}
