import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { withoutBpf } from '../../test/helpers/compile-bpf.ts'
import { firstMissing, hostPid, type Need, type NeedResult, needs } from './needs.ts'

const states = ['ok', 'limited', 'missing', 'unknown', 'note']

function checkResult({ state, detail, lose, mend }: NeedResult): void {
  assert.ok(states.includes(state), state)
  assert.notEqual(detail, '')
  assert.doesNotMatch(detail, /\n|undefined|\.$/)
  // What is missing costs something and can be mended.
  assert.equal(state === 'missing' || state === 'limited', lose !== undefined)
  if (lose !== undefined) assert.ok(lose !== '' && mend !== undefined && mend !== '')
}

test('every need answers with what it found', () => {
  for (const need of needs) checkResult(need.try())
})

test('an answer can be had again and again', () => {
  for (const need of needs) assert.deepEqual(need.try(), need.try())
})

test('this machine, on which the tests of the capture run, has all of them', { skip: withoutBpf }, () => {
  assert.deepEqual(
    needs.filter(need => need.try().state !== 'ok').map(({ name }) => name),
    [],
  )
  assert.equal(firstMissing(needs), undefined)
})

test('in a pid namespace of its own the agent loses the names of processes', { skip: withoutBpf }, () => {
  const script = `import { hostPid } from ${JSON.stringify(import.meta.resolve('./needs.ts'))}
    console.log(JSON.stringify(hostPid.try()))`
  const inside = ['--pid', '--fork', '--mount-proc', process.execPath, '--input-type=module', '-e', script]
  const result: NeedResult = JSON.parse(execFileSync('unshare', inside).toString())
  checkResult(result)
  assert.equal(result.state, 'limited')
  assert.match(result.mend!, /hostPID: true/)
  assert.equal(hostPid.try().state, 'ok')
})

test('without privilege it is said which capabilities are missing, and nothing else is blamed', {
  skip: withoutBpf,
}, () => {
  const script = `import { needs } from ${JSON.stringify(import.meta.resolve('./needs.ts'))}
    console.log(JSON.stringify(needs.map(need => ({ name: need.name, ...need.try() }))))`
  // Still root, who may read the files of this tree wherever it stands, yet without any capability.
  const without = ['--bounding-set', '-all', '--inh-caps', '-all', process.execPath, '--input-type=module']
  const results: (NeedResult & { name: string })[] = JSON.parse(
    execFileSync('setpriv', [...without, '-e', script]).toString(),
  )
  for (const result of results) checkResult(result)
  const missing = results.filter(({ state }) => state === 'missing')
  assert.deepEqual(
    missing.map(({ name, detail }) => [name, detail]),
    [['eBPF programs', 'not permitted: CAP_BPF and CAP_PERFMON missing']],
  )
  assert.match(missing[0]!.mend!, /^run as root, or with the capabilities BPF and PERFMON/)
})

test('the first that is missing is told; what is unknown, limited or a note is not missing', () => {
  const tried: string[] = []
  const need = (name: string, state: NeedResult['state']): Need => ({
    name,
    try: () => {
      tried.push(name)
      return { state, detail: name }
    },
  })
  const check = (wanted: Need[], want: string | undefined) => assert.equal(firstMissing(wanted)?.detail, want)
  check([], undefined)
  check([need('a', 'ok'), need('b', 'unknown'), need('c', 'limited'), need('d', 'note')], undefined)
  tried.length = 0
  check([need('a', 'ok'), need('b', 'missing'), need('c', 'missing')], 'b')
  assert.deepEqual(tried, ['a', 'b'])
})
