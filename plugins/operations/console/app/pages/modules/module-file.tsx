/** Where a module comes from: a file of this computer, which is uploaded, or a place that the gateway reads. */
import { useId, useState } from 'preact/hooks'
import { upload } from '../../data/api.ts'
import { bytes } from '../../data/format.ts'
import { Choice, Field } from '../../parts/fields.tsx'

const PLACE_HINT =
  'A path on the machine of the gateway, an https URL, or a reference such as oci://registry/module:1.0.'

/** Members of the descriptor of a module. */
interface Source {
  readonly file_path: string
  readonly sha256?: string
}

/** @param place path or URL at first; empty for a new module */
export function useModuleFile(place: string) {
  const [kind, setKind] = useState(place === '' ? 'upload' : 'place')
  const [path, setPath] = useState(place)
  const [sha256, setSha256] = useState('')
  const [file, setFile] = useState<File | null>(null)
  /** Sent part of the upload, 0 to 1; null while none runs. */
  const [sent, setSent] = useState<number | null>(null)

  /** Uploads the file if one is chosen. */
  const source = async (): Promise<Source> => {
    if (kind === 'place') return { file_path: path, ...(sha256 !== '' && { sha256 }) }
    if (file === null) throw new Error('Choose a file.')
    try {
      const stored = await upload<{ sha256: string }>('/wasm/files', file, setSent)
      return { file_path: `upload://${file.name}`, sha256: stored.sha256 }
    } finally {
      setSent(null)
    }
  }
  const fields = (
    <>
      <Choice
        label="Source of the module"
        value={kind}
        options={[
          ['upload', 'Upload a file'],
          ['place', 'Path or URL'],
        ]}
        onChange={setKind}
      />
      {kind === 'upload' ? (
        <FileField file={file} sent={sent} onChange={setFile} />
      ) : (
        <>
          <Field label="File" value={path} onChange={setPath} required hint={PLACE_HINT} />
          <Field label="SHA-256" value={sha256} onChange={setSha256} hint="Required for URLs." />
        </>
      )}
    </>
  )
  return { source, fields }
}

interface FileFieldProps {
  readonly file: File | null
  readonly sent: number | null
  readonly onChange: (file: File | null) => void
}

function FileField({ file, sent, onChange }: FileFieldProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>Module file</label>
      <input
        id={id}
        type="file"
        accept=".wasm,application/wasm"
        required
        aria-describedby={`${id}-hint`}
        onChange={(event) => onChange(event.currentTarget.files?.[0] ?? null)}
      />
      <small id={`${id}-hint`}>
        {file === null ? 'Needs plugins.wasm.allowUploads.' : `${file.name}, ${bytes(file.size)}`}
      </small>
      {sent !== null && <progress value={sent} aria-label="Upload" />}
    </div>
  )
}
