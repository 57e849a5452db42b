/** Registers a worker, after a look at what the gateway discovers. */
import { useState } from 'preact/hooks'
import { call } from '../../data/api.ts'
import { Failure } from '../../parts/basics.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Field } from '../../parts/fields.tsx'

interface Discovery {
  readonly runtime_type: string
  readonly connection_mode: string
  readonly models: readonly { readonly id: string; readonly context_length?: number | null }[]
  readonly apis: readonly string[]
}

export function AddWorker({ reload }: { reload: () => Promise<void> }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" class="primary" onClick={() => setOpen(true)}>
        Add worker
      </button>
      {isOpen && <AddDialog reload={reload} close={() => setOpen(false)} />}
    </>
  )
}

function AddDialog({ reload, close }: { reload: () => Promise<void>; close: () => void }) {
  const [url, setUrl] = useState('')
  const [key, setKey] = useState('')
  const [priority, setPriority] = useState('50')
  const [found, setFound] = useState<Discovery | Error | null>(null)
  const [isLooking, setLooking] = useState(false)
  const spec = { url: url.trim(), ...(key !== '' && { api_key: key }) }

  const discover = async () => {
    setLooking(true)
    setFound(await call<Discovery>('POST', '/workers/discover', spec).catch((error: Error) => error))
    setLooking(false)
  }
  return (
    <Dialog
      title="Add a worker"
      submit="Add"
      onClose={close}
      onSubmit={async () => {
        await call('POST', '/workers', { ...spec, priority: Number(priority) })
        await reload()
      }}
    >
      <Field
        label="URL"
        value={url}
        onChange={setUrl}
        required
        placeholder="http://10.0.0.3:8000"
        hint="Base URL of the engine: http, https, grpc or grpcs."
      />
      <Field label="API key of the worker" type="password" value={key} onChange={setKey} hint="Optional." />
      <Field label="Priority" type="number" min={0} value={priority} onChange={setPriority} />
      <button type="button" disabled={url.trim() === '' || isLooking} onClick={discover}>
        {isLooking ? 'Asking the engine …' : 'Show what is discovered'}
      </button>
      {found instanceof Error && <Failure error={found} />}
      {found !== null && !(found instanceof Error) && <Found {...found} />}
    </Dialog>
  )
}

function Found({ runtime_type, connection_mode, models, apis }: Discovery) {
  return (
    <dl class="details" aria-live="polite">
      <div>
        <dt>Engine</dt>
        <dd>
          {runtime_type} over {connection_mode}
        </dd>
      </div>
      <div>
        <dt>Models</dt>
        <dd>
          {models.length > 0
            ? models
                .map(({ id, context_length }) =>
                  context_length == null ? id : `${id} (${context_length} tokens)`,
                )
                .join(', ')
            : 'any'}
        </dd>
      </div>
      <div>
        <dt>Formats</dt>
        <dd>{apis.join(', ') || '–'}</dd>
      </div>
    </dl>
  )
}
