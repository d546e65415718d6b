import assert from 'node:assert/strict'
import { closeSync, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs'
import { arch, endianness, hostname, release, tmpdir, type } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { withoutPerfEvents } from '../../test/helpers/host-needs.ts'
import { nativeOrThrow } from '../../test/helpers/native.ts'
import { NetworkNamespace, withoutNamespaces } from '../../test/helpers/network-namespace.ts'

const native = nativeOrThrow()

function thrown(body: () => unknown): { code?: string; message: string } {
  try {
    body()
  } catch (error) {
    return error as Error
  }
  throw new Error('nothing was thrown')
}

test('the clock tells its state and its tick', () => {
  const timex = Buffer.alloc(208)
  const state = native.adjtimex(timex)
  assert.ok(state >= 0 && state <= 5, String(state))
  // `tick` after modes, offset, freq, maxerror, esterror, status, constant, precision, tolerance and time.
  const tick = Number(timex.readBigInt64LE(88))
  assert.ok(tick > 9000 && tick < 11_000, String(tick))
  assert.match(thrown(() => native.adjtimex(Buffer.alloc(207))).message, /at least 208 bytes, but has 207/)
})

test('the names are those of the system', () => {
  const names = native.uname()
  const domain = readFileSync('/proc/sys/kernel/domainname', 'utf8').trim()
  const machine = arch() === 'arm64' ? 'aarch64' : 'x86_64'
  assert.equal(names.length, 6)
  assert.deepEqual(
    [names[0], names[1], names[2], names[4], names[5]],
    [type(), hostname(), release(), machine, domain],
  )
})

test('a lock is taken once, until its file is closed', () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-lock-'))
  const [first, second] = [1, 2].map(() => openSync(join(directory, 'lock'), 'a'))
  try {
    assert.deepEqual([native.flock(first!), native.flock(second!), native.flock(first!)], [true, false, true])
    closeSync(first!)
    assert.equal(native.flock(second!), true)
    assert.equal(thrown(() => native.flock(99_999)).code, 'EBADF')
  } finally {
    closeSync(second!)
    rmSync(directory, { recursive: true })
  }
})

test('an ioctl writes into its argument and nowhere else', () => {
  const blockSize = 2 // FIGETBSZ of linux/fs.h, which writes 4 bytes
  const fd = openSync(process.execPath, 'r')
  try {
    const argument = Buffer.alloc(4)
    assert.equal(native.ioctl(fd, blockSize, argument), 0)
    assert.ok(argument.readUInt32LE() >= 512)
    for (const bytes of [0, 3]) {
      const { code, message } = thrown(() => native.ioctl(fd, blockSize, Buffer.alloc(bytes)))
      assert.equal(code, 'EFAULT')
      assert.match(message, /^cannot perform ioctl 0x2: /)
    }
    assert.equal(thrown(() => native.ioctl(fd, 0x1234, argument)).code, 'ENOTTY')
    assert.throws(() => native.ioctl(-1, 2, argument), TypeError)
    assert.throws(() => native.ioctl(fd, 2, [] as never), TypeError)
  } finally {
    closeSync(fd)
  }
})

test('a device that there is none of, or that has no ethtool, is an error that names it', () => {
  const driver = Buffer.alloc(196)
  driver.writeUInt32LE(3)
  assert.deepEqual(
    ['lo', 'no-such-device', 'a-name-longer-than-any-device'].map(
      device => thrown(() => native.ethtool(device, driver)).code,
    ),
    ['ENOTSUP', 'ENODEV', 'ENODEV'],
  )
  assert.match(
    thrown(() => native.ethtool('no-such-device', driver)).message,
    /^cannot query the device no-such-device: .*ethtool command 0x3/,
  )
  assert.throws(() => native.ethtool('lo', new Uint8Array(3)), TypeError)
})

