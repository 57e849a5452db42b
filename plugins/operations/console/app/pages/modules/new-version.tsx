/** Registers a module, or a new version of one as a canary or in place. */
import { useState } from 'preact/hooks'
import { ApiError, call } from '../../data/api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Choice, Field, Select } from '../../parts/fields.tsx'
import { useModuleFile } from './module-file.tsx'
import type { Module } from './wire.ts'

const ATTACH_POINTS = [
  'OnRequest',
  'OnResponse',
  'OnError',
  'OnStreamEvent',
  'OnText',
  'OnPromptText',
  'OnToolCall',
  'OnPick',
]
interface RegistrationResult {
  readonly modules?: readonly { readonly add_result: { readonly Error?: string } }[]
}

export function RegisterModule({ reload }: { reload: () => Promise<void> }) {
  const [isOpen, setOpen] = useState(false)
  const [name, setName] = useState('')
  const { source, fields } = useModuleFile('')
  const [onFailure, setOnFailure] = useState('open')
  const [points, setPoints] = useState<readonly string[]>(['OnRequest'])
  const submit = async () => {
    const module = {
      name,
      ...(await source()),
      module_type: 'Middleware',
      attach_points: points.map((point) => ({ Middleware: point })),
      on_failure: onFailure,
    }
    await call('POST', '/wasm', { modules: [module] }).catch(explain)
    await reload()
  }
  return (
    <>
      <button type="button" class="primary" onClick={() => setOpen(true)}>
        Register module
      </button>
      {isOpen && (
        <Dialog title="Register a module" submit="Register" onClose={() => setOpen(false)} onSubmit={submit}>
          <Field label="Name" value={name} onChange={setName} required />
          {fields}
          <fieldset class="field groups">
            <legend>Attach points</legend>
            {ATTACH_POINTS.map((point) => (
              <label key={point}>
                <input
                  type="checkbox"
                  checked={points.includes(point)}
                  onChange={() =>
                    setPoints(
                      points.includes(point) ? points.filter((known) => known !== point) : [...points, point],
                    )
                  }
                />{' '}
                {point}
              </label>
            ))}
          </fieldset>
          <Select
            label="If a call fails"
            value={onFailure}
            options={[
              ['open', 'continue without the module'],
              ['closed', 'respond with 500'],
            ]}
            onChange={setOnFailure}
          />
        </Dialog>
      )}
    </>
  )
}

/** A rejected module has its reason in the body. */
function explain(error: Error): never {
  const { modules } = ((error instanceof ApiError ? error.body : null) ?? {}) as RegistrationResult
  const reason = modules?.[0]?.add_result.Error
  throw reason === undefined ? error : new Error(reason)
}

export function NewVersion({ module, reload }: { module: Module; reload: () => Promise<void> }) {
  const [isOpen, setOpen] = useState(false)
  const { file_path } = module.module_meta
  const { source, fields } = useModuleFile(file_path.startsWith('upload://') ? '' : file_path)
  const [kind, setKind] = useState('canary')
  const [share, setShare] = useState('10')
  const submit = async () => {
    const trial = kind === 'canary' ? { trial: { kind, percent: Number(share) } } : {}
    await call('PUT', `/wasm/${module.module_uuid}`, { ...(await source()), ...trial })
    await reload()
  }
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        New version
      </button>
      {isOpen && (
        <Dialog
          title={`New version of ${module.module_meta.name}`}
          submit="Start"
          onClose={() => setOpen(false)}
          onSubmit={submit}
        >
          {fields}
          <Choice
            label="How it starts"
            value={kind}
            options={[
              ['canary', 'As a canary'],
              ['replace', 'For all requests'],
            ]}
            onChange={setKind}
          />
          {kind === 'canary' && (
            <Field
              label="Requests, %"
              type="number"
              min={0}
              max={100}
              value={share}
              onChange={setShare}
              required
            />
          )}
        </Dialog>
      )}
    </>
  )
}
