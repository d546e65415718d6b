// The live page in a browser, as people and as those who hear it meet it.

import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { chromium as program } from './host-needs.ts'

const root = join(import.meta.dirname, '..', '..')
const axe = join(root, 'node_modules', 'axe-core', 'axe.min.js')
/** Kept after the tests, for those who want to see what they saw. */
export const screenshots = join(root, 'build', 'screenshots')

export interface View {
  readonly theme?: 'light' | 'dark'
  readonly width?: number
  readonly height?: number
  /** Of every request. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A page with what went wrong in it. */
export interface Looked {
  readonly page: Page
  /** Errors of its scripts, what its policy refused, requests that failed or went elsewhere. */
  readonly faults: string[]
}

export class LiveBrowser {
  readonly #browser: Browser

  private constructor(browser: Browser) {
    this.#browser = browser
  }

  static async start(): Promise<LiveBrowser> {
    mkdirSync(screenshots, { recursive: true })
    // Root has no sandbox to offer.
    const args = [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--disable-background-networking',
    ]
    return new LiveBrowser(await chromium.launch({ executablePath: program, args }))
  }

  /** Opens a tab of its own. */
  async open(
    url: string,
    { theme = 'light', width = 1280, height = 900, headers = {} }: View = {},
  ): Promise<Looked> {
    const context: BrowserContext = await this.#browser.newContext({
      colorScheme: theme,
      viewport: { width, height },
      reducedMotion: 'reduce',
      extraHTTPHeaders: headers,
    })
    const page = await context.newPage()
    const faults: string[] = []
    const { origin } = new URL(url)
    page.on('pageerror', error => faults.push(`error: ${error.message}`))
    page.on('console', message => {
      if (message.type() === 'error') faults.push(`console: ${message.text()}`)
    })
    page.on('request', request => {
      if (new URL(request.url()).origin !== origin && !request.url().startsWith('data:'))
        faults.push(`outside: ${request.url()}`)
    })
    page.on('response', response => {
      if (response.status() >= 400) faults.push(`${response.status()}: ${response.url()}`)
    })
    await page.goto(url)
    return { page, faults }
  }

  async close(): Promise<void> {
    await this.#browser.close()
  }
}

/** No rule of WCAG 2.2 AA, as far as axe can tell, is violated. */
export async function assertAccessible(page: Page, where: string): Promise<void> {
  // Its policy lets no script in; a debugger may.
  await page.evaluate(readFileSync(axe, 'utf8'))
  const violations = await page.evaluate(async () => {
    const { run } = (globalThis as unknown as { axe: { run(options: object): Promise<AxeResults> } }).axe
    const found = await run({ preload: false })
    return found.violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes[0]?.html}`)
  })
  assert.deepEqual(violations, [], where)
}

interface AxeResults {
  readonly violations: readonly {
    readonly id: string
    readonly help: string
    readonly nodes: readonly { readonly html: string }[]
  }[]
}

/** What is wider than the window scrolls by itself, and not the page with it. */
export async function assertNoOverflow(page: Page, where: string): Promise<void> {
  const { scrollWidth, clientWidth } = await page.evaluate<{ scrollWidth: number; clientWidth: number }>(
    '(({ scrollWidth, clientWidth }) => ({ scrollWidth, clientWidth }))(document.documentElement)',
  )
  const over = scrollWidth - clientWidth
  assert.ok(over <= 0, `${where}: ${over} px wider than the window`)
}
