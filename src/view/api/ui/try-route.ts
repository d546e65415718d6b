// `POST /ui/api/try`: the only path below `/ui/api/` that accepts a body.

import { nearest } from '../../../foundation/lib/nearest.ts'
import { type Answer, failure, json } from '../answer.ts'
import type { ApiOperation, ApiRequest } from '../operation.ts'
import { errorDocument } from '../schemas.ts'
import { tryBody, tryDocument } from './agent-documents.ts'
import type { SignalName, TryQuery, UiSource } from './source.ts'

const path = '/ui/api/try'
const signals: readonly SignalName[] = ['traces', 'metrics', 'logs', 'profiles']
const keys = ['signal', 'rules', 'items'] as const
const mostItems = 50
const fallbackItems = 20

export function tryOperation(source: Pick<UiSource, 'tryRules'>): ApiOperation {
  return {
    method: 'POST',
    path,
    id: 'tryRules',
    tag: 'ui',
    summary: 'Tries processor rules on items that arrive within 3 s. Changes and exports nothing.',
    access: 'private',
    costly: true,
    body: tryBody,
    outcomes: {
      200: { description: 'The document.', content: { 'application/json': tryDocument } },
      409: {
        description: 'Another trial is in progress.',
        content: { 'application/json': errorDocument },
      },
    },
    handle: async request => {
      const query = queryOf(request)
      if ('status' in query) return query
      const trying = source.tryRules(query)
      if (trying === undefined)
        return failure(409, `cannot answer ${path}: another trial is in progress; try again in a few seconds`)
      return json(200, await trying)
    },
  }
}

function queryOf({ body = {}, signal: left }: ApiRequest): TryQuery | Answer {
  const wrong = (key: string, why: string) => failure(400, `cannot POST ${path}: ${why}`, { key })
  const unknown = Object.keys(body)
    .find(key => !keys.some(each => each === key))
    ?.slice(0, 64)
  if (unknown !== undefined) {
    const near = nearest(unknown, keys)
    const known = near ? `did you mean ${near}?` : `known keys: ${keys.join(', ')}`
    return wrong(unknown, `unknown key "${unknown}"; ${known}`)
  }
  const { signal, rules, items = fallbackItems } = body
  const found = signals.find(each => each === signal)
  if (found === undefined) return wrong('signal', `"signal" must be one of ${signals.join(', ')}`)
  if (typeof rules !== 'string') return wrong('rules', '"rules" must be a string: YAML as below pipeline:')
  if (typeof items !== 'number' || !Number.isInteger(items) || items < 1 || items > mostItems)
    return wrong('items', `"items" must be a whole number from 1 to ${mostItems}`)
  return { signal: found, rules, items, left }
}
