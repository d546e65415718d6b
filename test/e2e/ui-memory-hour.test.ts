// owns: processor
// Alone: what the agent learns of other programs that begin takes memory, too.
import { test } from 'node:test'
import { assertStableMemory, withoutFullWindow } from '../helpers/full-window.ts'
import { onlyInSoak } from '../helpers/soak.ts'

test(
  'in an hour with a full window the memory of the agent stands still',
  {
    skip: onlyInSoak || withoutFullWindow,
  },
  t => assertStableMemory(t, { seconds: 3600, few: 60, most: 1 }),
)
