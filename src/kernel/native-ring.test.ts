// owns: host
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpus } from 'node:os'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { withoutBpf } from '../../test/helpers/compile-bpf.ts'
import { Lab, records } from '../../test/helpers/lab.ts'
import { perfMoreWaits, type RingHandle } from './native.ts'

/** What a ring counts of a thread that it has not got. */
const without = { absorbedBytes: 0, heldBytes: 0, peakBytes: 0 }

function withRing(ringBytes: number, body: (lab: Lab, ring: RingHandle) => void): void {
  const lab = new Lab(ringBytes)
  try {
    lab.object.attach('svc_burst')
    const ring = lab.native.ringOpen(lab.object.map('ring'))
    body(lab, ring)
    lab.native.ringClose(ring)
  } finally {
    lab.close()
  }
}

/** Drains until nothing is left and checks that records are whole, in order and gapless. */
function drainAll(lab: Lab, ring: RingHandle, target: Uint8Array, first: number): number {
  let next = first
  for (;;) {
    const used = lab.native.ringDrain(ring, target)
    if (used === 0) return next - first
    for (const record of records(target.subarray(0, used))) {
      assert.equal(record.sequence, next++)
      assert.equal(record.tag, 0)
    }
  }
}

test('every record comes out once and in order', { skip: withoutBpf }, () => {
  withRing(1 << 20, (lab, ring) => {
    lab.emit(1000)
    assert.equal(lab.native.ringAvailable(ring), 1000 * 24)
    const target = new Uint8Array(1 << 20)
    assert.equal(drainAll(lab, ring, target, 0), 1000)
    assert.equal(lab.native.ringAvailable(ring), 0)
    assert.equal(lab.native.ringDrain(ring, target), 0)
    assert.deepEqual(lab.native.ringCounters(ring), {
      ...without,
      ...{ records: 1000, discarded: 0, oversized: 0 },
    })
  })
})

test('records that wrap around the end of the ring come out whole', { skip: withoutBpf }, () => {
  withRing(4096, (lab, ring) => {
    const target = new Uint8Array(4096)
    let seen = 0
    for (let payload = 8; payload < 1200; payload += 7) {
      lab.set('payload', payload)
      lab.emit(3)
      const used = lab.native.ringDrain(ring, target)
      const found = records(target.subarray(0, used))
      assert.deepEqual(
        found.map(record => record.length),
        [payload, payload, payload],
      )
      for (const record of found) assert.equal(record.sequence, seen++)
    }
    assert.equal(lab.get('refused'), 0)
  })
})

test('the bytes of a record are those that the program wrote', { skip: withoutBpf }, () => {
  withRing(4096, (lab, ring) => {
    const target = new Uint8Array(4096)
    lab.set('payload', 1001)
    for (let round = 0; round < 40; round++) {
      lab.emit(1)
      // The content is all zero behind the head of two numbers.
      target.fill(0xaa)
      const used = lab.native.ringDrain(ring, target)
      assert.equal(used, 8 + 1008)
      assert.equal(new DataView(target.buffer).getUint32(12, true), 1001)
      assert.ok(target.subarray(16, 8 + 1001).every(byte => byte === 0))
      assert.ok(target.subarray(used).every(byte => byte === 0xaa))
    }
  })
})

test('a small target takes whole records only and the rest later', { skip: withoutBpf }, () => {
  withRing(1 << 16, (lab, ring) => {
    lab.emit(100)
    const target = new Uint8Array(100)
    assert.equal(lab.native.ringDrain(ring, target), 96)
    assert.equal(drainAll(lab, ring, target, 4), 96)
  })
})

test('a record that fits no target is skipped and counted', { skip: withoutBpf }, () => {
  withRing(1 << 16, (lab, ring) => {
    lab.set('payload', 200)
    lab.emit(5)
    lab.set('payload', 16)
    lab.emit(3)
    const target = new Uint8Array(64)
    assert.equal(drainAll(lab, ring, target, 5), 3)
    assert.deepEqual(lab.native.ringCounters(ring), {
      ...without,
      ...{ records: 3, discarded: 0, oversized: 5 },
    })
  })
})

test('discarded records are passed over and counted', { skip: withoutBpf }, () => {
  withRing(1 << 16, (lab, ring) => {
    lab.set('discard_every', 3)
    lab.emit(300)
    assert.equal(drainAll(lab, ring, new Uint8Array(1 << 16), 0), 300)
    assert.deepEqual(lab.native.ringCounters(ring), {
      ...without,
      ...{ records: 300, discarded: 100, oversized: 0 },
    })
  })
})