test('a driver tells its name, and cannot write more than there is room for', {
  skip: withoutNamespaces,
}, t => {
  const namespace = new NetworkNamespace(t, ['link add va type veth peer name vb'])
  const seen = namespace.run(`import { loadNative } from ${JSON.stringify(`${import.meta.dirname}/native.ts`)}
    const ask = bytes => {
      const data = Buffer.alloc(bytes)
      data.writeUInt32LE(3)
      try {
        loadNative().ethtool('va', data)
        return data.toString('latin1', 4, data.indexOf(0, 4))
      } catch (error) {
        return error.code
      }
    }
    console.log(JSON.stringify([ask(196), ask(195)]))`)
  assert.deepEqual(seen, ['veth', 'EFAULT'])
})

/** A request for all links. */
function linkRequest(flags: number): Buffer {
  const request = Buffer.alloc(32)
  request.writeUInt32LE(32, 0)
  request.writeUInt16LE(18, 4)
  request.writeUInt16LE(flags, 6)
  return request
}

test('netlink hands over whole messages until the answer ends', () => {
  assert.equal(endianness(), 'LE')
  const buffer = Buffer.alloc(32 * 1024)
  const types = new Set<number>()
  native.netlink(0, linkRequest(0x301), buffer, length => {
    for (let at = 0; at < length; at += buffer.readUInt32LE(at)) types.add(buffer.readUInt16LE(at + 4))
  })
  assert.deepEqual([...types].sort(), [16, 3]) // RTM_NEWLINK, NLMSG_DONE
})

test('what the kernel refuses over netlink is its error', () => {
  const buffer = Buffer.alloc(32 * 1024)
  const never = (): void => assert.fail('there is no answer')
  // A link by index 0 and no name.
  const refused = thrown(() => native.netlink(0, linkRequest(1), buffer, never))
  assert.deepEqual(
    [refused.code, refused.message.split(':')[0]],
    ['EINVAL', 'cannot read the answer over netlink protocol 0'],
  )
  assert.equal(thrown(() => native.netlink(200, linkRequest(1), buffer, never)).code, 'EPROTONOSUPPORT')
})

test('netlink refuses arguments that do not fit, and passes on what its taker throws', () => {
  const buffer = Buffer.alloc(32 * 1024)
  const ignore = (): void => undefined
  assert.throws(() => native.netlink(0, new Uint8Array(15), buffer, ignore), TypeError)
  assert.throws(() => native.netlink(0, linkRequest(0x301), new Uint8Array(32 * 1024 - 1), ignore), TypeError)
  assert.throws(() => native.netlink(0, linkRequest(0x301), buffer, 'x' as never), TypeError)
  const fail = (): void => {
    throw new RangeError('mine')
  }
  assert.throws(() => native.netlink(0, linkRequest(0x301), buffer, fail), /^RangeError: mine$/)
  // A taker that takes the memory away ends it.
  const detached = new Uint8Array(32 * 1024)
  const detach = (): void => void structuredClone(detached.buffer, { transfer: [detached.buffer] })
  assert.throws(
    () => native.netlink(0, linkRequest(0x301), detached, detach),
    /at least 32768 bytes, but has 0/,
  )
})

test('a performance event counts', { skip: withoutPerfEvents }, () => {
  const attributes = Buffer.alloc(64)
  attributes.writeUInt32LE(1, 0) // PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK
  const fd = native.perfEventOpen(attributes, 0, -1, -1, 0)
  try {
    const value = Buffer.alloc(8)
    assert.equal(readSync(fd, value, 0, 8, null), 8)
    assert.ok(value.readBigUInt64LE() > 0n)
  } finally {
    closeSync(fd)
  }
  attributes.writeUInt32LE(0xffff, 0)
  const { code, message } = thrown(() => native.perfEventOpen(attributes, 0, -1, -1, 0))
  assert.equal(code, 'ENOENT')
  assert.match(message, /^cannot open performance event 65535:0 on CPU -1: /)
  assert.throws(() => native.perfEventOpen(new Uint8Array(63), 0, -1, -1, 0), TypeError)
  assert.throws(() => native.perfEventOpen(attributes, -2, -1, -1, 0), TypeError)
})
