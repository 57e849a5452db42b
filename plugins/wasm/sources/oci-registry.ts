/** Modules in a registry of the OCI distribution specification, in the layout of `wkg` and Spin. */
import { createHash } from 'node:crypto'
import { isObject, parseBoundedJson } from '#kernel'
import { ModuleRejected } from '../rewrite/module-rejected.ts'
import type { OciReference } from './module-reference.ts'
import { type SourceHttp, type SourceRequest, type SourceResponse, shown } from './source-http.ts'

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
const CONFIG = 'application/vnd.wasm.config.v0+json'
const LAYER = 'application/wasm'
/** Which registries must accept, https://github.com/opencontainers/distribution-spec/blob/main/spec.md */
const MAX_MANIFEST_BYTES = 4_194_304
const TOKEN = /^[!-~]+$/

export interface Credential {
  /** Without a user name, the password is a bearer token. */
  readonly username?: string
  readonly password: string
}

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

export interface OciRegistryParts {
  readonly http: SourceHttp
  readonly scheme: 'http' | 'https'
  /** Undefined for a registry without credentials. */
  readonly credential: Credential | undefined
}

export function authorizationOf({ username, password }: Credential): string {
  if (username === undefined) return `Bearer ${password}`
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}

export function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}

export class OciRegistry {
  readonly #parts: OciRegistryParts
  readonly #reference: OciReference
  readonly #base: URL
  /** Null until the registry asks for it. */
  #authorization: string | null = null

  constructor(reference: OciReference, parts: OciRegistryParts) {
    this.#parts = parts
    this.#reference = reference
    this.#base = new URL(`${parts.scheme}://${reference.host}/v2/${reference.repository}/`)
  }

  /**
   * @param digest of the module, such as `sha256:…`; null takes the only layer, or the only one of WebAssembly
   * @returns bytes that have the digest of their layer
   * @throws ModuleRejected
   */
  async pull(digest: string | null): Promise<Uint8Array<ArrayBuffer>> {
    const { reference } = this.#reference
    const { body } = await this.#expect('manifests', reference, { headers: ['accept', MANIFEST] }, [200])
    if (reference.startsWith('sha256:')) this.#checkDigest(body, reference, 'manifest')
    const layer = this.#layerOf(body, digest)
    const blob = await this.#expect('blobs', layer, {}, [200])
    this.#checkDigest(blob.body, layer, 'layer')
    return blob.body
  }

