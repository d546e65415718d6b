import { useSignal } from '@preact/signals'
import { denied, deniedWhy, hasToken, refusedLink, setToken } from '../lib/api.ts'

/** Asks for a token where the agent wants one, and says what stands in the way where it does not. */
export function Admission() {
  const token = useSignal('')
  if (denied.value === '') return null
  if (denied.value === 'forbidden')
    return (
      <div class="card stack" role="alert">
        <h2>The agent does not answer this browser</h2>
        <p>{deniedWhy.value}</p>
      </div>
    )
  return (
    <form
      class="card stack"
      onSubmit={event => {
        event.preventDefault()
        setToken(token.value)
      }}
    >
      <h2>Who are you?</h2>
      {refusedLink.value === '' ? null : (
        <p class="notice" role="alert">
          {refusedLink.value}
        </p>
      )}
      <p>
        Open the link that <code>sudo svc ui</code> prints on the agent’s host, or give a token.
      </p>
      {hasToken() ? (
        <p class="notice" role="alert">
          The last one was refused: {deniedWhy.value}
        </p>
      ) : null}
      <p>
        Tokens are those of <code>self_telemetry.auth</code> in the agent’s configuration. It is kept for this
        tab alone.
      </p>
      <div class="row">
        <input
          type="password"
          aria-label="Token"
          autocomplete="off"
          value={token.value}
          onInput={event => {
            token.value = event.currentTarget.value
          }}
        />
        <button type="submit">Use it</button>
      </div>
    </form>
  )
}
