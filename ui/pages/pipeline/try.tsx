// A trial of rules on live items. Nothing is saved.

import { signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { TryDocument } from '../../../src/view/api/ui/documents.ts'
import { announce } from '../../lib/announce.ts'
import { ApiError, apiUrl, post } from '../../lib/api.ts'
import { exactTime } from '../../lib/format.ts'
import { parameter, setParameters } from '../../lib/route.ts'
import { Command } from '../../parts/command.tsx'
import { Copy } from '../../parts/copy.tsx'
import { Choice, Pill } from '../../parts/small.tsx'
import { Table } from '../../parts/table.tsx'
import { asFile, examples, partsOfLine } from './rule-texts.ts'
import './try.css'

type Item = TryDocument['items'][number]
type Change = Item['changes'][number]

const signals = [
  ['traces', 'Traces'],
  ['metrics', 'Metrics'],
  ['logs', 'Logs'],
  ['profiles', 'Profiles'],
] as const
type Signal = (typeof signals)[number][0]

const mostItems = 20
/** Rare items need repeated requests: metrics and profiles arrive every 10 to 60 s. */
const mostTries = 25

/** Kept when the user visits other pages. */
const rules = signal(examples[0]!.rules)

interface Result {
  readonly document: TryDocument
  /** The rules of this trial; the text may have changed since. */
  readonly rules: string
}

export function Try() {
  const isOpen = parameter('try') !== ''
  return (
    <details
      class="card try"
      open={isOpen}
      onToggle={event => {
        const { open } = event.currentTarget
        if (open !== isOpen) setParameters({ try: open ? signalOf() : '' })
      }}
    >
      <summary>Try rules</summary>
      {isOpen ? <Trial /> : null}
    </details>
  )
}

function signalOf(): Signal {
  const wanted = parameter('try') || parameter('signal')
  return signals.find(([value]) => value === wanted)?.[0] ?? 'traces'
}

function Trial() {
  const chosen = signalOf()
  const result = useSignal<Result | undefined>(undefined)
  const error = useSignal('')
  const waiting = useSignal('')
  const running = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => running.current?.abort(), [])

  const stop = () => {
    running.current?.abort()
    running.current = undefined
    waiting.value = ''
  }
  const start = async () => {
    stop()
    const controller = new AbortController()
    running.current = controller
    const tried = rules.value
    error.value = ''
    waiting.value = `Waiting for ${chosen} …`
    try {
      const document = await untilItems(chosen, tried, controller.signal, off => {
        waiting.value = `Still waiting for ${chosen}: ${off}`
      })
      if (controller.signal.aborted) return
      result.value = { document, rules: tried }
      announce(summaryOf(document))
    } catch (failure) {
      if (controller.signal.aborted) return
      const { message } = failure as Error
      error.value =
        failure instanceof ApiError ? message : 'The agent does not answer; it may have stopped or restarted'
    }
    stop()
  }

  return (
    <div class="stack">
      <p class="note">
        Shows the effect of these rules on items that arrive now, after the running processors. Personal data
        is replaced, as everywhere on this page. Nothing is saved, sent or changed.
      </p>
      <div class="row">
        <Choice
          label="Signal to try"
          values={signals}
          value={chosen}
          onChoose={each => {
            stop()
            result.value = undefined
            setParameters({ try: each })
          }}
        />
      </div>
      <div class="row">
        <span class="soft">Examples:</span>
        {examples.map(({ name, rules: text }) => (
          <button
            key={name}
            type="button"
            class="quiet"
            onClick={() => {
              rules.value = text
            }}
          >
            {name}
          </button>
        ))}
      </div>
      <label class="stack" for="try-rules">
        Rules: YAML as below pipeline
      </label>
      <textarea
        id="try-rules"
        spellcheck={false}
        autocomplete="off"
        maxLength={60_000}
        aria-describedby="try-help"
        aria-invalid={(result.value?.document.problems.length ?? 0) > 0}
        value={rules.value}
        onInput={event => {
          rules.value = event.currentTarget.value
        }}
        onKeyDown={event => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
            event.preventDefault()
            void start()
          }
        }}
      />
      <p id="try-help" class="note">
        Keys: limits, transform, pii_redaction. Ctrl-Enter runs the trial. Variables and files are not
        expanded.
      </p>
      <div class="row">
        <button type="button" onClick={() => void start()} disabled={waiting.value !== ''}>
          Run trial
        </button>
        {waiting.value === '' ? null : (
          <button type="button" onClick={stop}>
            Stop trial
          </button>
        )}
        <span role="status">{waiting.value}</span>
      </div>
      {error.value === '' ? null : (
        <p class="notice" role="alert">
          {error.value}
        </p>
      )}
      {result.value === undefined ? null : <Outcome {...result.value} />}
    </div>
  )
}

/** Rare items need several requests of 3 s each; another trial may also be in progress. */
async function untilItems(
  of: Signal,
  text: string,
  aborted: AbortSignal,
  onNone: (off: string) => void,
): Promise<TryDocument> {
  const body = { signal: of, rules: text, items: mostItems }
  for (let tries = 1; ; tries++) {
    const isLast = tries === mostTries || aborted.aborted
    try {
      const document = await post<TryDocument>(apiUrl('try'), body, aborted)
      const { problems, items, skipped, waited_ms } = document
      const isLate = problems.length === 0 && items.length === 0 && skipped === 0 && waited_ms > 0
      if (!isLate || isLast) return document
      onNone(document.no_data_reason)
    } catch (error) {
      if (isLast || !(error instanceof ApiError) || error.status !== 409) throw error
      await new Promise(resolve => setTimeout(resolve, 500))
    }
  }
}

