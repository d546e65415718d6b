// By hand the same program was read in CPython 3.11.2 and 3.11.7, 3.12.1, 3.13.0 and 3.13.18, 3.14.10. 3.13 and later
// describe themselves; the offsets for 3.11 and 3.12 are those of their headers.

import assert from 'node:assert/strict'
import { closeSync, existsSync, openSync, readdirSync, writeSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { type PythonStack, pythonStack } from '../../../../test/helpers/runtimes/python-stack.ts'
import {
  recognised,
  ScriptProgram,
  systemPython,
  withoutPython,
} from '../../../../test/helpers/runtimes/script-program.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { shim } from './cpython/merge.ts'
import { cpython } from './cpython.ts'
import type { RuntimeProcess } from './runtime.ts'

/** Others that stand beside it on a machine for development. */
const pyenv = join(process.env.PYENV_ROOT ?? join(homedir(), '.pyenv'), 'versions')
const others = existsSync(pyenv) ? readdirSync(pyenv).map(version => join(pyenv, version)) : []
const readable = others.filter(path => /^3\.1[1-4]\.\d+$/.test(basename(path)))
const older = others.find(path => basename(path).startsWith('3.10.'))
const withoutOlderPython = older === undefined ? 'there is no Python 3.10' : false
const interpreters = [
  ...(withoutPython === false ? [systemPython] : []),
  ...readable.map(path => join(path, 'bin/python3')),
]

function attached(program: ScriptProgram): RuntimeProcess {
  const image = program.areas().find(({ path }) => /\/(lib)?python3[^/]*$/.test(path) && isRuntime(path))
  assert.ok(image, 'no file of it is CPython')
  const { file, start } = recognised(cpython, image.path)
  if (typeof file !== 'object') throw new Error(String(file))
  const runtime = file.attach(program.memory, image.start - start)
  if (typeof runtime === 'string') throw new Error(runtime)
  return runtime
}

const isRuntime = (path: string) => recognised(cpython, path).file !== undefined

async function stackOf(
  interpreter: string,
  source: string,
): Promise<PythonStack & { pid: number; path: string }> {
  const program = await ScriptProgram.start(interpreter, 'näme.py', source)
  try {
    await program.stop()
    const runtime = attached(program)
    const stack = pythonStack(program, runtime)
    assert.deepEqual(pythonStack(program, runtime), stack, 'names are kept')
    return { ...stack, pid: program.pid, path: program.path }
  } finally {
    await program.end()
  }
}

const spin = `def spin(n):
    print('ready', flush=True)
    while True: n = (n * 31 + 7) % 1000003
`

const named = `${spin}
class Übung:
    def do_a(self, n): return spin(n) + 1
    @property
    def 日本(self): return self.do_a(3)

def gen(w):
    yield w.日本

def by_c(w):
    return sorted([1], key=lambda v: list(gen(w)))

class Made:
    def __init__(self, w, n):
        if n == 99: by_c(w)

def make():
    for n in range(100): Made(Übung(), n)

make()
`

for (const interpreter of interpreters) {
  test(`functions of ${interpreter} have their names, files and lines`, async () => {
    const { frames, entries, thread, pid, path } = await stackOf(interpreter, named)
    assert.equal(thread, pid)
    const merged = cpython.merge!([], frames, entries)
    assert.deepEqual(
      merged.map(({ name, line }) => `${name}:${line}`),
      [
        'spin:1',
        'Übung.do_a:6',
        'Übung.日本:7',
        'gen:10',
        'by_c.<locals>.<lambda>:14',
        'by_c:13',
        'Made.__init__:17',
        'make:20',
        '<module>:1',
      ],
    )
    for (const frame of merged) {
      assert.equal(frame.type, 'cpython')
      assert.equal(frame.file, path)
      assert.equal(frame.file, merged[0]!.file)
    }
  })

  test(`frames of ${interpreter} tell where C entered`, async () => {
    const { frames, entries } = await stackOf(interpreter, named)
    const runs: string[] = []
    let run: string[] = []
    const hasShims = frames.includes(shim)
    frames.forEach((frame, index) => {
      if (frame !== shim) run.push(frame.name)
      if (!entries[index] || (hasShims && frame !== shim)) return
      runs.push(run.join(' '))
      run = []
    })
    assert.deepEqual(run, [])
    assert.ok(runs.includes('spin Übung.do_a Übung.日本'))
    assert.ok(runs.includes('gen'))
    assert.ok(runs.includes('by_c.<locals>.<lambda>'))
    assert.match(runs.at(-1)!, /<module>$/)
  })

  test(`the thread of ${interpreter} that runs is the one that is read`, async () => {
    const source = `import threading
${spin}
def in_thread(): spin(3)
worker = threading.Thread(target=in_thread)
worker.start()
worker.join()
`
    const program = await ScriptProgram.start(interpreter, 'threads.py', source)
    try {
      const runtime = attached(program)
      await program.stop()
      // The main thread may have a few instructions left.
      while (pythonStack(program, runtime).thread === program.pid) {
        program.resume()
        await sleep(1)
        await program.stop()
      }
      const { thread, frames } = pythonStack(program, runtime)
      assert.ok(readdirSync(`/proc/${program.pid}/task`).includes(String(thread)))
      assert.deepEqual(
        frames.filter(frame => frame !== shim).map(({ name }) => name),
        ['spin', 'in_thread', 'Thread.run', 'Thread._bootstrap_inner', 'Thread._bootstrap'],
      )
    } finally {
      await program.end()
    }
  })
}

test('characters of any width are read, and long names are cut off', { skip: withoutPython }, async () => {
  const long = 'n'.repeat(3000)
  const source = `import ctypes, time
def made(name, file): return (lambda: 0).__code__.replace(co_qualname=name, co_filename=file, co_firstlineno=7)
codes = [made('ascii', '/a'), made('gr\\xfc\\xdf', '/l'), made('\\u65e5\\u672c', '/w'), made('\\U0001f600', '/e'), made('${long}', '/n'), made('', '')]
print(' '.join(str(id(code)) for code in codes), flush=True)
time.sleep(1000)`
  const program = await ScriptProgram.start(systemPython, 'widths.py', source)
  try {
    const runtime = attached(program)
    const names = program.said
      .trim()
      .split(' ')
      .map(address => runtime.name(Number(address)))
    assert.deepEqual(
      names.map(({ name, file, line }) => `${name} ${file}:${line}`),
      ['ascii /a:7', 'grüß /l:7', '日本 /w:7', '😀 /e:7', `${'n'.repeat(1024)} /n:7`, ' :7'],
    )
  } finally {
    await program.end()
  }
})

test('code that takes the place of other code gets its own name', { skip: withoutPython }, async () => {
  const source = `import time
one, other = (lambda: 0).__code__.replace(co_qualname='one'), (lambda: 0).__code__.replace(co_qualname='other')
print(f'{id(one)} {id(other)}', flush=True)
time.sleep(1000)`
  const program = await ScriptProgram.start(systemPython, 'replaced.py', source)
  const memory = openSync(`/proc/${program.pid}/mem`, 'r+')
  try {
    const runtime = attached(program)
    const [one, other] = program.said.trim().split(' ').map(Number)
    assert.equal(runtime.name(one!).name, 'one')
    const code = Buffer.from(program.memory.read(other!, 192)!)
    writeSync(memory, code, 0, code.length, one!)
    while (runtime.name(one!).name === 'one') await sleep(10)
    assert.equal(runtime.name(one!).name, 'other')
  } finally {
    closeSync(memory)
    await program.end()
  }
})

test('whatever a pointer points at in a running program, a frame comes of it', {
  skip: withoutPython,
}, async () => {
  const source = `import ast
print('ready', flush=True)
while True: compile(ast.parse('def f(x):\\n  return [lambda: x]\\n' * 50), 'made', 'exec')`
  const program = await ScriptProgram.start(systemPython, 'busy.py', source)
  try {
    const runtime = attached(program)
    const areas = program.areas().filter(({ access }) => access.startsWith('rw'))
    const place = fc.tuple(fc.nat(areas.length - 1), fc.double({ min: 0, max: 1, noNaN: true }))
    fc.assert(
      fc.property(place, ([index, into]) => {
        const { start, end } = areas[index]!
        const { name, type } = runtime.name(start + Math.floor(((end - start) * into) / 16) * 16)
        assert.equal(type, 'cpython')
        assert.ok(name.length <= 1024)
      }),
      { numRuns: soak ? 100_000 : 3000 },
    )
    for (const pointer of [0, -8, 1, 2 ** 47, 2 ** 53, Number.NaN])
      assert.match(runtime.name(pointer).name, /^\[.*\]$/)
  } finally {
    await program.end()
  }
})

test('a program that ended has no frames, and a file without CPython is none', {
  skip: withoutPython,
}, async () => {
  const program = await ScriptProgram.start(
    systemPython,
    'short.py',
    'import time; print("ready", flush=True); time.sleep(1000)',
  )
  const runtime = attached(program)
  await program.end()
  assert.match(runtime.name(4096).name, /^\[Python: /)
  assert.equal(recognised(cpython, '/bin/sh').file, undefined)
  assert.equal(recognised(cpython, process.execPath).file, undefined)
})

test('a version that is not read says so', { skip: withoutOlderPython }, () => {
  const library = join(older!, 'lib/libpython3.10.so.1.0')
  assert.equal(recognised(cpython, library).file, 'CPython 3.10 and older is not supported')
})
