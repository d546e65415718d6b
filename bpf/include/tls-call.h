/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Calls of TLS libraries, and how they determine the socket of a session: the same for all back ends. "session" is the
 * library's object, SSL of OpenSSL or gnutls_session_t.
 *
 * Usually the library calls the socket, on the thread that called the library. A program may also carry the ciphertext
 * itself, as Node.js and Python's asyncio do: then the session belongs to the socket that the thread received from right
 * before, or sends to right after, once two such sights agree. Sessions that cannot be assigned are skipped: plaintext is
 * never attributed to a socket that may be another's.
 *
 * Include after the back end's `struct tls_sight`, which describes the socket of a socket call. It has `length` and `type`
 * of the TLS record that was sent or received, and SEEN(sight) is the connection's number, 0 for none. */
#pragma once

#define TLS_SLOTS 3         /* programs on one CPU that may interrupt each other */
#define TLS_FOREIGN_MAX 8   /* unrecognised calls before a session is given up */
#define TLS_FOREIGN_JOINED 64
#define RECORD_MAX 16384    /* plaintext of a TLS record (RFC 8446, 5.1) */
#define TLS_DARK_MAX 8      /* calls with plaintext before a session is read without a socket */
#define TLS_DEEPER_MAX 16   /* calls inside another one, after which the outer one counts as left without a return */
#define AMBIGUOUS 1

enum { RECORD_FIRST = 20, RECORD_HANDSHAKE = 22, RECORD_DATA = 23 };

/* Purpose of a probed function. */
enum svc_tls_function {
	svc_tls_function_read,      /* (session, buffer, size), returns the number of bytes */
	svc_tls_function_write,
	svc_tls_function_read_ex,   /* (session, buffer, size, size_t *number of bytes), returns 1 */
	svc_tls_function_write_ex,
	svc_tls_function_handshake, /* (session) */
	svc_tls_function_free,      /* (session): it is freed */
	svc_tls_function_count,
};
SVC_EXPORT(enum, svc_tls_function);

/* Registers at a function's start and return, by the calling conventions of System V and Arm; as in ptrace(2). */
#if defined(__TARGET_ARCH_x86)
struct call_registers {
	u64 others[10], ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp;
};
#define CALL_ARG0(regs) ((regs)->di)
#define CALL_ARG1(regs) ((regs)->si)
#define CALL_ARG3(regs) ((regs)->cx)
#define CALL_RESULT(regs) ((regs)->ax)
#define RETURN_POPS 8 /* difference of the stack pointer between start and return */
#elif defined(__TARGET_ARCH_arm64)
struct call_registers {
	u64 regs[31], sp;
};
#define CALL_ARG0(r) ((r)->regs[0])
#define CALL_ARG1(r) ((r)->regs[1])
#define CALL_ARG3(r) ((r)->regs[3])
#define CALL_RESULT(r) ((r)->regs[0])
#define RETURN_POPS 0
#endif

struct tls_key {
	u64 session;
	u32 tgid;
	u32 pad;
};

/* State of a thread that uses TLS. */
struct tls_thread {
	u64 session;  /* of the current library call; 0: none */
	u64 frame;    /* stack pointer at the call */
	u64 buffer;
	u64 count_at; /* where the call stores the number of bytes moved */
	u64 time;     /* start of the call */
	u8 function;
	u8 nested;    /* the library called a socket during the call */
	u8 deeper;
	u8 pad;
	u32 wrote_bytes; /* of the first write of `wrote`, 0: no plaintext */
	u64 wrote;       /* session with ciphertext that the thread must send; AMBIGUOUS: more than one */
	struct tls_sight received; /* the thread's last receipt, until assigned to a session */
};

/* Known facts about a session's socket. */
struct tls_binding {
	struct tls_sight socket; /* the socket, or the candidate */
	u8 votes;      /* sights that agree */
	u8 known;      /* the socket is certain */
	u8 confirmed;  /* sights with exactly the plaintext's length; 2 (enough) if the library calls the socket */
	u8 handshake;  /* seen from its start */
	u8 begun;
	u8 dark;       /* calls with plaintext, without a socket */
	u8 off;        /* nothing more is read */
	u8 pad;
};

