/** Creates a key, and shows it once. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { call } from '../../data/api.ts'
import { Copy } from '../../parts/copy.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Choice, Field, Select } from '../../parts/fields.tsx'
import type { Key, NewKey } from './wire.ts'

export async function createKey(body: NewKey): Promise<string> {
  return (await call<{ key: string }>('POST', '/keys', body)).key
}

/** The same key again: its owner, scope and end. */
export function bodyOf({ name, tenant, principal, role, expiresAt, models, routes }: Key): NewKey {
  return {
    ...(name !== null && { name }),
    ...(tenant !== undefined && { tenant }),
    ...(principal !== undefined && { principal, role }),
    ...(expiresAt !== null && { expiresAt }),
    ...(models !== null && { models }),
    ...(routes !== null && { routes }),
  }
}

interface DialogProps {
  readonly close: () => void
  readonly onCreated: (key: string) => void
}

export function NewKeyDialog({ close, onCreated }: DialogProps) {
  const [kind, setKind] = useState('tenant')
  const [owner, setOwner] = useState('')
  const [role, setRole] = useState('user')
  const [name, setName] = useState('')
  const [expiresAt, setExpiresAt] = useState('')
  const [models, setModels] = useState('')
  const [routes, setRoutes] = useState('')
  const isTenant = kind === 'tenant'
  const submit = async () => {
    const body: NewKey = {
      ...(isTenant ? { tenant: owner } : { principal: owner, role: role as 'admin' | 'user' }),
      ...(name !== '' && { name }),
      ...(expiresAt !== '' && { expiresAt }),
      ...(models.trim() !== '' && { models: listOf(models) }),
      ...(routes.trim() !== '' && { routes: listOf(routes) }),
    }
    onCreated(await createKey(body))
  }
  return (
    <Dialog title="Create a key" submit="Create" onClose={close} onSubmit={submit}>
      <Choice
        label="Owner"
        value={kind}
        options={[
          ['tenant', 'Tenant (serving routes)'],
          ['principal', 'Operator (control plane)'],
        ]}
        onChange={setKind}
      />
      <Field label={isTenant ? 'Tenant' : 'Operator'} value={owner} onChange={setOwner} required />
      {!isTenant && (
        <Select
          label="Role"
          value={role}
          options={[
            ['user', 'user: reads'],
            ['admin', 'admin: reads and changes'],
          ]}
          onChange={setRole}
        />
      )}
      <Field label="Description" value={name} onChange={setName} hint="Optional." />
      <Field
        label="Valid until"
        type="date"
        value={expiresAt}
        onChange={setExpiresAt}
        hint="Optional; UTC."
      />
      <Field label="Models" value={models} onChange={setModels} hint="Separated by commas; empty for all." />
      <Field
        label="Routes"
        value={routes}
        onChange={setRoutes}
        hint="Such as chat, responses, embeddings; empty for all of the owner."
      />
    </Dialog>
  )
}

function listOf(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

/** The only time that a key is shown. */
export function ShownKey({ secret, close }: { secret: string; close: () => void }) {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => element.current?.showModal(), [])
  return (
    <dialog ref={element} onClose={close} aria-label="The new key">
      <form method="dialog">
        <h2>The new key</h2>
        <p>Copy it now: the gateway stores its digest only, and cannot show it again.</p>
        <pre class="secret">{secret}</pre>
        <div class="actions end">
          <Copy text={secret} />
          <button type="submit" class="primary">
            Done
          </button>
        </div>
      </form>
    </dialog>
  )
}
