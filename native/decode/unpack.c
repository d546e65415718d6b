// Unpacks xz with liblzma, in pieces: neither input nor output is ever in memory as a whole.
#include "decode.h"

#include <lzma.h>
#include <string.h>

// xz with default settings needs 9 MiB.
#define MAX_MEMORY (32 * 1024 * 1024)

static lzma_stream stream;
static bool unpacking;
static uint64_t room;

void stop_unpacking(void)
{
	if (unpacking)
		lzma_end(&stream);
	unpacking = false;
}

static bool fault(enum fault why)
{
	uint32_t reason = why;
	stop_unpacking();
	answer(ANSWER_FAULT, &reason, sizeof(reason));
	return true;
}

bool go_on_unpacking(const uint8_t *bytes, size_t length)
{
	static uint8_t out[MAX_PAYLOAD];
	lzma_ret status = LZMA_OK;
	if (!unpacking)
		return false;
	stream.next_in = bytes;
	stream.avail_in = length;
	do {
		stream.next_out = out;
		stream.avail_out = sizeof(out);
		status = lzma_code(&stream, length > 0 ? LZMA_RUN : LZMA_FINISH);
		size_t unpacked = sizeof(out) - stream.avail_out;
		if (unpacked > room)
			return fault(FAULT_TOO_LARGE);
		room -= unpacked;
		if (unpacked > 0)
			answer(ANSWER_BYTES, out, unpacked);
	} while (status == LZMA_OK && (stream.avail_in > 0 || stream.avail_out == 0));
	if (status == LZMA_STREAM_END) {
		stop_unpacking();
		answer(ANSWER_END, NULL, 0);
	} else if (status == LZMA_MEMLIMIT_ERROR || status == LZMA_MEM_ERROR) {
		return fault(FAULT_MEMORY);
	} else if (length == 0 || (status != LZMA_OK && status != LZMA_BUF_ERROR)) {
		return fault(FAULT_BROKEN);
	} else {
		answer(ANSWER_GO_ON, NULL, 0);
	}
	return true;
}

bool begin_unpacking(const uint8_t *bytes, size_t length)
{
	uint32_t most;
	if (length <= sizeof(most))
		return false;
	memcpy(&most, bytes, sizeof(most));
	room = most;
	stream = (lzma_stream)LZMA_STREAM_INIT;
	if (lzma_stream_decoder(&stream, MAX_MEMORY, 0) != LZMA_OK)
		return fault(FAULT_MEMORY);
	unpacking = true;
	return go_on_unpacking(bytes + sizeof(most), length - sizeof(most));
}
