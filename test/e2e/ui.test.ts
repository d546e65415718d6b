// The live page over a real agent that looks at a real shop under load, in a real browser.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { AgentProcess } from '../helpers/agent-process.ts'
import { assertAccessible, assertFits, LiveBrowser, screenshots } from '../helpers/browser.ts'
import { withoutChromium } from '../helpers/host-needs.ts'
import { type LiveShop, startLiveShop } from '../helpers/live-shop.ts'
import { freePort } from '../helpers/program.ts'
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
  shop = await startLiveShop(20)
  agent = await AgentProcess.start({
    config: {
      agent: {
        nodeexporter: { listen_address: `127.0.0.1:${await freePort()}` },
        profiling: { enabled: true },
        logs: {
          enabled: true,
          container_logs: false,
          paths: [shop.log],
          position_file: join(directory, 'positions'),
        },
        discovery: { enabled: false },
      },
      pipeline: { export: { queue: { directory: join(directory, 'queue') } } },
    },
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

/** Waits until a page says something. */
async function says(page: Page, text: string | RegExp, where = 'main'): Promise<void> {
  await page.locator(where).getByText(text).first().waitFor({ timeout: patienceMs })
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
  agent: page => says(page, 'self_telemetry.ui.window'),
  'service?name=nginx': page => says(page, /GET/),
}

for (const theme of ['light', 'dark'] as const)
  for (const [path, check] of Object.entries(shown))
    test(`${path} shows the load, to eyes and to ears (${theme})`, { skip }, async () => {
      const { page, faults } = await browser.open(url(path), { theme })
      const name = path.split('?')[0]!
      try {
        await check(page)
        await assertAccessible(page, path)
        assert.deepEqual(faults, [])
      } finally {
        await page.screenshot({ path: join(screenshots, `${name}-${theme}.png`) })
        await page.context().close()
      }
    })

test('pages fit a window of 320 pixels, and one that is enlarged twice', { skip }, async () => {
  for (const [path, check] of Object.entries(shown))
    for (const width of [320, 640]) {
      const { page } = await browser.open(url(path), { width, height: 700 })
      await check(page)
      await page.screenshot({ path: join(screenshots, `${path.split('?')[0]}-${width}.png`) })
      await assertFits(page, `${path} at ${width}`)
      await page.context().close()
    }
})

test('all can be reached by keys, and where the focus is can be seen', { skip }, async () => {
  for (const path of Object.keys(shown)) {
    const { page } = await browser.open(url(path))
    await shown[path]!(page)
    // Moving parts hold still, so that an element stays what it is.
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.locator('body').press('Home')
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
      assert.ok(focused.isSeen, `${path}: ${focused.what}`)
      seen.add(focused.what)
    }
    assert.ok(seen.size > 15, `${path}: the focus is caught among ${seen.size}`)
    await page.context().close()
  }
})

test('the search opens by a key, finds a service, and leads there', { skip }, async () => {
  const { page, faults } = await browser.open(url('overview'))
  await says(page, 'nginx')
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
  await page.goto(url('traces'))
  await says(page, /GET/)
  await page.locator('main table a, main li a').first().click()
  await page.waitForURL(/trace=[0-9a-f]{32}/)
  await says(page, /redis|postgresql|INCR|select/i)
  await assertAccessible(page, 'a waterfall')
  await page.screenshot({ path: join(screenshots, 'waterfall-light.png') })
  await page.context().close()
})

test('what is not there says why, and what to do', { skip }, async () => {
  const { page } = await browser.open(url(`traces?trace=${traceId}`))
  await says(page, /window|kept|no such/i)
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
    await page.getByRole('button', { name: 'Use it' }).click()
    await page.getByLabel('Token').fill('the-token-of-the-page')
    await page.getByRole('button', { name: 'Use it' }).click()
    await says(page, 'self_telemetry.ui.window')
    assert.doesNotMatch(await page.content(), /the-token-of-the-page/)
    await assertAccessible(page, 'the agent behind a token')
    await page.context().close()
  } finally {
    await guarded.stop()
  }
})
