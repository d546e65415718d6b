import assert from 'node:assert/strict'
import { closeSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { elfImage, openImage } from '../../../../test/helpers/elf-image.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { ElfFile } from '../../../foundation/lib/elf/elf-file.ts'
import { ElfError } from '../../../foundation/lib/elf/elf-format.ts'
import { findDebugFile } from './debug-files.ts'

const scratch = mkdtempSync(join(tmpdir(), 'svc-debug-files-'))
after(() => rmSync(scratch, { recursive: true }))

// The same bytes inside of the directory where debug files are, and beside it.
const debug = elfImage([
  { name: '.symtab', type: 2, bytes: new Uint8Array(24), link: 2 },
  { name: '.strtab', type: 3, bytes: new Uint8Array(1) },
])
const checksum = crc32(debug)
const inside = join(scratch, 'debug')
mkdirSync(join(inside, 'opt'), { recursive: true })
writeFileSync(join(inside, 'opt', 'a.debug'), debug)
writeFileSync(join(inside, 'other.debug'), debug)
writeFileSync(join(scratch, 'out.debug'), debug)

/** What is found for a program at /opt/a with these bytes in `.gnu_debuglink`, by its path. */
function found(link: Uint8Array): string | undefined {
  const fd = openImage(join(scratch, 'program'), elfImage([{ name: '.gnu_debuglink', type: 1, bytes: link }]))
  try {
    const file = findDebugFile(ElfFile.of(fd), '/opt/a', [inside])
    if (file === undefined) return undefined
    const path = readlinkSync(`/proc/self/fd/${file.fd}`)
    closeSync(file.fd)
    return path
  } finally {
    closeSync(fd)
  }
}

function linkTo(name: string, sum = checksum): Buffer {
  const at = (Buffer.byteLength(name) + 4) & ~3
  const bytes = Buffer.alloc(at + 4)
  bytes.write(name)
  bytes.writeUInt32LE(sum, at)
  return bytes
}

test('a debug file is found by its name and sum, and by no name that leads elsewhere', () => {
  assert.equal(found(linkTo('a.debug')), join(inside, 'opt', 'a.debug'))
  assert.equal(found(linkTo('a.debug', checksum ^ 1)), undefined)
  const part = fc.constantFrom(
    '..',
    '.',
    '',
    'a.debug',
    'other.debug',
    'out.debug',
    'opt',
    'debug',
    '\0',
    'ä',
  )
  fc.assert(
    fc.property(fc.array(part, { maxLength: 6 }), fc.constantFrom('/', '', '//'), (parts, between) => {
      const name = parts.join(between)
      // C's: up to the first zero byte.
      const isIt = name.split('\0')[0] === 'a.debug'
      const path = found(linkTo(name))
      assert.ok(path === undefined || (isIt && path === join(inside, 'opt', 'a.debug')), `${name}: ${path}`)
    }),
    { numRuns: soak ? 20_000 : 300 },
  )
})

test('whatever stands in the place of a name, nothing is left open', () => {
  const before = readdirSync('/proc/self/fd').length
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), bytes => {
      try {
        assert.equal(found(bytes), undefined)
      } catch (error) {
        if (!(error instanceof ElfError)) throw error
      }
    }),
    { numRuns: soak ? 20_000 : 300 },
  )
  assert.equal(readdirSync('/proc/self/fd').length, before)
})
