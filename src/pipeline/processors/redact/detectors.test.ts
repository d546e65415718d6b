import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { detectors } from './detectors.ts'
import { Redactor } from './redactor.ts'
import { builtIn, type RuleType } from './settings.ts'

const replacement = '[REDACTED]'

function redactorOf(types: readonly RuleType[]): Redactor {
  const rules = types.map(type => ({
    name: type,
    type,
    pattern: '',
    mode: 'replace' as const,
    replacement,
    counts: { redacted: 0, found: 0 },
  }))
  return new Redactor(rules, { maxBytes: 65_536, key: new Uint8Array(), nowMs: () => performance.now() })
}

/**
 * The lines of a fixture: `+ text ⟦with what is found⟧` or `- text with nothing`. `\n`, `\r` and `\t` at ends of keys and
 * headers stay as they are, which is how logs of JSON hold them. `<+>` keeps keys apart that scanners of repositories
 * would take for real ones.
 */
function fixture(type: RuleType): { readonly finds: readonly string[]; readonly leaves: readonly string[] } {
  const lines = readFileSync(`test/fixtures/redact/${type}.txt`, 'utf8').trimEnd().split('\n')
  const of = (sign: string) =>
    lines.filter(line => line.startsWith(sign)).map(line => line.slice(2).replaceAll('<+>', ''))
  return { finds: of('+ '), leaves: of('- ') }
}

for (const type of builtIn) {
  test(`${type} is found where it is, to the letter, and nowhere else`, () => {
    const redactor = redactorOf([type])
    const { finds, leaves } = fixture(type)
    assert.ok(finds.length >= 50 && leaves.length >= 50)
    const faults: string[] = []
    for (const line of finds) {
      const text = line.replace(/[⟦⟧]/g, '')
      const got = redactor.text(text, 0)
      const want = line.replace(/⟦.*?⟧/g, replacement)
      if (got !== want) faults.push(`+ ${line}\n  got  ${got}`)
      else if (redactor.text(got, 0) !== got) faults.push(`twice ${line}`)
    }
    for (const line of leaves) {
      const got = redactor.text(line, 0)
      if (got !== line) faults.push(`- ${line}\n  got  ${got}`)
    }
    assert.deepEqual(faults, [])
  })
}

test('all types together leave nothing of what each of them finds', () => {
  const all = redactorOf(builtIn)
  for (const type of builtIn) {
    for (const line of fixture(type).finds) {
      const redacted = all.text(line.replace(/[⟦⟧]/g, ''), 0)
      for (const [, found] of line.matchAll(/⟦(.*?)⟧/g))
        if (found!.length > 3) assert.ok(!redacted.includes(found!), `${line} → ${redacted}`)
      assert.equal(all.text(redacted, 0), redacted, line)
    }
  }
})

test('every built-in type has a detector, and every trigger is a character of ASCII and no digit', () => {
  const found = new Set(detectors.flatMap(detector => detector.types))
  assert.deepEqual(
    builtIn.filter(type => !found.has(type)),
    [],
  )
  for (const { triggers } of detectors) assert.match(triggers, /^[!-/:-~]*$/)
})
