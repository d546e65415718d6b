import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Ioctl, readBtrfsDevices, requests } from './_btrfs-devices.ts'

const filesystem = '051c0747-d18f-4613-bffd-649394bc7b2b'
const device = (number: number) => `cc4c0501-0db5-4fcc-9d1e-00000000000${number}`
const bytesOf = (uuid: string) => Buffer.from(uuid.replaceAll('-', ''), 'hex')

function failure(code: string): Error {
  return Object.assign(new Error(`cannot call ioctl: ${code}`), { code })
}

/** Answers as the kernel does for a file system whose devices have these numbers. */
function kernel(numbers: readonly number[], highest: number, asked: number[] = []): Ioctl {
  return (request, argument) => {
    const bytes = Buffer.from(argument.buffer, argument.byteOffset, argument.length)
    const number = bytes.readUInt32LE(0)
    // The size of what goes in and out is part of the request (_IOC).
    assert.equal(bytes.length, (request >>> 16) & 0x3fff)
    if (request === requests.fsInfo) {
      bytes.writeBigUInt64LE(BigInt(highest), 0)
      bytes.writeBigUInt64LE(BigInt(numbers.length), 8)
      bytesOf(filesystem).copy(bytes, 16)
      return
    }
    asked.push(number)
    if (!numbers.includes(number)) throw failure('ENODEV')
    if (request === requests.devInfo) {
      bytesOf(device(number)).copy(bytes, 8)
      bytes.writeBigUInt64LE(2n ** 40n + 512n, 24)
      bytes.writeBigUInt64LE(2n ** 42n, 32)
      bytes.write(`/dev/mapper/disk${number}\0rest`, 3072)
    } else {
      assert.equal(bytes.readUInt32LE(8), 5, 'all five numbers are asked for')
      for (let i = 0; i < 5; i++) bytes.writeBigUInt64LE(BigInt(number * 10 + i), 24 + 8 * i)
    }
  }
}

test('devices are found whatever numbers they have, and no further than the last one', () => {
  const asked: number[] = []
  const { uuid, devices } = readBtrfsDevices(kernel([1, 4], 9, asked))
  assert.equal(uuid, filesystem)
  assert.deepEqual(devices, [
    {
      name: 'disk1',
      uuid: device(1),
      sizeBytes: 2 ** 42,
      unusedBytes: 2 ** 42 - 2 ** 40 - 512,
      errors: [10, 11, 12, 13, 14],
    },
    {
      name: 'disk4',
      uuid: device(4),
      sizeBytes: 2 ** 42,
      unusedBytes: 2 ** 42 - 2 ** 40 - 512,
      errors: [40, 41, 42, 43, 44],
    },
  ])
  assert.deepEqual(asked, [0, 1, 1, 2, 3, 4, 4])
})

test('a number that no file system has ends the search, a refusal is an error', () => {
  const asked: number[] = []
  assert.deepEqual(readBtrfsDevices(kernel([2 ** 31], 2 ** 40, asked)).devices, [])
  assert.equal(asked.length, 4097)
  assert.throws(
    () =>
      readBtrfsDevices(() => {
        throw failure('ENOTTY')
      }),
    /ENOTTY/,
  )
})
