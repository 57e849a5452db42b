/** Registers a module, or a new version of one as a canary or in place. */
import { useState } from 'preact/hooks'
import { ApiError, call } from '../../data/api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Choice, Field, Select } from '../../parts/fields.tsx'
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
const FILE_HINT =
  'A path on the machine of the gateway, an https URL, or a reference such as oci://registry/module:1.0.'

interface RegistrationResult {
  readonly modules?: readonly { readonly add_result: { readonly Error?: string } }[]
}

export function RegisterModule({ reload }: { reload: () => Promise<void> }) {
  const [isOpen, setOpen] = useState(false)
  const [name, setName] = useState('')
  const [file, setFile] = useState('')
  const [sha256, setSha256] = useState('')
  const [onFailure, setOnFailure] = useState('open')
  const [points, setPoints] = useState<readonly string[]>(['OnRequest'])
  const submit = async () => {
    const module = {
      name,
      file_path: file,
      module_type: 'Middleware',
      attach_points: points.map((point) => ({ Middleware: point })),
      on_failure: onFailure,
      ...(sha256 !== '' && { sha256 }),
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
          <Field label="File" value={file} onChange={setFile} required hint={FILE_HINT} />
          <Field label="SHA-256" value={sha256} onChange={setSha256} hint="Required for URLs." />
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
  const [file, setFile] = useState(module.module_meta.file_path)
  const [kind, setKind] = useState('canary')
  const [share, setShare] = useState('10')
  const submit = async () => {
    const trial = kind === 'canary' ? { trial: { kind, percent: Number(share) } } : {}
    await call('PUT', `/wasm/${module.module_uuid}`, { file_path: file, ...trial })
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
          <Field label="File" value={file} onChange={setFile} required hint={FILE_HINT} />
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