test('a full ring refuses records, loses none that it took, and works again once drained', {
  skip: withoutBpf,
}, () => {
  withRing(4096, (lab, ring) => {
    lab.emit(1000)
    const taken = lab.get('emitted')
    assert.equal(taken, 170) // 4096 bytes hold 170 records of 24
    assert.equal(lab.get('refused'), 830)
    const target = new Uint8Array(8192)
    assert.equal(drainAll(lab, ring, target, 0), taken)
    lab.emit(10)
    assert.equal(drainAll(lab, ring, target, 1000), 10)
  })
})

test('a ring stays readable after its object was closed, until it is closed itself', {
  skip: withoutBpf,
}, () => {
  const lab = new Lab()
  lab.object.attach('svc_burst')
  const ring = lab.native.ringOpen(lab.object.map('ring'))
  lab.emit(2)
  lab.close()
  const target = new Uint8Array(4096)
  assert.equal(records(target.subarray(0, lab.native.ringDrain(ring, target))).length, 2)
  lab.native.ringClose(ring)
  lab.native.ringClose(ring)
  assert.throws(() => lab.native.ringDrain(ring, target), { code: 'EBADF' })
})

test('a thread takes records while nobody reads, within its bound, and they come out in order', {
  skip: withoutBpf,
}, async () => {
  const lab = new Lab(4096)
  lab.object.attach('svc_burst')
  const { native } = lab
  const ring = native.ringOpen(lab.object.map('ring'))
  const taken = async (count: number) => {
    const endMs = performance.now() + 10_000
    while (native.ringCounters(ring).records < count && performance.now() < endMs) await turn()
    assert.equal(native.ringCounters(ring).records, count)
  }
  try {
    native.ringAbsorb(ring, 2 ** 21)
    for (let round = 1; round <= 300; round++) {
      lab.emit(100)
      await taken(100 * round)
    }
    const { absorbedBytes, heldBytes, peakBytes } = native.ringCounters(ring)
    assert.deepEqual([absorbedBytes, heldBytes, peakBytes], [720_000, 2 ** 20, 2 ** 20])
    assert.equal(native.ringAvailable(ring), 720_000)
    // No room for one more.
    native.ringAbsorb(ring, 0)
    lab.set('payload', 3000)
    for (let round = 1; native.ringAvailable(ring) < 2 ** 20 - 2 ** 17; round++) {
      lab.emit(1)
      await taken(30_000 + round)
    }
    const { records: kept } = native.ringCounters(ring)
    lab.emit(1)
    for (let i = 0; i < 100; i++) await turn()
    lab.emit(1) // finds the ring full
    assert.equal(lab.get('refused'), 1)
    // With more of it the thread goes on by itself.
    native.ringAbsorb(ring, 2 ** 21)
    await taken(kept + 1)
    assert.equal(native.ringCounters(ring).heldBytes, 2 ** 21)
    assert.equal(drainAll(lab, ring, new Uint8Array(1 << 16), 0), kept + 1)
    assert.equal(native.ringCounters(ring).heldBytes, 0)
    assert.equal(native.ringCounters(ring).peakBytes, 2 ** 21)
    assert.equal(native.ringAvailable(ring), 0)
    assert.equal(lab.get('refused'), 1)
  } finally {
    native.ringClose(ring)
    lab.close()
  }
})

test('a watch calls back when records wait, and stops when told', { skip: withoutBpf }, async () => {
  const lab = new Lab(1 << 16)
  const { native } = lab
  lab.object.attach('svc_burst')
  const map = lab.object.map('ring')
  const ring = native.ringOpen(map)
  const target = new Uint8Array(1 << 16)
  let calls = 0
  let wake = () => {}
  const poll = native.pollStart(map.fd, error => {
    assert.equal(error, undefined)
    calls++
    native.ringDrain(ring, target)
    wake()
  })
  try {
    for (let round = 1; round <= 20; round++) {
      const woken = new Promise<void>((resolve, reject) => {
        const deadline = setTimeout(() => reject(new Error(`no callback in round ${round}`)), 10_000)
        wake = () => {
          clearTimeout(deadline)
          resolve()
        }
      })
      lab.emit(5)
      await woken
      assert.equal(calls, round)
    }
    lab.set('no_wakeup', 1)
    assert.equal(native.ringCounters(ring).records, 100)
  } finally {
    native.pollStop(poll)
    native.pollStop(poll)
    native.ringClose(ring)
    lab.close()
  }
})

