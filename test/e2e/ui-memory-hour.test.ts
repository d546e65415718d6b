// owns: processor
// What the agent learns of other programs that begin takes memory, too: in an hour more than the bound. So none does.
import { test } from 'node:test'
import { memoryStandsStill, withoutFullWindow } from '../helpers/full-window.ts'
import { onlyInSoak } from '../helpers/soak.ts'

test(
  'in an hour with a full window the memory of the agent stands still',
  {
    skip: onlyInSoak || withoutFullWindow,
  },
  t => memoryStandsStill(t, 3600, 60),
)
