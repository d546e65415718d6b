import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseFormat, tracepointFields } from './tracepoints.ts'

test('the fields of a tracepoint are read from its format', () => {
  const text = `name: sys_enter_read
ID: 842
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;

	field:int __syscall_nr;	offset:8;	size:4;	signed:1;
	field:char * buf;	offset:24;	size:8;	signed:0;
	field:__u8 saddr_v6[16];	offset:40;	size:16;	signed:0;

print fmt: "fd: 0x%08lx", ((unsigned long)(REC->fd))
`
  assert.deepEqual(parseFormat(text), [
    { name: 'common_type', offset: 0, size: 2 },
    { name: '__syscall_nr', offset: 8, size: 4 },
    { name: 'buf', offset: 24, size: 8 },
    { name: 'saddr_v6', offset: 40, size: 16 },
  ])
  assert.deepEqual(parseFormat(''), [])
})

test('a tracepoint that no kernel has is not there', () => {
  assert.equal(tracepointFields('syscalls/sys_enter_nothing'), undefined)
})
