// owns: ports, load
// The live page over a real agent that looks at a real shop under load, in a real browser.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { AgentProcess } from '../helpers/agent-process.ts'
import { assertAccessible, assertNoOverflow, LiveBrowser, screenshots } from '../helpers/browser.ts'
import { withoutChromium } from '../helpers/host-needs.ts'
import { everythingOf, type LiveShop, startLiveShop } from '../helpers/live-shop.ts'
import { freePort, until } from '../helpers/program.ts'
import { withoutPostgres } from '../helpers/servers/postgres.ts'
import { withoutRedis } from '../helpers/servers/redis.ts'

const skip = withoutChromium || withoutPostgres || withoutRedis
const directory = mkdtempSync(join(tmpdir(), 'svc-e2e-ui-'))
/** Generous: two cores draw, trace and serve at once. */
const patienceMs = 60_000
const traceId = '0af7651916cd43dd8448eb211c80319c'

let shop: LiveShop
let agent: AgentProcess
let browser: LiveBrowser

before(async () => {
  if (skip) return
  shop = await startLiveShop(10)
  agent = await AgentProcess.start({
    ports: shop.ports,
    config: await everythingOf(shop, directory),
  })
  browser = await LiveBrowser.start()
})
after(async () => {
  await browser?.close()
  await agent?.stop()
  await shop?.close()
  rmSync(directory, { recursive: true, force: true })
})

const url = (path: string) => `http://127.0.0.1:${agent.port}/ui/${path}`

/** Waits until a page says something that can be seen. */
async function says(page: Page, text: string | RegExp, where = 'main'): Promise<void> {
  await page.locator(where).getByText(text).filter({ visible: true }).first().waitFor({ timeout: patienceMs })
}

/** What each page shows of the load. */
const shown: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  overview: async page => {
    await says(page, 'nginx')
    await says(page, /CPU/)
    await page.locator('canvas').first().waitFor({ timeout: patienceMs })
  },
  map: async page => {
    await says(page, 'nginx')
    await says(page, /redis/)
    await says(page, /postgres/)
  },
  traces: async page => {
    await says(page, /GET/)
    await page.locator('canvas').first().waitFor({ timeout: patienceMs })
  },
  metrics: page => says(page, 'node_load1'),
  logs: page => says(page, /took item/),
  profiles: async page => {
    await page.locator('canvas').first().waitFor({ timeout: patienceMs })
    await says(page, /price/)
  },
  pipeline: page => says(page, /traces/),
  agent: async page => {
    await says(page, 'self_telemetry.ui.window')
    await says(page, 'request metrics')
  },
  'service?name=nginx': page => says(page, /GET/),
}

for (const [path, check] of Object.entries(shown))
  test(`${path} shows the load: light, dark, narrow, enlarged twice, and by keys`, { skip }, async () => {
    const { page, faults } = await browser.open(url(path))
    const picture = (kind: string) =>
      page.screenshot({ path: join(screenshots, `${path.split('?')[0]}-${kind}.png`) })
    try {
      await check(page)
      await assertAccessible(page, path)
      await picture('light')
      await page.emulateMedia({ colorScheme: 'dark' })
      await assertAccessible(page, `${path} in the dark`)
      await picture('dark')
      await page.emulateMedia({ colorScheme: 'light' })
      await assertReachable(page, path)
      for (const width of [640, 320]) {
        await page.setViewportSize({ width, height: 700 })
        await check(page)
        await picture(`${width}`)
        await assertNoOverflow(page, `${path} at ${width}`)
      }
      assert.deepEqual(faults, [])
    } finally {
      await page.context().close()
    }
  })

