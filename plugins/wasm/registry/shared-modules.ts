/**
 * Modules that gateways share: a sealed record per module with all of its versions, and their bytes in blobs. Reading
 * the settings of a module or adding one requires the secret of the mesh.
 */
import {
  defineValidator,
  GatewayError,
  isObject,
  type Logger,
  type MeshService,
  messageOf,
  type SharedRecords,
} from '#kernel'
import { isUuid } from '#shared'
import { ModuleRejected } from '../rewrite/module-rejected.ts'
import { type ModuleFile, toModuleFile } from './load-module.ts'
import {
  type ModuleStore,
  type SavedLine,
  SavedLineSchema,
  type SavedVersion,
  versionsOf,
} from './saved-modules.ts'

const KIND = 'wasm-modules'
/** Between the last use of a blob and its removal: another gateway may be about to refer to it. */
const REMOVE_AFTER_MS = 10_000
const SHA256 = /^[0-9a-f]{64}$/

interface LineRecord {
  /** Blobs of all versions, so that they can be counted without opening the records. */
  readonly hashes: readonly string[]
  /** A `SavedLine`. */
  readonly sealed: string
}

const validator = defineValidator(SavedLineSchema)
const CHANGED = new Error('the line was changed by another gateway')

export class SharedModules implements ModuleStore {
  readonly isShared = true
  readonly #mesh: MeshService
  readonly #records: SharedRecords<LineRecord>
  readonly #log: Logger
  /** The records as they were read last. */
  readonly #seen = new Map<string, LineRecord>()
  readonly #hashes = new Map<string, readonly string[]>()
  #listener: (id: string) => void = () => {}

  constructor(mesh: MeshService, log: Logger) {
    this.#mesh = mesh
    this.#log = log
    this.#records = mesh.records<LineRecord>(KIND)
    this.#records.watch((id, record) => this.#changed(id, record?.value))
  }

  async open(): Promise<readonly string[]> {
    for (const [id, { value }] of this.#records.all) this.#hashes.set(id, hashesOf(value))
    return [...this.#records.all.keys()].filter(isUuid).toSorted()
  }

  read(id: string): SavedLine | undefined {
    const record = this.#records.all.get(id)?.value
    if (record === undefined) {
      this.#seen.delete(id)
      return undefined
    }
    this.#seen.set(id, record)
    return this.#open(id, record)
  }

  async put(line: SavedLine): Promise<boolean> {
    const { id } = line
    const hashes = [...new Set(versionsOf(line).map(({ hash }) => hash))]
    const next = { hashes, sealed: this.#mesh.seal(JSON.stringify(line), contextOf(id)) }
    try {
      const record = await this.#records.change(id, (current) => {
        if (current?.sealed !== this.#seen.get(id)?.sealed) throw CHANGED
        return next
      })
      if (record !== undefined) this.#seen.set(id, record.value)
      return true
    } catch (error) {
      if (error === CHANGED) return false
      throw error
    }
  }

  async remove(id: string): Promise<void> {
    await this.#records.change(id, () => undefined)
    this.#seen.delete(id)
  }

  async keepBytes({ bytes, hash }: ModuleFile): Promise<void> {
    await this.#mesh.putBlob(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length))
    // Of no use if the change fails.
    this.#removeUnused([hash])
  }

  async readBytes({ hash }: SavedVersion, readFile: () => Promise<ModuleFile>): Promise<ModuleFile> {
    const bytes = await this.#mesh.readBlob(hash).catch((error: unknown) => {
      if (error instanceof GatewayError && error.code === 'mesh_unavailable') throw error
      return messageOf(error)
    })
    if (bytes instanceof Buffer) return toModuleFile(new Uint8Array(bytes), false)
    const problem = bytes ?? `the mesh does not have the bytes of ${hash}`
    let file: ModuleFile
    try {
      file = await readFile()
    } catch {
      throw new ModuleRejected(
        `${problem}; put the file on this machine, send PUT /wasm/{module_uuid} with file_path to a gateway that has it, or remove the module`,
      )
    }
    if (file.hash !== hash)
      throw new ModuleRejected(
        `${problem}, and the file on this machine has changed; send PUT /wasm/{module_uuid} with file_path, or remove the module`,
      )
    this.#log.warn(
      { sha256: hash, reason: problem },
      'bytes of wasm module restored in the mesh from its file',
    )
    await this.keepBytes(file)
    return file
  }

  onChange(listener: (id: string) => void): void {
    this.#listener = listener
  }

  #open(id: string, record: LineRecord): SavedLine {
    const sealed: unknown = record.sealed
    if (typeof sealed !== 'string') throw new ModuleRejected('its record in the mesh is invalid')
    const line: unknown = JSON.parse(this.#mesh.open(sealed, contextOf(id)))
    const problem = validator.problem(line)
    if (problem !== null)
      throw new ModuleRejected(`its record in the mesh is invalid: ${problem.field} ${problem.text}`)
    return line as SavedLine
  }

  /** Each gateway removes the blobs, so that they go even if the one that made the change ends. */
  #changed(id: string, record: LineRecord | undefined): void {
    const before = this.#hashes.get(id) ?? []
    const after = record === undefined ? [] : hashesOf(record)
    if (record === undefined) this.#hashes.delete(id)
    else this.#hashes.set(id, after)
    this.#removeUnused(before.filter((hash) => !after.includes(hash)))
    if (isUuid(id)) this.#listener(id)
  }

  #removeUnused(hashes: readonly string[]): void {
    if (hashes.length === 0) return
    setTimeout(() => {
      const used = new Set([...this.#records.all.values()].flatMap(({ value }) => hashesOf(value)))
      for (const hash of hashes) {
        if (used.has(hash)) continue
        this.#mesh
          .removeBlob(hash)
          .catch((err: unknown) => this.#log.warn({ err, sha256: hash }, 'unused bytes remain in the mesh'))
      }
    }, REMOVE_AFTER_MS).unref()
  }
}

function contextOf(id: string): string {
  return `${KIND} ${id}`
}

function hashesOf(record: unknown): readonly string[] {
  const hashes = isObject(record) ? record.hashes : null
  return Array.isArray(hashes) ? hashes.filter((hash) => typeof hash === 'string' && SHA256.test(hash)) : []
}
