/** The messages of the engines that the simulated one can be. */
import * as mlx from '../../proto/gen/mlx-engine.ts'
import * as sglang from '../../proto/gen/sglang-scheduler.ts'
import * as trtllm from '../../proto/gen/trtllm-service.ts'
import * as vllm from '../../proto/gen/vllm-engine.ts'
import type { SimRuntime } from './config.ts'

export interface AskedGeneration {
  readonly id: string
  readonly promptIds: readonly number[]
  /** 0: the engine's own. */
  readonly maxTokens: number
  readonly isStream: boolean
  readonly ignoresEnd: boolean
}

export interface Counts {
  readonly promptTokens: number
  readonly finishReason: string
}

export interface GrpcCodec {
  readonly paths: Readonly<
    Record<'generate' | 'abort' | 'health' | 'modelInfo' | 'serverInfo' | 'tokenizer', string>
  >
  health(): Buffer
  modelInfo(model: string, tokenizerPath: string): Buffer
  readGenerate(message: Buffer): AskedGeneration
  readAbort(message: Buffer): readonly string[]
  /** @param total tokens so far */
  chunk(tokenIds: readonly number[], total: number, counts: Counts): Buffer
  complete(all: readonly number[], isStream: boolean, counts: Counts): Buffer
}

interface Service {
  readonly Generate: string
  readonly Abort: string
  readonly HealthCheck: string
  readonly GetModelInfo: string
  readonly GetServerInfo: string
  readonly GetTokenizer: string
}

const pathsOf = (service: Service) => ({
  generate: service.Generate,
  abort: service.Abort,
  health: service.HealthCheck,
  modelInfo: service.GetModelInfo,
  serverInfo: service.GetServerInfo,
  tokenizer: service.GetTokenizer,
})

export const GRPC_CODECS: Readonly<Record<SimRuntime, GrpcCodec>> = {
  sglang: {
    paths: pathsOf(sglang.SglangScheduler),
    health: () => sglang.encodeHealthCheckResponse({ healthy: true }),
    modelInfo: (servedModelName, tokenizerPath) =>
      sglang.encodeGetModelInfoResponse({ servedModelName, tokenizerPath, isGeneration: true }),
    readGenerate(message) {
      const { requestId, tokenized, samplingParams, stream } = sglang.decodeGenerateRequest(message)
      return {
        id: requestId,
        promptIds: tokenized?.inputIds ?? [],
        maxTokens: samplingParams?.maxNewTokens ?? 0,
        isStream: stream,
        ignoresEnd: samplingParams?.ignoreEos ?? false,
      }
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
    paths: pathsOf(vllm.VllmEngine),
    health: () => vllm.encodeHealthCheckResponse({ healthy: true }),
    modelInfo: (servedModelName, tokenizerPath) =>
      vllm.encodeGetModelInfoResponse({ servedModelName, tokenizerPath, isGeneration: true }),
    readGenerate(message) {
      const { requestId, tokenized, samplingParams, stream } = vllm.decodeGenerateRequest(message)
      return {
        id: requestId,
        promptIds: tokenized?.inputIds ?? [],
        maxTokens: samplingParams?.maxTokens ?? 0,
        isStream: stream,
        ignoresEnd: samplingParams?.ignoreEos ?? false,
      }
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
    paths: pathsOf(trtllm.TrtllmService),
    health: () => trtllm.encodeHealthCheckResponse({ status: 'OK' }),
    // This engine does not name its tokenizer.
    modelInfo: (modelId) => trtllm.encodeGetModelInfoResponse({ modelId }),
    readGenerate(message) {
      const { requestId, tokenized, maxTokens, streaming, ignoreEos } = trtllm.decodeGenerateRequest(message)
      return {
        id: requestId,
        promptIds: tokenized?.inputTokenIds ?? [],
        maxTokens,
        isStream: streaming,
        ignoresEnd: ignoreEos,
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
    paths: pathsOf(mlx.MlxEngine),
    health: () => mlx.encodeHealthCheckResponse({ healthy: true }),
    modelInfo: (servedModelName, modelPath) =>
      mlx.encodeGetModelInfoResponse({ servedModelName, modelPath, isGeneration: true }),
    readGenerate(message) {
      const { requestId, tokenized, samplingParams, stream } = mlx.decodeGenerateRequest(message)
      return {
        id: requestId,
        promptIds: tokenized?.inputIds ?? [],
        maxTokens: samplingParams?.maxTokens ?? 0,
        isStream: stream,
        ignoresEnd: samplingParams?.ignoreEos ?? false,
      }
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
