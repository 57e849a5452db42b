/** Module files sent to the control plane, kept in memory until they are registered, or for some time. On control only. */
import { createHash } from 'node:crypto'
import { defineCommand, type Static, Type } from '#kernel'
import type { WasmConfig } from '../config.ts'
import { wasmErrors } from '../errors.ts'

/** Time for which an upload is kept, in milliseconds. */
const KEEP_MS = 600_000
/** Further uploads replace the oldest, which bounds the memory. */
const MAX_UPLOADS = 4
const MAGIC = '\0asm'

export const UPLOAD_SCHEME = 'upload://'

export const UploadSchema = Type.Object({
  sha256: Type.String({ description: 'Of the file: `sha256` of the module in POST /wasm.' }),
  size_bytes: Type.Integer(),
})
type Upload = Static<typeof UploadSchema>

export const UploadModule = defineCommand<Uint8Array<ArrayBuffer>, Upload>('wasm.upload')

export class ModuleUploads {
  readonly #config: Pick<WasmConfig, 'allowUploads' | 'maxFileBytes'>
  /** By SHA-256, oldest first. */
  readonly #files = new Map<
    string,
    { readonly bytes: Uint8Array<ArrayBuffer>; readonly timer: NodeJS.Timeout }
  >()

  constructor(config: Pick<WasmConfig, 'allowUploads' | 'maxFileBytes'>) {
    this.#config = config
  }

  /** @throws uploads_disabled, upload_too_large, no_wasm_file */
  add(bytes: Uint8Array<ArrayBuffer>): Upload {
    const { allowUploads, maxFileBytes } = this.#config
    if (!allowUploads) throw wasmErrors.uploads_disabled()
    if (bytes.length > maxFileBytes) throw wasmErrors.upload_too_large(bytes.length, maxFileBytes)
    if (Buffer.from(bytes.subarray(0, MAGIC.length)).toString('latin1') !== MAGIC)
      throw wasmErrors.no_wasm_file(bytes.length)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    this.#remove(sha256)
    const [oldest] = this.#files.keys()
    if (this.#files.size === MAX_UPLOADS) this.#remove(oldest)
    this.#files.set(sha256, { bytes, timer: setTimeout(() => this.#remove(sha256), KEEP_MS).unref() })
    return { sha256, size_bytes: bytes.length }
  }

  find(sha256: string): Uint8Array<ArrayBuffer> | undefined {
    return this.#files.get(sha256)?.bytes
  }

  #remove(sha256: string): void {
    clearTimeout(this.#files.get(sha256)?.timer)
    this.#files.delete(sha256)
  }
}
