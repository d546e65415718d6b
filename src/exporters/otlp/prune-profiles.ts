import { decodeRequest } from './decode.ts'
import { profileEncoding } from './encode-profile.ts'
import { RequestBuilder } from './request.ts'

/**
 * A request of profiles without those entries of its dictionary that nothing in it refers to: what is left of a request
 * would else be as large as the whole was. It is one of this agent's own; where it holds what the model has no place for,
 * it stays as it is.
 */
export function pruneProfiles(body: Uint8Array): Uint8Array {
  const builder = new RequestBuilder(profileEncoding(), { keepBytes: 0 })
  try {
    const { changed, leftOut } = decodeRequest('profiles', body, (resource, scope, profile) =>
      builder.add(resource, scope, profile),
    )
    if (changed.size > 0 || leftOut.size > 0) return body
  } catch (error) {
    if (error instanceof RangeError) return body // its messages are sound, what they hold is not
    throw error
  }
  return builder.take()[0]?.body ?? body
}
