/** Encodes and decodes the gRPC messages of each simulated runtime. */
import * as mlx from '../../proto/gen/mlx-engine.ts'
import * as sglang from '../../proto/gen/sglang-scheduler.ts'
import * as trtllm from '../../proto/gen/trtllm-service.ts'
import * as vllm from '../../proto/gen/vllm-engine.ts'

export interface GenerateCall {
  readonly id: string
  readonly promptIds: readonly number[]
  /** 0: the default of the engine. */
  readonly maxTokens: number
  readonly isStream: boolean
  readonly ignoresEos: boolean
}

export interface Counts {
  readonly promptTokens: number
  readonly finishReason: string
}

export interface GrpcCodec {
  readonly paths: Readonly<
    Record<'Generate' | 'Abort' | 'HealthCheck' | 'GetModelInfo' | 'GetServerInfo' | 'GetTokenizer', string>
  >
  health(): Buffer
  modelInfo(model: string, tokenizerPath: string): Buffer
  readGenerate(message: Buffer): GenerateCall
  readAbort(message: Buffer): readonly string[]
  /** @param total tokens so far */
  chunk(tokenIds: readonly number[], total: number, counts: Counts): Buffer
  complete(all: readonly number[], isStream: boolean, counts: Counts): Buffer
}

interface GenerateMessage {
  readonly requestId: string
  readonly tokenized?: { readonly inputIds: readonly number[] }
  readonly samplingParams?: { readonly ignoreEos: boolean }
  readonly stream: boolean
}

function toCall(
  { requestId, tokenized, samplingParams, stream }: GenerateMessage,
  maxTokens = 0,
): GenerateCall {
  return {
    id: requestId,
    promptIds: tokenized?.inputIds ?? [],
    maxTokens,
    isStream: stream,
    ignoresEos: samplingParams?.ignoreEos ?? false,
  }
}

export const GRPC_CODECS: Readonly<Record<string, GrpcCodec>> = {
  sglang: {
    paths: sglang.SglangScheduler,
    health: () => sglang.encodeHealthCheckResponse({ healthy: true }),
    modelInfo: (servedModelName, tokenizerPath) =>
      sglang.encodeGetModelInfoResponse({ servedModelName, tokenizerPath, isGeneration: true }),
    readGenerate(message) {
      const request = sglang.decodeGenerateRequest(message)
      return toCall(request, request.samplingParams?.maxNewTokens)
    },
    readAbort: (message) => [sglang.decodeAbortRequest(message).requestId],
    chunk: (tokenIds, completionTokens, { promptTokens }) =>
      sglang.encodeGenerateResponse({ chunk: { tokenIds, completionTokens, promptTokens } }),
    complete: (all, isStream, counts) =>
      sglang.encodeGenerateResponse({
        complete: { outputIds: isStream ? all.slice(-1) : all, completionTokens: all.length, ...counts },
      }),
  },
  vllm: {
    paths: vllm.VllmEngine,
    health: () => vllm.encodeHealthCheckResponse({ healthy: true }),
    modelInfo: (servedModelName, tokenizerPath) =>
      vllm.encodeGetModelInfoResponse({ servedModelName, tokenizerPath, isGeneration: true }),
    readGenerate(message) {
      const request = vllm.decodeGenerateRequest(message)
      return toCall(request, request.samplingParams?.maxTokens)
    },
    readAbort: (message) => vllm.decodeAbortRequest(message).requestIds,
    chunk: (tokenIds, _total, { promptTokens }) =>
      vllm.encodeGenerateResponse({ chunk: { tokenIds, completionTokens: tokenIds.length, promptTokens } }),
    complete: (all, isStream, counts) =>
      vllm.encodeGenerateResponse({
        complete: {
          outputIds: isStream ? all.slice(-1) : all,
          completionTokens: isStream ? 1 : all.length,
          ...counts,
        },
      }),
  },
  trtllm: {
    paths: trtllm.TrtllmService,
    health: () => trtllm.encodeHealthCheckResponse({ status: 'OK' }),
    // This engine does not report its tokenizer.
    modelInfo: (modelId) => trtllm.encodeGetModelInfoResponse({ modelId }),
    readGenerate(message) {
      const { requestId, tokenized, maxTokens, streaming, ignoreEos } = trtllm.decodeGenerateRequest(message)
      return {
        id: requestId,
        promptIds: tokenized?.inputTokenIds ?? [],
        maxTokens,
        isStream: streaming,
        ignoresEos: ignoreEos,
      }
    },
    readAbort: (message) => [trtllm.decodeAbortRequest(message).requestId],
    chunk: (tokenIds, completionTokens, { promptTokens }) =>
      trtllm.encodeGenerateResponse({ chunk: { tokenIds, completionTokens, promptTokens } }),
    complete: (outputTokenIds, _isStream, counts) =>
      trtllm.encodeGenerateResponse({
        complete: { outputTokenIds, completionTokens: outputTokenIds.length, ...counts },
      }),
  },
  mlx: {
    paths: mlx.MlxEngine,
    health: () => mlx.encodeHealthCheckResponse({ healthy: true }),
    modelInfo: (servedModelName, modelPath) =>
      mlx.encodeGetModelInfoResponse({ servedModelName, modelPath, isGeneration: true }),
    readGenerate(message) {
      const request = mlx.decodeGenerateRequest(message)
      return toCall(request, request.samplingParams?.maxTokens)
    },
    readAbort: (message) => mlx.decodeAbortRequest(message).requestIds,
    chunk: (tokenIds, completionTokens, { promptTokens }) =>
      mlx.encodeGenerateResponse({ chunk: { tokenIds, completionTokens, promptTokens } }),
    complete: (all, isStream, counts) =>
      mlx.encodeGenerateResponse({
        complete: { outputIds: isStream ? [] : all, completionTokens: all.length, ...counts },
      }),
  },
}
