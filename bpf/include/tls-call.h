/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Calls of TLS libraries, and what they tell of the socket that a session belongs to: the same for all back ends.
 * "session" is the library's object, SSL of OpenSSL or gnutls_session_t.
 *
 * As a rule the library calls the socket, on the thread that called the library. A program may also carry the
 * ciphertext itself, as Node.js and Python's asyncio do: then the session belongs to the socket that the thread
 * received from right before, or sends to right after, when two such sights agree. What cannot be told so is passed
 * over: plaintext is never given to a socket that may be another's.
 *
 * To be included behind the back end's `struct tls_sight`: what a socket call showed of its socket. It has `length` and
 * `type` of the TLS record that came or went, and SEEN(sight) is the connection's number, 0 for none. */
#pragma once

#define TLS_SLOTS 3         /* programs on one CPU that may have been interrupted by another */
#define TLS_FOREIGN_MAX 8   /* calls that were not recognised, after which a session is given up */
#define TLS_FOREIGN_JOINED 64
#define RECORD_MAX 16384    /* plaintext of a TLS record (RFC 8446, 5.1) */
#define TLS_DARK_MAX 8      /* calls with plaintext after which a session does without a socket */
#define TLS_DEEPER_MAX 16   /* calls inside another one, after which that one has been left without a return */
#define AMBIGUOUS 1

enum { RECORD_FIRST = 20, RECORD_HANDSHAKE = 22, RECORD_DATA = 23 };

/* What a probed function does. */
enum svc_tls_function {
	svc_tls_function_read,      /* (session, buffer, size), returns how many */
	svc_tls_function_write,
	svc_tls_function_read_ex,   /* (session, buffer, size, size_t *how many), returns 1 */
	svc_tls_function_write_ex,
	svc_tls_function_handshake, /* (session) */
	svc_tls_function_free,      /* (session): it is gone */
	svc_tls_function_count,
};
SVC_EXPORT(enum, svc_tls_function);

/* Registers at a function's start and return, by the calling conventions of System V and of Arm; as ptrace(2) has them. */
#if defined(__TARGET_ARCH_x86)
struct call_registers {
	u64 others[10], ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp;
};
#define CALL_ARG0(regs) ((regs)->di)
#define CALL_ARG1(regs) ((regs)->si)
#define CALL_ARG3(regs) ((regs)->cx)
#define CALL_RESULT(regs) ((regs)->ax)
#define RETURN_POPS 8 /* bytes between the stack pointer at the start and at the return */
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

/* Of a thread that uses TLS. */
struct tls_thread {
	u64 session;  /* inside a call with it; 0: outside */
	u64 frame;    /* stack pointer at the call */
	u64 buffer;
	u64 count_at; /* where the call puts how many bytes it moved */
	u64 time;     /* the call's beginning */
	u8 function;
	u8 nested;    /* the library called a socket meanwhile */
	u8 deeper;
	u8 pad;
	u32 wrote_bytes; /* of the first write of `wrote`, 0: no plaintext */
	u64 wrote;       /* session that left ciphertext to be sent by the thread; AMBIGUOUS: more than one did */
	struct tls_sight received; /* the thread's last receipt, until a session is given it */
};

/* What is known of a session's socket. */
struct tls_binding {
	struct tls_sight socket; /* it, or what seems to be it */
	u8 votes;      /* sights that agree */
	u8 known;      /* the socket is */
	u8 confirmed;  /* sights whose record has the very length of the plaintext; all it takes where the library calls */
	u8 handshake;  /* seen from its beginning on */
	u8 begun;
	u8 dark;       /* calls with plaintext, without a socket */
	u8 off;        /* nothing of it is read any more */
	u8 pad;
};

/* The TLS record that begins with these five bytes: its type, and its length from bit 8 on. 0: none. */
static __always_inline u32 record_of(const u8 *head)
{
	u32 type = head[0], length = BE16(head + 3);
	if (type < RECORD_FIRST || type > RECORD_DATA || head[1] != 3 || head[2] > 4 || !length || length > RECORD_MAX + 2048)
		return 0;
	return type | length << 8;
}

/* A call begins. False: it is one of another call, TLS inside TLS, to a proxy: what is inside is what the outer call was
 * given. */
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

/* Whether this is the return of the call that began. */
static __always_inline bool call_returns(const struct tls_thread *t, const struct call_registers *regs)
{
	return t->session && regs->sp == t->frame + RETURN_POPS;
}

static __always_inline u32 direction_of(const struct tls_thread *t, u32 read, u32 write)
{
	return t->function == svc_tls_function_write || t->function == svc_tls_function_write_ex ? write : read;
}

/* Bytes of plaintext that the call moved. */
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

/* The session moved ciphertext that its program carries, and this socket may have been the one. `bytes`: plaintext of
 * that record, 0 where it is not known. True: it has been seen often enough to be the session's. */
static __always_inline bool observe(struct tls_binding *s, const struct tls_sight *sight, u32 bytes)
{
	/* What protection adds: an authentication tag, with the content's type (TLS 1.3) or an explicit nonce (AES in 1.2) */
	u32 added = sight->length - bytes;
	bool exact = bytes && sight->type == RECORD_DATA && (added == 16 || added == 17 || added == 24);
	if (s->known) {
		if (!exact)
			return false;
		if (SEEN(&s->socket) == SEEN(sight))
			s->confirmed++;
		else /* it was another's */
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

/* The call has returned, and the library called no socket in it: what the thread received right before was for the
 * session, and what it sends next may be of it. True as observe() says. */
static __always_inline bool call_carried(struct tls_thread *t, struct tls_binding *s, u64 session, bool writes, u32 bytes)
{
	u32 record = bytes < RECORD_MAX ? bytes : RECORD_MAX;
	bool found = false;
	/* a write may be what ends the handshake, by what was received for it */
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