  /** @returns digest of the manifest. @throws ModuleRejected */
  async push(bytes: Uint8Array): Promise<string> {
    const { reference } = this.#reference
    const layer = await this.#pushBlob(bytes, LAYER)
    const config = { architecture: 'wasm', os: 'wasip1', layerDigests: [layer.digest] }
    const manifest = Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: MANIFEST,
        config: await this.#pushBlob(Buffer.from(JSON.stringify(config)), CONFIG),
        layers: [layer],
      }),
    )
    await this.#expect(
      'manifests',
      reference,
      { method: 'PUT', headers: ['content-type', MANIFEST], body: manifest },
      [201],
    )
    return digestOf(manifest)
  }

  async #pushBlob(bytes: Uint8Array, mediaType: string): Promise<Descriptor> {
    const blob = { mediaType, digest: digestOf(bytes), size: bytes.length }
    const found = await this.#expect('blobs', blob.digest, { method: 'HEAD' }, [200, 404])
    if (found.status === 200) return blob
    const started = await this.#expect('blobs', 'uploads/', { method: 'POST' }, [202])
    const location = started.header('location')
    if (location === null || !URL.canParse(location, this.#base.href))
      throw new ModuleRejected(`${this.#base.origin} started an upload without a valid location`)
    const url = new URL(location, this.#base)
    url.searchParams.set('digest', blob.digest)
    const request = { method: 'PUT', headers: ['content-type', 'application/octet-stream'], body: bytes }
    await this.#call(url, request, [201])
    return blob
  }

  #expect(
    kind: string,
    name: string,
    request: SourceRequest,
    statuses: readonly number[],
  ): Promise<SourceResponse> {
    return this.#call(new URL(`${kind}/${name}`, this.#base), request, statuses)
  }

  async #call(url: URL, request: SourceRequest, statuses: readonly number[]): Promise<SourceResponse> {
    const { http } = this.#parts
    // An upload may continue on another origin, whose location carries its permission.
    const send = () =>
      http.send(url, {
        ...request,
        authorization: url.origin === this.#base.origin ? this.#authorization : null,
      })
    let response = await send()
    if (response.status === 401 && this.#authorization === null) {
      this.#authorization = await this.#authorize(response.header('www-authenticate') ?? '')
      response = await send()
    }
    if (statuses.includes(response.status)) return response
    throw new ModuleRejected(`${shown(url)} responded with status ${response.status}`)
  }

  /** @param challenge such as `Bearer realm="https://auth.example/token",service="registry",scope="…"` */
  async #authorize(challenge: string): Promise<string> {
    const { http, credential } = this.#parts
    const own = credential === undefined ? null : authorizationOf(credential)
    const members = new Map(
      [...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
    )
    const realm = members.get('realm') ?? ''
    if (!/^bearer /i.test(challenge) || (credential !== undefined && credential.username === undefined)) {
      if (own === null) throw new ModuleRejected(`${this.#base.origin} requires credentials`)
      return own
    }
    if (!URL.canParse(realm)) throw new ModuleRejected(`${this.#base.origin} names an invalid token service`)
    const url = new URL(realm)
    if (this.#base.protocol === 'https:' && url.protocol !== 'https:')
      throw new ModuleRejected(`${this.#base.origin} names a token service without TLS`)
    for (const name of ['service', 'scope']) {
      const value = members.get(name)
      if (value !== undefined) url.searchParams.set(name, value)
    }
    const { status, body } = await http.send(url, { authorization: own })
    const token = status === 200 ? tokenOf(body) : null
    if (token === null) throw new ModuleRejected(`${shown(url)} gave no token (status ${status})`)
    return `Bearer ${token}`
  }

  #layerOf(manifest: Uint8Array, digest: string | null): string {
    const parsed = manifest.length > MAX_MANIFEST_BYTES ? null : parseJson(manifest)
    const listed = isObject(parsed) && Array.isArray(parsed.layers) ? parsed.layers : []
    const layers = listed.filter(
      (one): one is Descriptor => isObject(one) && /^sha256:[0-9a-f]{64}$/.test(String(one.digest)),
    )
    const typed = layers.filter(({ mediaType }) => String(mediaType).endsWith('wasm'))
    const candidates = digest === null && layers.length > 1 ? typed : layers
    const found = digest === null ? candidates : layers.filter((one) => one.digest === digest)
    if (found.length === 1) return found[0].digest
    const { host, repository, reference } = this.#reference
    const wanted = digest === null ? 'exactly one layer of WebAssembly' : `a layer with digest ${digest}`
    throw new ModuleRejected(
      `the manifest ${host}/${repository} ${reference} must have ${wanted} (its layers: ${layers.map((one) => one.digest).join(', ') || 'none'})`,
    )
  }

  #checkDigest(bytes: Uint8Array, expected: string, what: string): void {
    const actual = digestOf(bytes)
    if (actual !== expected)
      throw new ModuleRejected(
        `${this.#base.origin} sent a ${what} with digest ${actual} in place of ${expected}`,
      )
  }
}

function tokenOf(body: Uint8Array): string | null {
  const parsed = parseJson(body)
  const token = isObject(parsed) ? (parsed.token ?? parsed.access_token) : null
  return typeof token === 'string' && TOKEN.test(token) ? token : null
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return parseBoundedJson(Buffer.from(bytes))
  } catch {
    return null
  }
}