/** Tab goes from one thing to the next, and the one that has the focus shows it. */
async function assertReachable(page: Page, where: string): Promise<void> {
  // Moving parts hold still, so that an element stays what it is.
  await page.getByRole('button', { name: 'Pause updates' }).click()
  await page.evaluate('document.activeElement.blur()')
  const seen = new Set<string>()
  for (let i = 0; i < 25; i++) {
    await page.keyboard.press('Tab')
    const focused = await page.evaluate<{ what: string; isSeen: boolean }>(`(() => {
      const element = document.activeElement
      const style = getComputedStyle(element)
      const { width, height } = element.getBoundingClientRect()
      return {
        what: element.outerHTML.slice(0, 200),
        isSeen: element === document.body || (width > 0 && height > 0 && style.outlineStyle !== 'none'),
      }
    })()`)
    assert.ok(focused.isSeen, `${where}: ${focused.what}`)
    seen.add(focused.what)
  }
  assert.ok(seen.size > 15, `${where}: the focus is caught among ${seen.size}`)
  await page.getByRole('button', { name: 'Resume updates' }).click()
}

test('a picture that was a table is a picture again', { skip }, async () => {
  const { page, faults } = await browser.open(url('overview'))
  const figure = page.getByRole('figure', { name: 'CPU' })
  await figure.locator('canvas').waitFor({ timeout: patienceMs })
  await figure.getByRole('button', { name: 'Show as table' }).click()
  await figure.locator('table').waitFor()
  await figure.getByRole('button', { name: 'Show as graphic' }).click()
  await figure.locator('canvas').waitFor()
  assert.deepEqual(faults, [])
  await page.context().close()
})

test('the link to the content leads there, and the chosen window goes along with links', {
  skip,
}, async () => {
  const { page } = await browser.open(url('overview?w=900'))
  await says(page, 'nginx')
  await page.getByRole('link', { name: 'Skip to content' }).focus()
  await page.keyboard.press('Enter')
  await page.locator('#main:focus').waitFor({ timeout: patienceMs })
  await page.locator('main').getByRole('link', { name: 'nginx', exact: true }).first().click()
  await page.waitForURL(/\/ui\/service\?.*w=900/)
  await page.context().close()
})

test('the search opens by a key, finds a service, and leads there', { skip }, async () => {
  const { page, faults } = await browser.open(url('overview'))
  await says(page, 'nginx')
  // At once, as those do who know the key: no letter goes elsewhere.
  await page.keyboard.press('/')
  await page.keyboard.type('nginx')
  await page.getByRole('dialog').getByText('service', { exact: true }).first().waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/ui\/service\?name=nginx/)
  await page.goBack()
  await page.waitForURL(/\/ui\/overview/)
  assert.deepEqual(faults, [])
  await page.context().close()
})

test('personal data is not shown, and what a trace says leads to its logs', { skip }, async () => {
  const { page } = await browser.open(url('logs'))
  await says(page, /for \[REDACTED\] took item/)
  assert.equal(await page.locator('main').getByText('jane@example.com').count(), 0)
  await page.goto(url('traces?service=nginx'))
  // The newest may have come in part, and calls of requests that overlapped have no parent: these have all six spans.
  const whole = page.getByRole('cell', { name: '6', exact: true })
  const traces = page.locator('main table').getByRole('row').filter({ has: whole })
  await traces.getByRole('link', { name: /GET/ }).first().click({ timeout: patienceMs })
  await page.waitForURL(/trace=[0-9a-f]{32}/)
  await says(page, /redis|postgresql|INCR|select/i)
  await assertAccessible(page, 'a waterfall')
  await page.screenshot({ path: join(screenshots, 'waterfall-light.png') })
  await page.context().close()
})

test('spans that come to a trace while somebody looks at it are shown', { skip }, async () => {
  const id = '6ba7b8109dad41d180b400c04fd430c8'
  const { page, faults } = await browser.open(url('traces'))
  await says(page, /GET/)
  await shop.ask('/cart', `00-${id}-00f067aa0ba902b7-01`)
  await until('the trace is there', patienceMs, async () => (await fetch(url(`api/trace?id=${id}`))).ok)
  await page.goto(url(`traces?trace=${id}`))
  await says(page, '/cart')
  await shop.ask('/items/23', `00-${id}-00f067aa0ba902b8-01`)
  await says(page, '/items/23')
  assert.deepEqual(faults, [])
  await page.context().close()
})

