import assert from 'node:assert/strict'
import { closeSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { elfImage, imageBase, openImage } from '../../../../test/helpers/elf-image.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { ElfFile } from '../../../foundation/lib/elf/elf-file.ts'
import { ElfError } from '../../../foundation/lib/elf/elf-format.ts'
import { GoTable } from './go-table.ts'

const scratch = mkdtempSync(join(tmpdir(), 'svc-go-table-'))
after(() => rmSync(scratch, { recursive: true }))
const path = join(scratch, 'program')

interface Function {
  readonly start: number
  readonly name: string
}

const codeBytes = 0x10000
/** Functions one after another, in the order of their places, and where the last one ends. */
const functions = fc
  .uniqueArray(fc.integer({ min: 0, max: codeBytes - 2 }), { minLength: 1, maxLength: 60 })
  .map(starts => starts.sort((a, b) => a - b))
  .chain(starts =>
    fc
      .array(fc.string({ minLength: 1, maxLength: 40 }), {
        minLength: starts.length,
        maxLength: starts.length,
      })
      .map(names =>
        starts.map((start, i): Function => ({ start, name: `f${names[i]!.replaceAll('\0', '.')}` })),
      ),
  )

/** As Go 1.20 and newer write it: places of four bytes, from the begin of the code. */
function newTable(all: readonly Function[]): Buffer {
  const names = Buffer.from(all.map(({ name }) => `${name}\0`).join(''))
  const table = 72 + names.length
  const rows = all.length * 8 + 4
  const bytes = Buffer.alloc(table + rows + all.length * 8)
  bytes.writeUInt32LE(0xfffffff1, 0)
  bytes[6] = 1
  bytes[7] = 8
  bytes.writeBigUInt64LE(BigInt(all.length), 8)
  bytes.writeBigUInt64LE(BigInt(imageBase), 24)
  bytes.writeBigUInt64LE(72n, 32)
  bytes.writeBigUInt64LE(BigInt(table), 64)
  names.copy(bytes, 72)
  let nameAt = 0
  all.forEach(({ start, name }, i) => {
    const description = rows + i * 8
    bytes.writeUInt32LE(start, table + i * 8)
    bytes.writeUInt32LE(description, table + i * 8 + 4)
    bytes.writeInt32LE(nameAt, table + description + 4)
    nameAt += Buffer.byteLength(name) + 1
  })
  bytes.writeUInt32LE(codeBytes, table + all.length * 8)
  return bytes
}

/** As Go 1.2 wrote it: addresses of eight bytes, and all places from the begin of the table. */
function oldTable(all: readonly Function[]): Buffer {
  const table = 16
  const descriptions = table + all.length * 16 + 8
  const names = Buffer.from(all.map(({ name }) => `${name}\0`).join(''))
  const namesAt = descriptions + all.length * 12
  const bytes = Buffer.alloc(Math.max(72, namesAt + names.length))
  bytes.writeUInt32LE(0xfffffffb, 0)
  bytes[6] = 1
  bytes[7] = 8
  bytes.writeBigUInt64LE(BigInt(all.length), 8)
  names.copy(bytes, namesAt)
  let nameAt = namesAt
  all.forEach(({ start, name }, i) => {
    const description = descriptions + i * 12
    bytes.writeBigUInt64LE(BigInt(imageBase + start), table + i * 16)
    bytes.writeBigUInt64LE(BigInt(description), table + i * 16 + 8)
    bytes.writeInt32LE(nameAt, description + 8)
    nameAt += Buffer.byteLength(name) + 1
  })
  bytes.writeBigUInt64LE(BigInt(imageBase + codeBytes), table + all.length * 16)
  return bytes
}

function withTable(bytes: Uint8Array, use: (table: GoTable | undefined) => void): void {
  const fd = openImage(path, elfImage([{ name: '.gopclntab', type: 1, bytes }], codeBytes))
  try {
    use(GoTable.of(ElfFile.of(fd)))
  } finally {
    closeSync(fd)
  }
}

const tables = fc.tuple(functions, fc.boolean())
const bytesOf = (all: readonly Function[], isOld: boolean) => (isOld ? oldTable(all) : newTable(all))

test('every place has the function that begins last before it', () => {
  fc.assert(
    fc.property(tables, fc.array(fc.integer({ min: 0, max: codeBytes - 1 })), ([all, isOld], places) => {
      withTable(bytesOf(all, isOld), table => {
        assert.ok(table)
        for (const place of [...places, ...all.flatMap(({ start }) => [start, start + 1])]) {
          const want = all.findLast(({ start }) => start <= place)
          assert.deepEqual(table.at(place), want && { symbol: want.name, start: want.start })
        }
      })
    }),
    { numRuns: soak ? 5_000 : 100 },
  )
})

test('of a table with any bytes nothing but bounded names is read', () => {
  const changes = fc.array(
    fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 0, max: 255 })),
    {
      minLength: 1,
      maxLength: 40,
    },
  )
  fc.assert(
    fc.property(tables, changes, fc.boolean(), ([all, isOld], changed, inHeader) => {
      const bytes = bytesOf(all, isOld)
      // The magic stays: without it nothing is read.
      const room = inHeader ? 68 : bytes.length - 4
      for (const [where, value] of changed) bytes[4 + Math.floor(where * (room - 1))] = value
      try {
        withTable(bytes, table => {
          for (let place = 0; place < codeBytes; place += 997) {
            const found = table?.at(place)
            assert.ok(found === undefined || (found.symbol.length > 0 && found.symbol.length <= 1024))
          }
        })
      } catch (error) {
        if (!(error instanceof ElfError)) throw error
      }
    }),
    { numRuns: soak ? 50_000 : 500 },
  )
})