test('perf buffers deliver every record with its CPU and its length', { skip: withoutBpf }, () => {
  const lab = new Lab()
  try {
    const perf = lab.native.perfOpen(lab.object.map('events'), 64, 1)
    lab.object.attach('svc_perf')
    for (let round = 0; round < 50; round++) {
      lab.emit(100)
      const target = new Uint8Array(1 << 16)
      const found = records(target.subarray(0, lab.native.perfDrain(perf, target)))
      assert.equal(found.length, 100)
      found.sort((a, b) => a.sequence - b.sequence)
      for (const [i, record] of found.entries()) {
        assert.equal(record.sequence, round * 100 + i)
        assert.ok(record.length >= 8 && record.length < 16)
        assert.ok(record.tag < lab.native.numCpus())
      }
    }
    const counters = lab.native.perfCounters(perf)
    assert.equal(
      counters.reduce((sum, cpu) => sum + cpu.records, 0),
      5000,
    )
    lab.native.perfClose(perf)
    lab.native.perfClose(perf)
    assert.throws(() => lab.native.perfDrain(perf, new Uint8Array(64)), { code: 'EBADF' })
  } finally {
    lab.close()
  }
})

test('a full perf buffer: what came and what was lost are all that was sent', { skip: withoutBpf }, () => {
  const lab = new Lab()
  try {
    const perf = lab.native.perfOpen(lab.object.map('events'), 1, 1)
    lab.object.attach('svc_perf')
    const target = new Uint8Array(1 << 16)
    let came = 0
    let sent = 0
    for (let round = 0; round < 8; round++) {
      lab.emit(1000)
      sent += 1000
      came += records(target.subarray(0, lab.native.perfDrain(perf, target))).length
    }
    assert.ok(came > 100 && came < sent, `${came} of ${sent}`)
    assert.equal(lab.get('emitted'), came)
    assert.equal(lab.get('refused'), sent - came)
    // The kernel tells of a loss in front of the next record that finds room, so the last one is still due.
    const lost = lab.native.perfCounters(perf).reduce((sum, cpu) => sum + cpu.lost, 0)
    assert.ok(lost > 0 && lost <= sent - came, `${lost} of ${sent - came}`)
    lab.native.perfClose(perf)
  } finally {
    lab.close()
  }
})

const oneCpu = cpus().length < 2 && 'one CPU has nobody to share with'

test('a drain gives each CPU its share, and says of which more waits', { skip: withoutBpf || oneCpu }, () => {
  const lab = new Lab()
  const move = (to: string) => execFileSync('taskset', ['-cp', to, `${process.pid}`])
  const before = /list: (\S+)/.exec(
    execFileSync('taskset', ['-cp', `${process.pid}`], { encoding: 'utf8' }),
  )![1]!
  try {
    const perf = lab.native.perfOpen(lab.object.map('events'), 64, 1 << 20)
    lab.object.attach('svc_perf')
    for (const cpu of ['0', '1']) {
      move(cpu)
      for (let i = 0; i < 5; i++) lab.emit(1000)
    }
    lab.object.detach('svc_perf')
    const target = new Uint8Array(160 << 10)
    let came = 0
    for (let drains = 0; came < 10_000; drains++) {
      const found = records(target.subarray(0, lab.native.perfDrain(perf, target)))
      came += found.length
      for (const cpu of [0, 1]) {
        const tags = found.map(({ tag }) => tag).filter(tag => tag % perfMoreWaits === cpu)
        if (drains === 0) assert.ok(tags.length > 3000, `${tags.length} of CPU ${cpu}`)
        // Only the last one says so, and only where there is more.
        const told = tags.map((tag, i) => (tag >= perfMoreWaits ? i : -1)).filter(i => i >= 0)
        assert.deepEqual(told, drains === 0 ? [tags.length - 1] : [])
      }
    }
    assert.equal(came, 10_000)
    lab.native.perfClose(perf)
  } finally {
    move(before)
    lab.close()
  }
})

test('the cost of a record is measured', { skip: withoutBpf }, t => {
  withRing(8 << 20, (lab, ring) => {
    const target = new Uint8Array(1 << 18)
    for (const payload of [16, 256, 1024]) {
      lab.set('payload', payload)
      lab.set('no_wakeup', 1)
      let best = Number.POSITIVE_INFINITY
      for (let round = 0; round < 10; round++) {
        for (let i = 0; i < 6; i++) lab.emit(1000)
        const start = process.hrtime.bigint()
        let used = 0
        for (let got = 1; got > 0; used += got) got = lab.native.ringDrain(ring, target)
        best = Math.min(best, Number(process.hrtime.bigint() - start) / 6000)
        assert.equal(used, 6000 * (8 + payload))
      }
      t.diagnostic(`${payload} byte records: ${best.toFixed(1)} ns each`)
    }
  })
})