test('what is not there says why, and what to do', { skip }, async () => {
  const { page } = await browser.open(url(`traces?trace=${traceId}`))
  await says(page, /Trace not in the window/)
  await page.goto(url('service?name=nobody'))
  await says(page, /svc explain nobody/)
  await assertAccessible(page, 'a service that is not there')
  await page.context().close()
})

test('a page without its token asks for one', { skip }, async () => {
  const guarded = await AgentProcess.start({
    ports: [],
    config: { self_telemetry: { auth: { enabled: true, bearer_token: 'the-token-of-the-page' } } },
  })
  try {
    const { page } = await browser.open(`http://127.0.0.1:${guarded.port}/ui/agent`)
    await page.getByLabel('Token').fill('wrong')
    await page.getByRole('button', { name: 'Use token' }).click()
    await says(page, /Token rejected/)
    await page.getByLabel('Token').fill('the-token-of-the-page')
    await page.getByRole('button', { name: 'Use token' }).click()
    await says(page, 'self_telemetry.ui.window')
    assert.doesNotMatch(await page.content(), /the-token-of-the-page/)
    await assertAccessible(page, 'the agent behind a token')
    await page.context().close()
  } finally {
    await guarded.stop()
  }
})

test('pages say that the agent has gone, and come back with it by themselves', { skip }, async () => {
  const listen = `127.0.0.1:${await freePort()}`
  const start = () => AgentProcess.spawn({ ports: [], config: { self_telemetry: { listen } } })
  const first = await start()
  await until('it serves', patienceMs, () =>
    fetch(`http://${listen}/ready`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  const [{ page: agentPage }, { page: mapPage }] = [
    await browser.open(`http://${listen}/ui/agent`),
    await browser.open(`http://${listen}/ui/map`),
  ]
  await says(agentPage, String(first.pid))
  await says(mapPage, 'No traffic yet')
  await first.stop()
  await says(mapPage, /does not answer/)
  await says(agentPage, /svc does not answer/, 'header')
  await agentPage.getByRole('button', { name: 'Refresh' }).click()
  await says(agentPage, /showing the last data received/)
  const second = await start()
  try {
    await says(agentPage, String(second.pid))
    await mapPage
      .getByText(/does not answer/)
      .first()
      .waitFor({ state: 'hidden', timeout: patienceMs })
  } finally {
    await agentPage.context().close()
    await mapPage.context().close()
    await second.stop()
  }
})

test('rules are tried on what comes by, what is wrong in them is marked, and nothing is saved', {
  skip,
}, async () => {
  const { page, faults } = await browser.open(url('pipeline'))
  await page.getByText('Try rules').click()
  await page.waitForURL(/try=traces/)
  const rules = page.getByLabel('Rules: YAML')
  await rules.fill('transform:\n  enabled: true\n  rule: []\n')
  await rules.press('Control+Enter')
  await says(page, /^Line 3, column 3:/)
  await says(page, /did you mean "rules"\?/)
  await assertAccessible(page, 'rules that are wrong')
  await page.getByRole('button', { name: 'Drop health checks' }).click()
  const text = (await rules.inputValue()).replace('/health|ready|live/', '/cart/')
  await rules.fill(text)
  await page.getByRole('button', { name: 'Run trial' }).click()
  await says(page, /^\d+ items:/)
  const table = page.getByRole('table', { name: 'Items and their outcomes' })
  await table
    .getByRole('button', { name: /^Show OTLP/ })
    .first()
    .click()
  await says(page, 'OTLP before')
  await says(page, 'svc validate')
  await assertAccessible(page, 'rules that were tried')
  await page.setViewportSize({ width: 320, height: 700 })
  await assertNoOverflow(page, 'rules that were tried')
  assert.deepEqual(faults, [])
  await page.context().close()
})