/* TLS record that starts with these five bytes: its type, and its length from bit 8 on. 0: none. */
static __always_inline u32 record_of(const u8 *head)
{
	u32 type = head[0], length = BE16(head + 3);
	if (type < RECORD_FIRST || type > RECORD_DATA || head[1] != 3 || head[2] > 4 || !length || length > RECORD_MAX + 2048)
		return 0;
	return type | length << 8;
}

/* Starts a call. False: it belongs to another call, TLS inside TLS to a proxy: the outer call's data is what is
 * read. */
static __always_inline bool call_begins(struct tls_thread *t, const struct call_registers *regs, u32 function)
{
	u64 frame = regs->sp;
	if (t->session && frame < t->frame && ++t->deeper < TLS_DEEPER_MAX)
		return false;
	t->session = CALL_ARG0(regs);
	t->frame = frame;
	t->buffer = CALL_ARG1(regs);
	t->count_at = CALL_ARG3(regs);
	t->time = bpf_ktime_get_ns();
	t->function = function;
	t->nested = 0;
	t->deeper = 0;
	return true;
}

/* Whether this is the return of the started call. */
static __always_inline bool call_returns(const struct tls_thread *t, const struct call_registers *regs)
{
	return t->session && regs->sp == t->frame + RETURN_POPS;
}

static __always_inline u32 direction_of(const struct tls_thread *t, u32 read, u32 write)
{
	return t->function == svc_tls_function_write || t->function == svc_tls_function_write_ex ? write : read;
}

/* Plaintext bytes that the call moved. */
static __always_inline u32 call_moved(const struct tls_thread *t, const struct call_registers *regs)
{
	u32 function = t->function;
	s64 moved = (s32)CALL_RESULT(regs);
	if (function == svc_tls_function_handshake)
		return 0;
	if (function == svc_tls_function_read_ex || function == svc_tls_function_write_ex) {
		u64 n = 0;
		if (moved != 1 || bpf_probe_read_user(&n, sizeof(n), (void *)t->count_at) || n > 0x7fffffff)
			n = 0;
		moved = n;
	}
	return moved > 0 ? moved : 0;
}

/* The session moved ciphertext that its program carries, possibly over this socket. `bytes`: plaintext of that
 * record, 0 if unknown. True: seen often enough to bind the socket. */
static __always_inline bool observe(struct tls_binding *s, const struct tls_sight *sight, u32 bytes)
{
	/* Overhead of protection: an authentication tag, with the content type (TLS 1.3) or an explicit nonce (AES
	 * in 1.2). */
	u32 added = sight->length - bytes;
	bool exact = bytes && sight->type == RECORD_DATA && (added == 16 || added == 17 || added == 24);
	if (s->known) {
		if (!exact)
			return false;
		if (SEEN(&s->socket) == SEEN(sight))
			s->confirmed++;
		else /* it belonged to another session */
			s->off = true;
		return false;
	}
	if (SEEN(&s->socket) != SEEN(sight)) {
		s->socket = *sight;
		s->votes = 0;
	}
	if (sight->type == RECORD_HANDSHAKE && !s->dark)
		s->handshake = 1;
	s->votes += exact ? 2 : 1;
	return s->votes >= 2;
}

/* The call returned without a socket call in it: the thread's last receipt was for the session, and its next send
 * may be from it. Returns as observe() does. */
static __always_inline bool call_carried(struct tls_thread *t, struct tls_binding *s, u64 session, bool writes, u32 bytes)
{
	u32 record = bytes < RECORD_MAX ? bytes : RECORD_MAX;
	bool found = false;
	/* a write may complete the handshake, with data received for it */
	if ((!writes || t->received.type != RECORD_DATA) && SEEN(&t->received)) {
		found = observe(s, &t->received, writes ? 0 : record);
		SEEN(&t->received) = 0;
	}
	if (t->wrote != session) {
		t->wrote = t->wrote_bytes ? AMBIGUOUS : session;
		t->wrote_bytes = 0;
	}
	if (writes && !t->wrote_bytes)
		t->wrote_bytes = record;
	return found;
}
