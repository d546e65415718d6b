import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Frame } from '../../../../foundation/model/profile.ts'
import { mergeFrames, shim } from './merge.ts'

const loop = '_PyEval_EvalFrameDefault'

const c = (name: string): Frame => ({ name, file: '', line: 0, type: 'native' })
/** `name!` is a frame by which C entered. */
const python = (name: string): Frame =>
  name.startsWith('shim') ? shim : { name: name.replace('!', ''), file: 'a.py', line: 1, type: 'cpython' }

/** All leaf first. */
function check(native: string, inner: string, want: string): void {
  const names = (text: string) => (text === '' ? [] : text.split(' '))
  const stack = names(native.replaceAll('LOOP', loop)).map(c)
  const merged = mergeFrames(
    stack,
    names(inner).map(python),
    names(inner).map(name => name.endsWith('!')),
  )
  assert.equal(merged.map(({ name }) => name).join(' '), want.replaceAll('LOOP', loop))
}

test('frames of Python stand where C ran the loop for them', () => {
  check('LOOP _PyEval_Vector main', 'f g <module>!', 'f g <module> main')
  check(
    'memcpy PyLong_Add LOOP _PyEval_Vector list_sort PyObject_Call LOOP PyEval_EvalCode run_mod main',
    'key! caller <module>!',
    'memcpy PyLong_Add key list_sort PyObject_Call caller <module> run_mod main',
  )
  check('LOOP.cold LOOP.constprop.0 main', 'f! g!', 'f g main')
})

test('doors of the interpreter that are not next to a loop are C functions like others', () => {
  check('_PyEval_Vector LOOP main', 'f!', '_PyEval_Vector f main')
  check('LOOP call _PyEval_Vector main', 'f!', 'f call _PyEval_Vector main')
})

test('since 3.12 C puts a frame below those of Python, which is not shown', () => {
  check('LOOP sort LOOP main', 'key shim! caller <module> shim!', 'key sort caller <module> main')
  check('LOOP main', 'generator! f shim!', 'generator f main')
  check('LOOP main', 'made shim make <module> shim!', 'made make <module> main')
  check('_TAIL_CALL_CALL LOOP main', 'f shim!', 'f main')
})

test('a loop that has made no frame yet stays a C function', () => {
  check('LOOP call LOOP main', 'f!', 'LOOP call f main')
  check('LOOP call LOOP main', '', 'LOOP call LOOP main')
})

test('loops beyond frames that were cut off stay C functions', () => {
  check('LOOP a LOOP b LOOP main', 'f! g h', 'f a g h b LOOP main')
})

test('frames beyond the loops stand at the outermost loop, or behind C', () => {
  check('LOOP a', 'f! g! h!', 'f g h a')
  check('read main', 'f! g!', 'read main f g')
  check('', 'f! g!', 'f g')
})

test('no frame but loops and their doors is lost, and the order of each side is kept', () => {
  const native = fc.array(fc.constantFrom('LOOP', 'a', 'b', '_PyEval_Vector', '_PyFunction_Vectorcall'))
  const inner = fc.array(fc.tuple(fc.constantFrom('f', 'g', 'h'), fc.boolean()))
  fc.assert(
    fc.property(native, inner, (names, pairs) => {
      const stack = names.map(name => c(name.replace('LOOP', loop)))
      const frames = pairs.map(([name]) => python(name))
      const merged = mergeFrames(
        stack,
        frames,
        pairs.map(([, entry]) => entry),
      )
      assert.deepEqual(
        merged.filter(({ type }) => type === 'cpython'),
        frames,
      )
      const kept = merged.filter(({ name }) => name === 'a' || name === 'b')
      assert.deepEqual(
        kept,
        stack.filter(({ name }) => name === 'a' || name === 'b'),
      )
      const replaced = stack.length - merged.filter(({ type }) => type === 'native').length
      assert.ok(replaced === 0 || frames.length > 0)
    }),
  )
})
