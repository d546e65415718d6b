import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ipText, macText } from './ip-text.ts'

function check(hex: string, want: string): void {
  assert.equal(ipText(Buffer.from(hex, 'hex')), want)
}

test('IPv4 addresses are four numbers', () => {
  check('c0000202', '192.0.2.2')
  check('00000000', '0.0.0.0')
  check('00000000000000000000ffffc0000202', '192.0.2.2')
})

test('IPv6 addresses have their shortest form', () => {
  check('00000000000000000000000000000000', '::')
  check('00000000000000000000000000000001', '::1')
  check('fe800000000000000000000000000000', 'fe80::')
  check('20010db8000000010000000000000001', '2001:db8:0:1::1')
  check('20010db8000000000001000000000001', '2001:db8::1:0:0:1')
  check('20010db8000100020003000400050006', '2001:db8:1:2:3:4:5:6')
  check('20010db8000000020003000400050006', '2001:db8:0:2:3:4:5:6')
})

test('what is no address has no text', () => {
  check('', '')
  check('c00002', '')
})

test('hardware addresses are pairs of digits', () => {
  assert.equal(macText(Uint8Array.of(2, 0xfc, 0, 0, 0, 0x1a)), '02:fc:00:00:00:1a')
  assert.equal(macText(new Uint8Array(0)), '')
})
