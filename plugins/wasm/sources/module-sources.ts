/** Reads modules from uploads, https URLs and OCI registries, by a pinned digest, and keeps their bytes in the store of the gateway. */
import { createHash } from 'node:crypto'
import { type Collection, GATEWAY_TENANT, type Logger, type StoreService } from '#kernel'
import type { WasmConfig } from '../config.ts'
import { covers, originOf, readOrigin } from '../fetch/origin-pattern.ts'
import { ModuleRejected } from '../rewrite/module-rejected.ts'
import type { ModuleDescriptor } from '../wire.ts'
import { readModuleUrl, readOciReference } from './module-reference.ts'
import { type ModuleUploads, UPLOAD_SCHEME } from './module-uploads.ts'
import { authorizationOf, type Credential, OciRegistry } from './oci-registry.ts'
import { SourceHttp, shown } from './source-http.ts'

interface KeptBytes {
  readonly base64: string
}

export class ModuleSources {
  readonly #config: WasmConfig
  readonly #uploads: ModuleUploads
  readonly #log: Logger
  readonly #bytes: Collection<KeptBytes> | null
  /** SHA-256 of the bytes that are kept, so that they can be listed without reading them. */
  readonly #index: Collection<string> | null

  /** @param store undefined if no plugin provides one; nothing is kept then */
  constructor(config: WasmConfig, uploads: ModuleUploads, store: StoreService | undefined, log: Logger) {
    this.#config = config
    this.#uploads = uploads
    this.#log = log
    this.#bytes = store?.collection<KeptBytes>('wasm-bytes') ?? null
    this.#index = store?.collection<string>('wasm-bytes-index') ?? null
  }

  /**
   * @param descriptor whose `file_path` is a URL
   * @returns bytes with the pinned digest
   * @throws ModuleRejected
   */
  async read({
    file_path,
    sha256,
  }: Pick<ModuleDescriptor, 'file_path' | 'sha256'>): Promise<Uint8Array<ArrayBuffer>> {
    if (sha256 === undefined)
      throw new ModuleRejected(`file_path ${file_path} requires sha256, the digest of the module`)
    const kept = await this.#kept(sha256)
    if (kept !== null) return kept
    const bytes = await this.#load(file_path, sha256)
    const actual = hashOf(bytes)
    if (actual !== sha256)
      throw new ModuleRejected(
        `file_path has the SHA-256 ${actual} in place of ${sha256}, as sha256 requires`,
      )
    await this.#keep(sha256, bytes)
    return bytes
  }

  /** Removes the bytes of other modules. Errors are logged. @param hashes SHA-256 of the modules in use */
  async retain(hashes: ReadonlySet<string>): Promise<void> {
    if (this.#index === null || this.#bytes === null) return
    try {
      for (const hash of await this.#index.list(GATEWAY_TENANT)) {
        if (hashes.has(hash)) continue
        await this.#bytes.delete(GATEWAY_TENANT, hash)
        await this.#index.delete(GATEWAY_TENANT, hash)
      }
    } catch (err) {
      this.#log.warn({ err }, 'unused bytes of wasm modules remain in the store')
    }
  }

  async #load(filePath: string, sha256: string): Promise<Uint8Array<ArrayBuffer>> {
    if (filePath.startsWith(UPLOAD_SCHEME)) {
      const bytes = this.#uploads.find(sha256)
      if (bytes !== undefined) return bytes
      throw new ModuleRejected(`no upload has the SHA-256 ${sha256}; send the file to POST /wasm/files first`)
    }
    const http = new SourceHttp(this.#config)
    if (filePath.startsWith('oci://')) {
      const reference = readOciReference(filePath)
      const url = this.#registryUrl(reference.host)
      const scheme = url.protocol === 'http:' ? 'http' : 'https'
      const parts = { http, scheme, credential: this.#credentialOf(url) } as const
      return new OciRegistry(reference, parts).pull(`sha256:${sha256}`)
    }
    const url = readModuleUrl(filePath)
    const credential = this.#credentialOf(url)
    const authorization = credential === undefined ? null : authorizationOf(credential)
    const { status, body } = await http.send(url, { authorization })
    if (status !== 200) throw new ModuleRejected(`${shown(url)} responded with status ${status}`)
    return body
  }

  /** Without TLS only if the operator lists the registry so. */
  #registryUrl(host: string): URL {
    const plain = new URL(`http://${host}`)
    const isPlain = this.#config.sources.origins.some((text) => {
      const pattern = readOrigin(text)
      return pattern !== null && covers(pattern, originOf(plain))
    })
    return isPlain ? plain : new URL(`https://${host}`)
  }

  #credentialOf(url: URL): Credential | undefined {
    return this.#config.sources.credentials.find(({ origin }) => {
      const pattern = readOrigin(origin)
      return pattern !== null && covers(pattern, originOf(url))
    })
  }

  /** Altered bytes are not used. */
  async #kept(hash: string): Promise<Uint8Array<ArrayBuffer> | null> {
    const record = await this.#bytes?.get(GATEWAY_TENANT, hash)
    if (typeof record?.base64 !== 'string') return null
    const bytes = new Uint8Array(Buffer.from(record.base64, 'base64'))
    return hashOf(bytes) === hash ? bytes : null
  }

  /** The module runs without it; only a restart needs its source then. */
  async #keep(hash: string, bytes: Uint8Array): Promise<void> {
    try {
      await this.#index?.put(GATEWAY_TENANT, hash, hash)
      await this.#bytes?.put(GATEWAY_TENANT, hash, { base64: Buffer.from(bytes).toString('base64') })
    } catch (err) {
      this.#log.warn({ err, sha256: hash }, 'bytes of wasm module not kept in the store')
    }
  }
}

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
