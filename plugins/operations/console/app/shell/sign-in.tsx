/** The page before a session: asks for a control-plane key or token. */
import { useState } from 'preact/hooks'
import type { ApiError } from '../data/api.ts'
import { endReason, signIn } from '../data/session.ts'
import { useStore } from '../data/store.ts'
import { Failure } from '../parts/basics.tsx'
import { Field } from '../parts/fields.tsx'
import { Logo } from './logo.tsx'

/** Their texts are for callers of the API; those of other errors say what to do here. */
const WRONG_KEY = ['invalid_api_key', 'insufficient_role']

export function SignIn() {
  const reason = useStore(endReason)
  const [key, setKey] = useState('')
  const [error, setError] = useState<Error | null>(null)
  const [isBusy, setBusy] = useState(false)

  const submit = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    setError(null)
    try {
      await signIn(key)
    } catch (failure) {
      const { code } = failure as ApiError
      setError(
        WRONG_KEY.includes(code ?? '')
          ? new Error('The key is wrong or does not open the control plane.')
          : (failure as Error),
      )
      setBusy(false)
    }
  }
  return (
    <main class="sign-in">
      <form onSubmit={submit}>
        <h1>
          <Logo /> Weir console
        </h1>
        {reason !== null && <p role="status">{reason}</p>}
        <Field
          label="Control-plane key or token"
          type="password"
          value={key}
          onChange={setKey}
          required
          hint="The browser keeps a session cookie, not the key."
        />
        {error !== null && <Failure error={error} />}
        <button type="submit" class="primary" disabled={isBusy || key === ''}>
          Sign in
        </button>
      </form>
    </main>
  )
}
