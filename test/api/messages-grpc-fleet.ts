/** Gateways with the messages plugin over a scripted gRPC engine that decodes and encodes text. */
import type { GenerateCall, Step } from '../support/scripted-engine.ts'
import { type GrpcFleet, type GrpcFleetOptions, openGrpcFleet, shareGrpcFleets } from './grpc-fleet.ts'
import { HELLO } from './messages-fleet.ts'

/** Fields of an sglang request that tests check. */
export interface EngineRequest {
  readonly requestId: string
  readonly stream: boolean
  readonly tokenized: { readonly originalText: string; readonly inputIds: readonly number[] }
  readonly samplingParams: Readonly<Record<string, unknown>> & {
    readonly constraint?: { readonly $case?: string }
    readonly jsonSchema?: string
  }
}

interface GrpcMessagesOptions extends GrpcFleetOptions {
  readonly messages?: Record<string, unknown>
  /** Output parsers; default: tool calls of Qwen and `<think>` tags. */
  readonly parsers?: Record<string, unknown>
}

export async function openGrpcMessages(options: GrpcMessagesOptions = {}) {
  return withMessages(await openGrpcFleet(fleetOptions(options)))
}

/** As `shareGrpcFleets`. */
export function shareGrpcMessages(): typeof openGrpcMessages {
  const open = shareGrpcFleets()
  return async (options = {}) => withMessages(await open(fleetOptions(options)))
}

function fleetOptions({ messages, parsers, ...options }: GrpcMessagesOptions): GrpcFleetOptions {
  return {
    ...options,
    plugins: {
      messages: messages ?? {},
      parsers: parsers ?? { toolParser: 'qwen', reasoningParser: 'qwen3' },
      ...options.plugins,
    },
  }
}

function withMessages(fleet: GrpcFleet) {
  const { engine, ids } = fleet
  /** Sets the engine's output, one token per message; its prompt count is that of the request. */
  async function engineAnswers(
    text: string,
    end: Record<string, unknown> = {},
    tail: readonly Step[] | null = null,
  ) {
    const tokens = await ids(text)
    engine.script = ({ request }) => {
      const { tokenized } = request as unknown as EngineRequest
      const promptTokens = tokenized.inputIds.length
      const steps = engine.steps(
        tokens.map((id) => [id]),
        end,
        request,
      )
      const counted = steps.map((step) => {
        if ('chunk' in step) return { chunk: { ...step.chunk, promptTokens } }
        return 'complete' in step
          ? { complete: { promptTokens, ...step.complete, ...promptOf(end, promptTokens) } }
          : step
      })
      return tail === null ? counted : [...counted.slice(0, -1), ...tail]
    }
    return tokens
  }
  return {
    ...fleet,
    engineAnswers,
    create: (body: Record<string, unknown> = {}, headers?: Record<string, string>, signal?: AbortSignal) =>
      fleet.post('/v1/messages', { ...HELLO, ...body }, headers, signal),
    asked: () => engine.calls.map(({ request }: GenerateCall) => request as unknown as EngineRequest),
  }
}

function promptOf(end: Record<string, unknown>, promptTokens: number) {
  return 'promptTokens' in end ? {} : { promptTokens }
}
