import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { soak } from '../../../../test/helpers/soak.ts'
import { type Shard, shardIndex, shardOf } from './shard.ts'

const some = soak ? 100_000 : 10_000
const ids = Array.from({ length: some }, (_, i) => `target-${i}`)

/** Which agents take each target. */
function takers(count: number, replicas = 1): number[][] {
  const shards: Shard[] = Array.from({ length: count }, (_, index) => ({ index, count, replicas }))
  return ids.map(id => shards.filter(shard => shardOf(shard, id)).map(({ index }) => index))
}

test('each target is taken by as many agents as there are replicas', () => {
  for (const [count, replicas, want] of [
    [1, 1, 1],
    [3, 1, 1],
    [5, 2, 2],
    [5, 5, 5],
    [2, 3, 2],
  ] as const)
    assert.ok(
      takers(count, replicas).every(each => each.length === want),
      `${count} agents, ${replicas} replicas`,
    )
})

test('targets are spread evenly', () => {
  for (const [count, replicas] of [
    [4, 1],
    [7, 1],
    [4, 2],
  ] as const) {
    const sums = Array(count).fill(0)
    for (const each of takers(count, replicas)) for (const index of each) sums[index]++
    const mean = (ids.length * replicas) / count
    // Four standard deviations of chance, which is 5 % of what 100,000 targets give each of seven.
    const bound = Math.max(0.02 * mean, 4 * Math.sqrt(mean))
    for (const sum of sums) assert.ok(Math.abs(sum - mean) < bound, `${sums} of ${ids.length}`)
  }
})

test('another agent takes its part, and nothing moves between the others', () => {
  for (const count of [1, 2, 4, 9]) {
    const [before, later] = [takers(count), takers(count + 1)]
    const moved = later.filter((each, i) => each[0] !== before[i]![0])
    assert.ok(moved.every(([index]) => index === count))
    const want = ids.length / (count + 1)
    assert.ok(Math.abs(moved.length - want) < 4 * Math.sqrt(want), `${moved.length} of ${ids.length} moved`)
  }
})

test('other processes choose the same', () => {
  const script = `
    import { shardOf } from ${JSON.stringify(join(import.meta.dirname, 'shard.ts'))}
    const shard = { index: 1, count: 3, replicas: 1 }
    console.log(Array.from({ length: 60 }, (_, i) => Number(shardOf(shard, 'é' + i))).join(''))`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  const own = Array.from({ length: 60 }, (_, i) =>
    Number(shardOf({ index: 1, count: 3, replicas: 1 }, `é${i}`)),
  )
  assert.equal(stdout.trim(), own.join(''))
  // And other releases.
  assert.equal(own.slice(0, 20).join(''), '01000100011100000000')
})

test('an agent outside the count takes nothing', () => {
  assert.ok(ids.slice(0, 100).every(id => !shardOf({ index: 3, count: 3, replicas: 1 }, id)))
  assert.ok(!shardOf({ index: 3, count: 3, replicas: 3 }, 'a'))
})

test('the index is that of the pod where -1 is written', () => {
  assert.equal(shardIndex(2, 'svc-5', 'svc-6'), 2)
  assert.equal(shardIndex(-1, 'svc-5', 'svc-6'), 5)
  assert.equal(shardIndex(-1, undefined, 'svc-collector-12.svc.monitoring.svc.cluster.local'), 12)
  assert.equal(shardIndex(-1, 'svc', 'svc-0'), 0)
  assert.equal(shardIndex(-1, undefined, 'laptop'), undefined)
  assert.equal(shardIndex(-1, '', 'laptop.site-3'), undefined)
  assert.equal(shardIndex(-1, 'svc-7d9f-x2x', 'host'), undefined)
})
