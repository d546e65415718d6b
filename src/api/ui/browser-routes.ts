// How a browser gets to its cookie: the link for a person, and the exchange of the link's key.

import { failure, json } from '../answer.ts'
import { authorityOf } from '../guard.ts'
import type { ApiRequest, Operation } from '../operation.ts'
import { RateLimit } from '../rate-limit.ts'
import { named, object, oneOf, text } from '../schema.ts'
import { errorDocument } from '../schemas.ts'
import type { Browsers } from '../types.ts'

const linkDocument = named(
  'PageLink',
  object('How to open the page.', {
    url: text('A link for a browser. Whoever has it sees what the page shows, until the agent ends.'),
  }),
)

const sessionBody = named('SessionBody', object('The key of a link.', { key: text('Behind `#key=`.') }))

const sessionDocument = named(
  'Session',
  object('The browser is let in, by the cookie that comes along.', { status: oneOf('`ok`.', ['ok']) }),
)

/** Attempts of one client in a second. */
const mostAttempts = 10

export function browserOperations({ key, tls, link }: Browsers): Operation[] {
  const attempts = new RateLimit(mostAttempts)
  const described = (
    description: string,
    schema: typeof linkDocument | typeof errorDocument | typeof sessionDocument,
  ) => ({ description, content: { 'application/json': schema } }) as const
  return [
    {
      method: 'GET',
      path: '/admin/ui',
      id: 'getPageLink',
      tag: 'admin',
      summary: 'A link that opens the live page in a browser.',
      access: 'private',
      outcomes: { 200: described('The link.', linkDocument) },
      handle: () => json(200, { url: link() }),
    },
    {
      method: 'POST',
      path: '/ui/session',
      id: 'openSession',
      tag: 'ui',
      summary: 'Exchanges the key of a link for a cookie.',
      access: 'open',
      body: sessionBody,
      outcomes: {
        200: described('Done.', sessionDocument),
        401: described('The key is none.', errorDocument),
      },
      handle: ({ body, headers, url, client }: ApiRequest) => {
        const wait = attempts.take(client)
        if (wait > 0)
          return failure(429, 'cannot take more keys of one client now', {}, { 'Retry-After': String(wait) })
        const { key: given, ...others } = body ?? {}
        if (typeof given !== 'string' || Object.keys(others).length > 0)
          return failure(400, 'cannot POST /ui/session: {"key": TEXT} is meant, and nothing else')
        if (!key.isKey(given))
          return failure(
            401,
            'the link is not of this run of svc: the agent was started anew; "sudo svc ui" prints a link that works',
            {},
            { 'WWW-Authenticate': 'Bearer' },
          )
        return json(
          200,
          { status: 'ok' },
          {
            'Set-Cookie': key.setCookie(authorityOf(url) ?? headers.host, tls),
          },
        )
      },
    },
  ]
}
