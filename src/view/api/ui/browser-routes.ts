// How a browser gets its cookie: the link for a user, and the exchange of the link's key.

import { failure, json } from '../answer.ts'
import { authorityOf } from '../guard.ts'
import type { ApiOperation, ApiRequest } from '../operation.ts'
import { RateLimit } from '../rate-limit.ts'
import { named, object, oneOf, text } from '../schema.ts'
import { errorDocument } from '../schemas.ts'
import type { Browsers } from '../types.ts'

const linkDocument = named(
  'PageLink',
  object('Link to the page.', {
    url: text('Link for a browser. It gives access to the page until the agent ends; keep it secret.'),
  }),
)

const sessionBody = named(
  'SessionBody',
  object('The key of a link.', { key: text('The value after `#key=`.') }),
)

const sessionDocument = named(
  'Session',
  object('The browser is signed in, by the cookie in this answer.', { status: oneOf('`ok`.', ['ok']) }),
)

/** Attempts per client and second. */
const mostAttempts = 10

export function browserOperations({ key, tls, link }: Browsers): ApiOperation[] {
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
      summary: 'Creates a link that opens the live page in a browser.',
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
        401: described('The key is not valid.', errorDocument),
      },
      handle: ({ body, headers, url, client }: ApiRequest) => {
        const wait = attempts.take(client)
        if (wait > 0)
          return failure(
            429,
            'too many keys tried by this client; try again later',
            {},
            { 'Retry-After': String(wait) },
          )
        const { key: given, ...others } = body ?? {}
        if (typeof given !== 'string' || Object.keys(others).length > 0)
          return failure(400, 'cannot POST /ui/session: the body must be {"key": TEXT}')
        if (!key.isKey(given))
          return failure(
            401,
            'this link has expired: the agent was restarted; run "sudo svc ui" for a new one',
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
