// The frame of the page: menu, top bar, status line, and the page between them.

import 'uplot/dist/uPlot.min.css'
import './palette.css'
import './theme.css'
import { signal } from '@preact/signals'
import { type ComponentType, render } from 'preact'
import { useEffect } from 'preact/hooks'
import { announcement } from './lib/announce.ts'
import { denied, enter } from './lib/api.ts'
import { bytes, percent, whole } from './lib/format.ts'
import { defaultSeconds, overview, overviewError, useOverview, windowSeconds } from './lib/host.ts'
import { paused } from './lib/live.ts'
import { followLinks, hrefOf, page, setParameters } from './lib/route.ts'
import { type Theme, theme } from './lib/theme.ts'
import { type PageEntry, pages } from './pages/index.ts'
import { Admission } from './parts/admission.tsx'
import { Search, searching } from './parts/search.tsx'
import { Choice, Pill } from './parts/small.tsx'
import { Failed, Loading } from './parts/state.tsx'

interface Loaded {
  readonly id: string
  readonly View: ComponentType
}

const loaded = signal<Loaded | undefined>(undefined)
const fault = signal('')

function entryOf(id: string): PageEntry {
  return pages.find(each => each.id === id) ?? pages[0]!
}

async function open(entry: PageEntry): Promise<void> {
  fault.value = ''
  document.title = `${entry.title} · svc`
  try {
    const { default: View } = await entry.load()
    if (entryOf(page.peek()) === entry) loaded.value = { id: entry.id, View }
  } catch {
    fault.value = 'A part of it failed to load, perhaps because svc was updated; refresh the page.'
  }
}

function App() {
  const entry = entryOf(page.value)
  useOverview()
  useEffect(() => {
    void open(entry)
  }, [entry])
  const { value } = loaded
  const shown = value?.id === entry.id ? value : undefined
  useEffect(() => {
    // Moves screen readers to the new page.
    if (shown !== undefined && document.activeElement === document.body)
      document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true })
  }, [shown])
  return (
    <>
      <a class="unseen" href="#main">
        Skip to content
      </a>
      <div class="shell">
        <Rail current={entry} />
        <Top />
        <main class="main" id="main" tabIndex={-1}>
          <Admission />
          {fault.value !== '' ? (
            <Failed what="the page" error={fault.value} isRetried={false} />
          ) : shown === undefined ? (
            <Loading what="the page" />
          ) : (
            <shown.View />
          )}
        </main>
        <Foot />
      </div>
      <Search />
      <div class="unseen" aria-live="polite">
        {announcement.value}
      </div>
    </>
  )
}

function Rail({ current }: { readonly current: PageEntry }) {
  return (
    <nav class="rail" aria-label="Pages">
      <strong>svc</strong>
      <ul>
        {pages
          .filter(({ listed }) => listed)
          .map(({ id, title, subtitle }) => (
            <li key={id}>
              <a href={hrefOf(id)} title={subtitle} {...(id === current.id && { 'aria-current': 'page' })}>
                {title}
              </a>
            </li>
          ))}
      </ul>
    </nav>
  )
}

const windows = [
  ['60', '1 min'],
  ['300', '5 min'],
  ['900', '15 min'],
] as const

const themes: Readonly<Record<Theme, readonly [next: Theme, text: string]>> = {
  system: ['dark', 'Theme: auto'],
  dark: ['light', 'Theme: dark'],
  light: ['system', 'Theme: light'],
}

function Top() {
  const host = overview.value?.start.host
  const [next, text] = themes[theme.value]
  return (
    <header class="top">
      <b>{host?.name ?? '…'}</b>
      <span class="soft system" title={host?.system}>
        {host === undefined ? '' : `${host.mode} · ${host.system}`}
      </span>
      {overviewError.value === '' ? null : (
        <span role="status">
          <Pill level="bad" text={denied.value === '' ? 'svc does not answer' : 'no access'} />
        </span>
      )}
      <Choice
        label="Time window"
        values={windows}
        value={String(windowSeconds.value) as '60'}
        onChoose={value => setParameters({ w: value === String(defaultSeconds) ? '' : value })}
      />
      <button
        type="button"
        onClick={() => {
          searching.value = true
        }}
      >
        Search <kbd>/</kbd>
      </button>
      <button
        type="button"
        onClick={() => {
          paused.value = !paused.value
        }}
      >
        {paused.value ? 'Resume updates' : 'Pause updates'}
      </button>
      <button
        type="button"
        onClick={() => {
          theme.value = next
        }}
      >
        {text}
      </button>
    </header>
  )
}

function Foot() {
  const now = overview.value
  const agent = now?.tick?.agent
  const host = now?.start.host
  return (
    <footer class="foot">
      <span>svc {host?.version}</span>
      <span>{agent === undefined ? '' : `CPU ${percent(agent.cpu_percent)} of a core`}</span>
      <span>{agent === undefined ? '' : `memory ${bytes(agent.rss_bytes)}`}</span>
      <span class={agent && agent.dropped > 0 ? 'bad-text' : ''}>
        {agent === undefined ? '' : `${whole(agent.dropped)} items lost`}
      </span>
      <span>
        {agent === undefined
          ? ''
          : `data window ${bytes(agent.window_bytes)} of ${bytes(agent.window_max_bytes)}`}
      </span>
      {host?.redacted ? <span>personal data redacted</span> : null}
    </footer>
  )
}

enter()
// Opening a link with a key in a tab that already shows the page changes only the fragment.
addEventListener('hashchange', enter)
followLinks()
render(<App />, document.getElementById('app')!)
