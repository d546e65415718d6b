// owns: ports
import { test } from 'node:test'
import { assertStableMemory, withoutFullWindow } from '../helpers/full-window.ts'

test(
  'a full window keeps within its bound, and the memory of the agent stands still',
  {
    skip: withoutFullWindow,
  },
  t => assertStableMemory(t, { seconds: 16, few: 4, most: 3 }),
)
