import { decodeRequest } from './decode.ts'
import { profileEncoding } from './encode-profile.ts'
import { RequestBuilder } from './request.ts'

/**
 * Profiles request without unused entries of its dictionary: a part of a request
 * would otherwise be as large as the whole. The request is from this agent; one with data that the model does not have
 * stays unchanged.
 */
export function pruneProfiles(body: Uint8Array): Uint8Array {
  const builder = new RequestBuilder(profileEncoding(), { keepBytes: 0 })
  try {
    const { changed, leftOut } = decodeRequest('profiles', body, (resource, scope, profile) =>
      builder.add(resource, scope, profile),
    )
    if (changed.size > 0 || leftOut.size > 0) return body
  } catch (error) {
    if (error instanceof RangeError) return body // the messages are valid, their content is not
    throw error
  }
  return builder.take()[0]?.body ?? body
}
