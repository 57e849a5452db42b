/** Wraps a transport of the protocol library: counts requests of the server and closes the connection when they exceed a limit. */
import type {
  JSONRPCMessage,
  MessageExtraInfo,
  Transport,
  TransportSendOptions,
} from '@modelcontextprotocol/client'
import type { StdioClientTransport } from '@modelcontextprotocol/client/stdio'

/** Maximum number of server requests (such as pings) whose response is not yet sent; many may arrive at once. */
const MAX_OPEN_ANSWERS = 16
const MAX_MESSAGE_DEPTH = 200
const INTERNAL_ERROR = -32603

export class ObservedTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: <T extends JSONRPCMessage>(message: T, extra?: MessageExtraInfo) => void
  /** Receives responses to requests that the library did not send. */
  onanswer?: (message: JSONRPCMessage) => boolean
  readonly #inner: Transport
  #openAnswers = 0
  #isClosing = false
  #isClosed = false

  /** @param endsOnError whether an error after the start ends the transport */
  constructor(inner: Transport, endsOnError: boolean) {
    this.#inner = inner
    let hasStarted = false
    inner.onclose = () => this.#ended()
    inner.onerror = (error) => {
      this.onerror?.(error)
      if (endsOnError && hasStarted) void this.close()
    }
    inner.onmessage = (message, extra) => {
      hasStarted = true
      this.receive(message, extra)
    }
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId
  }

  /** Whether each request has an HTTP exchange of its own. */
  get hasPerRequestStream(): boolean {
    return this.#inner.hasPerRequestStream === true
  }

  setProtocolVersion = (version: string): void => {
    this.#inner.setProtocolVersion?.(version)
  }

  start(): Promise<void> {
    return this.#inner.start()
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    try {
      await this.#inner.send(message, options)
    } finally {
      if (!('method' in message)) this.#openAnswers--
    }
  }

  async close(): Promise<void> {
    this.#isClosing = true
    try {
      await this.#inner.close()
    } finally {
      this.#ended()
    }
  }

  /** Handles a message of the server, also one that was not received by the inner transport. */
  receive(message: JSONRPCMessage, extra?: MessageExtraInfo): void {
    if (this.#isClosing) return
    if ('method' in message && 'id' in message && ++this.#openAnswers > MAX_OPEN_ANSWERS) {
      this.onerror?.(new Error('the server sends too many requests'))
      void this.close()
      return
    }
    if (!isTooDeep(message)) this.#pass(message, extra)
    else if ('result' in message) {
      const error = { code: INTERNAL_ERROR, message: 'the answer is nested too deeply' }
      this.#pass({ jsonrpc: '2.0', id: message.id, error }, extra)
    }
  }

  #pass(message: JSONRPCMessage, extra?: MessageExtraInfo): void {
    if (this.onanswer?.(message) !== true) this.onmessage?.(message, extra)
  }

  #ended(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.onclose?.()
  }
}

/** A program on standard input and output; the library recognizes one by these members. */
export class ObservedProgram extends ObservedTransport {
  readonly #program: StdioClientTransport

  constructor(program: StdioClientTransport) {
    super(program, false)
    this.#program = program
  }

  get pid(): number | null {
    return this.#program.pid
  }

  get stderr(): StdioClientTransport['stderr'] {
    return this.#program.stderr
  }
}

/** Whether a value is nested too deeply for recursive readers. Iterates by level, without recursion. */
function isTooDeep(message: unknown): boolean {
  let level: unknown[] = [message]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_MESSAGE_DEPTH) return true
    const next: unknown[] = []
    for (const value of level)
      for (const member of Object.values(value as object))
        if (typeof member === 'object' && member !== null) next.push(member)
    level = next
  }
  return false
}
