// Small components shared by all pages.

import type { ComponentChildren } from 'preact'
import { nameColour } from '../lib/colour.ts'
import { hrefOf } from '../lib/route.ts'

/** The head of a page: title, subtitle and controls. */
export function Head({
  title,
  subtitle,
  children,
}: {
  readonly title: ComponentChildren
  readonly subtitle: string
  readonly children?: ComponentChildren
}) {
  return (
    <header class="head">
      <div>
        <h1 tabIndex={-1}>{title}</h1>
        <p>{subtitle}</p>
      </div>
      <div class="tools">{children}</div>
    </header>
  )
}

export type Level = 'ok' | 'limited' | 'missing' | 'failed' | 'bad' | 'warn' | 'note' | 'off' | 'unknown'

const marks: Readonly<Record<Level, string>> = {
  ok: '✓',
  limited: '!',
  warn: '!',
  missing: '✕',
  failed: '✕',
  bad: '✕',
  note: 'i',
  off: '–',
  unknown: '?',
}

const words: Readonly<Partial<Record<Level, string>>> = { bad: 'critical', warn: 'warning' }

/** A state as symbol, word and colour: never colour alone. */
export function Pill({
  level,
  text = words[level] ?? level,
}: {
  readonly level: Level
  readonly text?: string
}) {
  return (
    <span class={`pill ${level}`}>
      <span aria-hidden="true">{marks[level]}</span> {text}
    </span>
  )
}

/** A service with its colour, linked to its page. */
export function ServiceLink({ name }: { readonly name: string }) {
  return (
    <a class="service" href={hrefOf('service', { name })} title={name}>
      <span class="swatch" style={{ background: nameColour(name) }} />
      <bdi>{name}</bdi>
    </a>
  )
}

/** A small line without axes. Its label gives the last value to screen readers. */
export function Spark({
  values,
  label,
  widthPx = 90,
}: {
  readonly values: readonly (number | null)[]
  readonly label: string
  readonly widthPx?: number
}) {
  const height = 20
  const most = Math.max(1e-9, ...values.map(value => value ?? 0))
  const step = values.length > 1 ? widthPx / (values.length - 1) : 0
  const points = values
    .map(
      (value, i) =>
        `${(i * step).toFixed(1)},${(height - 1 - ((value ?? 0) / most) * (height - 2)).toFixed(1)}`,
    )
    .join(' ')
  return (
    <svg class="spark" width={widthPx} height={height} role="img" aria-label={label}>
      <polyline points={points} />
    </svg>
  )
}

/** A field with its label. */
export function Field({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is what is given
    <label class="field">
      <span>{label}</span>
      {children}
    </label>
  )
}

/** A selection from several values, as toggle buttons. */
export function Choice<V extends string>({
  label,
  values,
  value,
  onChoose,
}: {
  readonly label: string
  readonly values: readonly (readonly [value: V, text: string])[]
  readonly value: V
  readonly onChoose: (value: V) => void
}) {
  return (
    <fieldset class="choice">
      <legend class="unseen">{label}</legend>
      {values.map(([each, text]) => (
        <button key={each} type="button" aria-pressed={each === value} onClick={() => onChoose(each)}>
          {text}
        </button>
      ))}
    </fieldset>
  )
}
