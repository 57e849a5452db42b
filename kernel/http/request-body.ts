/** The body of one request: its memory, its share of the server's budget, and what is read from it. @hot */
import type { RouteHooks } from '../contracts/hook.ts'
import type { RoutingPeek } from '../contracts/request.ts'
import type { GatewayError } from '../errors/gateway-error.ts'
import type { Validator } from '../schema/validate.ts'
import { parseJson, peekRouting, type ScannedBody, toPeek } from './json-body.ts'
import type { ServerParts } from './server-parts.ts'

const EMPTY = Buffer.alloc(0)

/** Base of the request context, so that a request is one object. */
export abstract class RequestBody {
  abstract readonly server: ServerParts
  abstract readonly hooks: RouteHooks
  /** The body is complete; a long one has been scanned. */
  hasBody = false
  isReceiving = false
  bytesIn = 0
  #body: Buffer = EMPTY
  /** The pooled block under the body, released at the end; null when there is none or a plugin may keep it. */
  #bodyBlock: Buffer | null = null
  /** Bytes of the body in the server's budget. */
  #heldBytes = 0
  /** Those of them that are held until the end of the request. */
  #keptBytes = 0
  /** Owner of these bytes. */
  #budgetOwner = ''
  #peek: RoutingPeek | null = null
  #parsed: unknown = undefined
  /** Scan of a long body, made before the request runs. */
  #scanned: ScannedBody | null = null

  /** Whose bytes these are in the budget: the tenant, or the client address of callers without one. */
  abstract get bodyOwner(): string

  /** Not reused, so that a plugin may keep it. */
  get bodyBytes(): Buffer {
    this.#bodyBlock = null
    return this.#body
  }

  /** @param scanned result of the scan */
  takeScan(scanned: ScannedBody): void {
    this.#scanned = scanned
  }

  get rawBody(): Buffer {
    return this.#body
  }

  /** @param block the pooled block under it, or null */
  takeBody(bytes: Buffer, block: Buffer | null): void {
    this.#body = bytes
    this.#bodyBlock = block
  }

  /**
   * Counts the body in the server's budget before its bytes are read.
   * @param bytes total bytes of the body
   * @returns the error if it exceeds the budget
   */
  holdBody(bytes: number): GatewayError | null {
    if (this.#heldBytes === 0) this.#budgetOwner = this.bodyOwner
    const error = this.server.bodyBudget.take(this.#budgetOwner, bytes - this.#heldBytes)
    if (error === null) this.#heldBytes = bytes
    return error
  }

  holdUntilEnd(bytes: number): GatewayError | null {
    const error = this.holdBody(this.#heldBytes + bytes)
    if (error === null) this.#keptBytes += bytes
    return error
  }

  /** Moves the counted bytes to the tenant once it is known. @returns the error if they exceed the budget */
  moveHeldBody(): GatewayError | null {
    const bytes = this.#heldBytes
    if (bytes === 0) return null
    this.#releaseHeld(0)
    return this.holdBody(bytes)
  }

  #releaseHeld(left: number): void {
    const bytes = this.#heldBytes - left
    if (bytes > 0) this.server.bodyBudget.give(this.#budgetOwner, bytes)
    this.#heldBytes = left
  }

  forgetBody(): void {
    this.#bodyBlock = null
    // onResponse may still read it; the hooks after it see none.
    if (this.hooks.onResponse !== null) return
    this.#body = EMPTY
    this.#releaseHeld(this.#keptBytes)
  }

  recycleBody(): void {
    const block = this.#bodyBlock
    this.#body = EMPTY
    this.#bodyBlock = null
    this.#releaseHeld(0)
    if (block !== null) this.server.bodies.give(block)
  }

  setBody(bytes: Buffer): void {
    this.#body = bytes
    this.#bodyBlock = null
    this.#peek = null
    this.#parsed = undefined
    this.#scanned = null
  }

  body<T>(validator: Validator<T>): T {
    return validator.parse(this.bodyJson())
  }

  bodyJson(): unknown {
    if (this.#parsed === undefined)
      this.#parsed = parseJson(this.#body, this.server.maxJsonDepth, this.#scanned)
    return this.#parsed
  }

  peek(): RoutingPeek {
    this.#peek ??= this.#findRouting()
    return this.#peek
  }

  #findRouting(): RoutingPeek {
    const scanned = this.#scanned
    if (scanned === null) return peekRouting(this.#body, this.server.maxJsonDepth)
    return toPeek(this.#body, scanned.scan, scanned.state)
  }
}