function summaryOf({ problems, items, no_data_reason: off }: TryDocument): string {
  if (problems.length > 0) return `${problems.length} ${problems.length === 1 ? 'problem' : 'problems'}`
  if (items.length === 0) return off
  const of = (outcome: Item['outcome']) => items.filter(each => each.outcome === outcome).length
  return `${items.length} items: ${of('dropped')} dropped, ${of('changed')} changed, ${of('same')} unchanged.`
}

function Outcome({ document, rules: tried }: Result) {
  const { problems, items, notes, skipped, no_data_reason: off } = document
  const stale = tried !== rules.value
  return (
    <section class="stack" aria-label="Result of the trial">
      {stale ? <p class="notice">The rules have changed since this trial.</p> : null}
      {problems.length > 0 ? (
        <Problems {...{ problems, tried }} />
      ) : (
        <>
          <p>{summaryOf(document)}</p>
          {skipped > 0 && off === '' ? <p class="note">{skipped} more were too large to try.</p> : null}
          <ul class="note">
            {notes.map(note => (
              <li key={note}>{note}</li>
            ))}
          </ul>
          {items.length === 0 ? null : <Items items={items} />}
          <p>
            To apply these rules, add this to the configuration file, and check it with{' '}
            <Command text="svc validate" />
          </p>
          <div>
            <Copy text={asFile(tried)} what="the rules" />
            <pre>{asFile(tried)}</pre>
          </div>
        </>
      )}
    </section>
  )
}

function Problems({ problems, tried }: Pick<TryDocument, 'problems'> & { readonly tried: string }) {
  return (
    <div role="alert">
      <ol class="stack">
        {problems.map(problem => {
          const { line, column, key, message } = problem
          const parts = partsOfLine(tried, problem)
          return (
            <li key={`${line} ${column} ${message}`}>
              {line === 0 ? '' : `Line ${line}, column ${column}: `}
              <b>{key === '' ? '' : `${key}: `}</b>
              {message}
              {parts === undefined ? null : (
                <pre class="wrong">
                  {parts[0]}
                  <mark>{parts[1]}</mark>
                  {parts[2]}
                </pre>
              )}
            </li>
          )
        })}
      </ol>
    </div>
  )
}

const levels = { same: 'off', changed: 'note', dropped: 'bad' } as const
/** Items that the rules affect come first. */
const outcomes: readonly Item['outcome'][] = ['dropped', 'changed', 'same']

function Items({ items }: { readonly items: readonly Item[] }) {
  const chosen = useSignal(-1)
  const rows = items
    .map((item, i) => ({ ...item, i }))
    .sort((a, b) => outcomes.indexOf(a.outcome) - outcomes.indexOf(b.outcome))
  const shown = items[chosen.value]
  return (
    <>
      <Table
        caption="Items and their outcomes"
        rows={rows}
        rowKey={({ i }) => i}
        mark={({ i }) => (i === chosen.value ? 'chosen' : '')}
        columns={[
          { name: 'Time', value: ({ time_ms }) => time_ms, cell: ({ time_ms }) => exactTime(time_ms) },
          { name: 'Service', value: ({ service }) => service, cell: ({ service }) => <bdi>{service}</bdi> },
          { name: 'Item', value: ({ title }) => title, cell: ({ title }) => <bdi>{title}</bdi> },
          {
            name: 'Outcome',
            value: ({ outcome }) => outcome,
            cell: ({ outcome }) => (
              <Pill level={levels[outcome]} text={outcome === 'same' ? 'unchanged' : outcome} />
            ),
          },
          { name: 'Changes', cell: item => <Changes {...item} /> },
          {
            name: 'OTLP',
            cell: ({ i, title }) => (
              <button
                type="button"
                class="quiet"
                aria-pressed={i === chosen.value}
                onClick={() => {
                  chosen.value = i === chosen.value ? -1 : i
                }}
              >
                Show OTLP<span class="unseen"> of {title}</span>
              </button>
            ),
          },
        ]}
      />
      {shown === undefined ? null : (
        <div class="grid">
          <Otlp what="before" value={shown.before} />
          <Otlp what="after" value={shown.after} />
        </div>
      )}
    </>
  )
}

function Otlp({ what, value }: { readonly what: string; readonly value: unknown }) {
  return (
    <div>
      <h3>OTLP {what}</h3>
      {value === null ? (
        <p class="note">Dropped.</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll it
        <pre class="otlp" tabIndex={0}>
          {JSON.stringify(value, null, 1)}
        </pre>
      )}
    </div>
  )
}

function Changes({ reason, changes, more_changes }: Item) {
  return (
    <>
      {reason}
      {changes.map((change, i) => (
        <ChangeLines key={i} {...change} />
      ))}
      {more_changes > 0 ? <span class="note">{more_changes} more</span> : null}
    </>
  )
}

function ChangeLines({ of, field, before, after }: Change) {
  const name = [of, field].filter(each => each !== '').join(' ')
  return (
    <>
      {before === null ? null : (
        <code class="change gone">
          − <span class="unseen">before: </span>
          {name}: {before}
        </code>
      )}
      {after === null ? null : (
        <code class="change come">
          + <span class="unseen">after: </span>
          {name}: {after}
        </code>
      )}
    </>
  )
}
