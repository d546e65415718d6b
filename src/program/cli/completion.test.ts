import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { svc } from '../../../test/helpers/svc.ts'
import { bash, fish, zsh } from './completion/scripts.ts'
import { commands } from './index.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-completion-'))
after(() => rmSync(directory, { recursive: true }))
const scripts = { bash: bash(commands), zsh: zsh(commands), fish: fish(commands) }
const paths = Object.fromEntries(
  Object.entries(scripts).map(([shell, text]) => {
    const path = join(directory, shell)
    writeFileSync(path, text)
    return [shell, path]
  }),
)
writeFileSync(join(directory, 'shop.yaml'), '')
writeFileSync(join(directory, 'my * file.yaml'), '')

/** What bash offers for the last word. */
function offered(...words: string[]): string[] {
  const script = `source "$1"; shift; COMP_WORDS=(svc "$@"); COMP_CWORD=$#; _svc; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout, stderr, status } = spawnSync(
    'bash',
    ['--norc', '-c', script, 'bash', paths.bash!, ...words],
    {
      encoding: 'utf8',
      cwd: directory,
    },
  )
  assert.deepEqual([stderr, status], ['', 0])
  return stdout.split('\n').filter(Boolean)
}

test('bash completes commands, flags, words and files', () => {
  assert.deepEqual(offered('to'), ['top'])
  assert.deepEqual(offered(''), [...commands.map(({ name }) => name), 'help'])
  assert.deepEqual(offered('tap', ''), ['traces', 'logs', 'metrics', 'profiles'])
  assert.deepEqual(offered('tap', 'traces', '--se'), ['--service'])
  assert.deepEqual(offered('tap', '--service', ''), [])
  assert.deepEqual(offered('completion', 'z'), ['zsh'])
  assert.deepEqual(offered('top', '--config', 'sh'), ['shop.yaml'])
  assert.deepEqual(offered('top', '--config', '=', 'sh'), ['shop.yaml'])
  assert.deepEqual(offered('validate', 'shop'), ['shop.yaml'])
  assert.deepEqual(offered('validate', 'my'), ['my * file.yaml'])
  assert.ok(offered('--').includes('--validate-config'))
  assert.deepEqual(offered('node-exporter', '--'), [])
})

test('what a shell is given has its syntax', () => {
  for (const shell of ['bash', 'zsh', 'fish'] as const) {
    if (spawnSync(shell, ['--version']).status !== 0) continue
    const { status, stderr } = spawnSync(shell, ['-n', paths[shell]!], { encoding: 'utf8' })
    assert.deepEqual([status, stderr], [0, ''], shell)
  }
})

test('every command and flag is in every script', () => {
  for (const [shell, text] of Object.entries(scripts))
    for (const { name, flags, foreignFlags } of commands) {
      assert.ok(text.includes(name), `${shell}: ${name}`)
      for (const flag of foreignFlags ? [] : flags)
        assert.match(
          text,
          new RegExp(shell === 'fish' ? `from ${name}' -l ${flag.name}\\b` : `--${flag.name}\\b`),
        )
    }
})

test('the command prints them, and knows three shells', async () => {
  const { code, out, talk } = await svc(['completion', 'fish'])
  assert.deepEqual([code, talk, out], [0, '', scripts.fish])
  const wrong = await svc(['completion', 'fis'])
  assert.deepEqual([wrong.code, wrong.out], [2, ''])
  assert.match(wrong.talk, /unknown shell "fis"; did you mean fish\? the shells are bash, zsh, fish/)
})
