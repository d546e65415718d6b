import type { Value } from '../../../foundation/schema/value.ts'

/** A given setting. */
export interface Given {
  /** The variable, or the path in the file. */
  readonly origin: string
  readonly value: Value
  /** `${VAR}` in it is a reference to a variable. */
  readonly refers: boolean
}

/** By path in the YAML. Settings from the exporter's own variables are listed by svc's key. */
export type AllGiven = ReadonlyMap<string, Given>

/** The text of a scalar, '' for anything else. */
export function textOf(value: Value | undefined): string {
  return value?.type === 'scalar' ? value.text.trim() : ''
}

/** Items of a list, or of a comma-separated text. */
export function textsOf(value: Value | undefined): string[] {
  const texts = value?.type === 'list' ? value.items.map(textOf) : textOf(value).split(',')
  return texts.map(text => text.trim()).filter(text => text !== '')
}
