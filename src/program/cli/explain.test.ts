import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { svc } from '../../../test/helpers/svc.ts'
import { startUiAgent, type UiAgent } from '../../../test/helpers/ui-agent.ts'
import type { ExplainDocument } from '../../view/api/ui/documents.ts'

type Subject = ExplainDocument['subjects'][number]

const observed: Subject = {
  title: 'port 8080 → pid 4121 node /app/server.js · pod shop/cart-7d9f (container app)',
  pid: 4121,
  verdict: 'observed',
  cause: '',
  steps: [
    { topic: 'selected', state: 'ok', text: 'yes, default rule', hint: '' },
    { topic: 'tls', state: 'limited', text: 'no', hint: 'svc doctor tls' },
  ],
}
const missed: Subject = {
  ...observed,
  verdict: 'not_observed',
  cause: 'not_selected',
  steps: [
    {
      topic: 'selected',
      state: 'missing',
      text: 'discovery.instrument[0].open_ports is 80,443; this process listens on 8080',
      hint: 'add 8080',
    },
  ],
}
const asked: string[] = []
let answer: ExplainDocument
let agent: UiAgent

before(async () => {
  agent = await startUiAgent({
    explain: async target => {
      asked.push(target)
      return answer
    },
  })
})
after(() => agent?.close())

const explain = (...args: string[]) => svc(['explain', ...args, '--config', agent.config])

test('what is observed is told from the selection on, with exit code 0', async () => {
  answer = { target: '8080', subjects: [observed], hint: '' }
  const { code, out, talk } = await explain('8080')
  assert.deepEqual([code, talk, asked.at(-1)], [0, '', '8080'])
  assert.equal(
    out,
    `port 8080 -> pid 4121 node /app/server.js - pod shop/cart-7d9f (container app)
             observed
  selected   yes, default rule
  tls        limited: no
             Fix: svc doctor tls
`,
  )
})

test('what is not observed has its cause and its hint, and exit code 1', async () => {
  answer = { target: 'pid:4121', subjects: [observed, missed], hint: '' }
  const { code, out } = await explain('pid:4121')
  assert.equal(code, 1)
  assert.match(out, /\n\nport 8080 .*\n +not observed \(not_selected\)\n/)
  assert.match(out, / {2}selected +missing: discovery\.instrument\[0\].*\n +Fix: add 8080\n$/)
})

test('nothing found is told with what is near, and exit code 1', async () => {
  answer = { target: 'x', subjects: [], hint: 'No process is called so; there are node, nginx.\x1b[2J' }
  const { code, out } = await explain('cart & co')
  assert.deepEqual([code, asked.at(-1)], [1, 'cart & co'])
  assert.equal(out, 'Nothing found for x.\nNo process is called so; there are node, nginx.?[2J\n')
})

test('--json is the document, and without a target there is nothing to ask', async () => {
  answer = { target: '8080', subjects: [observed], hint: '' }
  const { code, out } = await explain('8080', '--json')
  assert.deepEqual([code, JSON.parse(out)], [0, answer])
  const none = await svc(['explain'])
  assert.equal(none.code, 2)
  assert.match(none.talk, /no target given; pass a port/)
})
