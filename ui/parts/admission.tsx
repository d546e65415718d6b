import { useSignal } from '@preact/signals'
import { denied, deniedWhy, hasToken, refusedLink, setToken } from '../lib/api.ts'

/** Asks for a token if the agent requires one, or explains why access is denied. */
export function Admission() {
  const token = useSignal('')
  if (denied.value === '') return null
  if (denied.value === 'forbidden')
    return (
      <div class="card stack" role="alert">
        <h2>Access denied</h2>
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
      <h2>Sign-in</h2>
      {refusedLink.value === '' ? null : (
        <p class="notice" role="alert">
          {refusedLink.value}
        </p>
      )}
      <p>
        Open the link that <code>sudo svc ui</code> prints on the agent’s host, or enter a token.
      </p>
      {hasToken() ? (
        <p class="notice" role="alert">
          Token rejected: {deniedWhy.value}
        </p>
      ) : null}
      <p>
        Tokens are set in <code>self_telemetry.auth</code> of the agent’s configuration. The browser keeps the
        token for this tab only.
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
        <button type="submit">Use token</button>
      </div>
    </form>
  )
}
