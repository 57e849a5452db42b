/** Made by proto/generate.ts from proto/trtllm_service.proto: change that instead. @hot */
import { Reader, Writer } from '../wire.ts'

export const TrtllmService = {
  Generate: '/trtllm.TrtllmService/Generate',
  Embed: '/trtllm.TrtllmService/Embed',
  HealthCheck: '/trtllm.TrtllmService/HealthCheck',
  Abort: '/trtllm.TrtllmService/Abort',
  GetModelInfo: '/trtllm.TrtllmService/GetModelInfo',
  GetServerInfo: '/trtllm.TrtllmService/GetServerInfo',
  GetTokenizer: '/trtllm.TrtllmService/GetTokenizer',
  SubscribeKvEvents: '/trtllm.TrtllmService/SubscribeKvEvents',
} as const

export const GuidedDecodingParamsGuideType = {
  GUIDE_TYPE_UNSPECIFIED: 0,
  GUIDE_TYPE_JSON: 1,
  GUIDE_TYPE_JSON_SCHEMA: 2,
  GUIDE_TYPE_REGEX: 3,
  GUIDE_TYPE_EBNF_GRAMMAR: 4,
  GUIDE_TYPE_STRUCTURAL_TAG: 5,
} as const

export const DisaggregatedParamsRequestType = {
  REQUEST_TYPE_CONTEXT_AND_GENERATION: 0,
  REQUEST_TYPE_CONTEXT_ONLY: 1,
  REQUEST_TYPE_GENERATION_ONLY: 2,
} as const

export interface GenerateRequest {
  requestId: string
  tokenized: TokenizedInput | undefined
  samplingConfig: SamplingConfig | undefined
  outputConfig: OutputConfig | undefined
  maxTokens: number
  streaming: boolean
  guidedDecoding: GuidedDecodingParams | undefined
  embeddingBias: number[]
  loraConfig: LoraConfig | undefined
  promptTuningConfig: PromptTuningConfig | undefined
  multimodalInput: MultimodalInput | undefined
  kvCacheRetention: KvCacheRetentionConfig | undefined
  disaggregatedParams: DisaggregatedParams | undefined
  lookaheadConfig: LookaheadConfig | undefined
  cacheSaltId: bigint | undefined
  arrivalTime: number | undefined
  stop: string[]
  stopTokenIds: number[]
  ignoreEos: boolean
  bad: string[]
  badTokenIds: number[]
  includeStopTokenInOutput: boolean
}

export interface GenerateRequestFields {
  readonly requestId?: string
  readonly tokenized?: TokenizedInputFields
  readonly samplingConfig?: SamplingConfigFields
  readonly outputConfig?: OutputConfigFields
  readonly maxTokens?: number
  readonly streaming?: boolean
  readonly guidedDecoding?: GuidedDecodingParamsFields
  readonly embeddingBias?: ArrayLike<number>
  readonly loraConfig?: LoraConfigFields
  readonly promptTuningConfig?: PromptTuningConfigFields
  readonly multimodalInput?: MultimodalInputFields
  readonly kvCacheRetention?: KvCacheRetentionConfigFields
  readonly disaggregatedParams?: DisaggregatedParamsFields
  readonly lookaheadConfig?: LookaheadConfigFields
  readonly cacheSaltId?: bigint
  readonly arrivalTime?: number
  readonly stop?: readonly string[]
  readonly stopTokenIds?: ArrayLike<number>
  readonly ignoreEos?: boolean
  readonly bad?: readonly string[]
  readonly badTokenIds?: ArrayLike<number>
  readonly includeStopTokenInOutput?: boolean
}

export function writeGenerateRequest(w: Writer, m: GenerateRequestFields): void {
  if (m.requestId !== undefined && m.requestId !== '') w.string(10, m.requestId)
  if (m.tokenized !== undefined) {
    const start = w.begin(18)
    writeTokenizedInput(w, m.tokenized)
    w.end(start)
  }
  if (m.samplingConfig !== undefined) {
    const start = w.begin(26)
    writeSamplingConfig(w, m.samplingConfig)
    w.end(start)
  }
  if (m.outputConfig !== undefined) {
    const start = w.begin(34)
    writeOutputConfig(w, m.outputConfig)
    w.end(start)
  }
  if (m.maxTokens !== undefined && m.maxTokens !== 0) w.uint32(40, m.maxTokens)
  if (m.streaming !== undefined && m.streaming) w.bool(48, m.streaming)
  if (m.guidedDecoding !== undefined) {
    const start = w.begin(90)
    writeGuidedDecodingParams(w, m.guidedDecoding)
    w.end(start)
  }
  if (m.embeddingBias !== undefined && m.embeddingBias.length > 0) w.floats(98, m.embeddingBias)
  if (m.loraConfig !== undefined) {
    const start = w.begin(106)
    writeLoraConfig(w, m.loraConfig)
    w.end(start)
  }
  if (m.promptTuningConfig !== undefined) {
    const start = w.begin(114)
    writePromptTuningConfig(w, m.promptTuningConfig)
    w.end(start)
  }
  if (m.multimodalInput !== undefined) {
    const start = w.begin(122)
    writeMultimodalInput(w, m.multimodalInput)
    w.end(start)
  }
  if (m.kvCacheRetention !== undefined) {
    const start = w.begin(130)
    writeKvCacheRetentionConfig(w, m.kvCacheRetention)
    w.end(start)
  }
  if (m.disaggregatedParams !== undefined) {
    const start = w.begin(138)
    writeDisaggregatedParams(w, m.disaggregatedParams)
    w.end(start)
  }
  if (m.lookaheadConfig !== undefined) {
    const start = w.begin(146)
    writeLookaheadConfig(w, m.lookaheadConfig)
    w.end(start)
  }
  if (m.cacheSaltId !== undefined) w.int64(152, m.cacheSaltId)
  if (m.arrivalTime !== undefined) w.double(161, m.arrivalTime)
  if (m.stop !== undefined && m.stop.length > 0)
    for (const one of m.stop) {
      w.string(170, one)
    }
  if (m.stopTokenIds !== undefined && m.stopTokenIds.length > 0) w.uint32s(178, m.stopTokenIds)
  if (m.ignoreEos !== undefined && m.ignoreEos) w.bool(184, m.ignoreEos)
  if (m.bad !== undefined && m.bad.length > 0)
    for (const one of m.bad) {
      w.string(194, one)
    }
  if (m.badTokenIds !== undefined && m.badTokenIds.length > 0) w.uint32s(202, m.badTokenIds)
  if (m.includeStopTokenInOutput !== undefined && m.includeStopTokenInOutput) w.bool(208, m.includeStopTokenInOutput)
}

export function encodeGenerateRequest(m: GenerateRequestFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGenerateRequest(w, m)
  return w.finish()
}

export function readGenerateRequest(r: Reader, end: number): GenerateRequest {
  const m: GenerateRequest = {
    requestId: '',
    tokenized: undefined,
    samplingConfig: undefined,
    outputConfig: undefined,
    maxTokens: 0,
    streaming: false,
    guidedDecoding: undefined,
    embeddingBias: [],
    loraConfig: undefined,
    promptTuningConfig: undefined,
    multimodalInput: undefined,
    kvCacheRetention: undefined,
    disaggregatedParams: undefined,
    lookaheadConfig: undefined,
    cacheSaltId: undefined,
    arrivalTime: undefined,
    stop: [],
    stopTokenIds: [],
    ignoreEos: false,
    bad: [],
    badTokenIds: [],
    includeStopTokenInOutput: false,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.requestId = r.string()
        break
      case 18:
        m.tokenized = readTokenizedInput(r, r.end())
        break
      case 26:
        m.samplingConfig = readSamplingConfig(r, r.end())
        break
      case 34:
        m.outputConfig = readOutputConfig(r, r.end())
        break
      case 40:
        m.maxTokens = r.uint32()
        break
      case 48:
        m.streaming = r.bool()
        break
      case 90:
        m.guidedDecoding = readGuidedDecodingParams(r, r.end())
        break
      case 98:
        r.floats(m.embeddingBias)
        break
      case 101:
        r.add(m.embeddingBias, r.float())
        break
      case 106:
        m.loraConfig = readLoraConfig(r, r.end())
        break
      case 114:
        m.promptTuningConfig = readPromptTuningConfig(r, r.end())
        break
      case 122:
        m.multimodalInput = readMultimodalInput(r, r.end())
        break
      case 130:
        m.kvCacheRetention = readKvCacheRetentionConfig(r, r.end())
        break
      case 138:
        m.disaggregatedParams = readDisaggregatedParams(r, r.end())
        break
      case 146:
        m.lookaheadConfig = readLookaheadConfig(r, r.end())
        break
      case 152:
        m.cacheSaltId = r.int64()
        break
      case 161:
        m.arrivalTime = r.double()
        break
      case 170:
        r.add(m.stop, r.string())
        break
      case 178:
        r.uint32s(m.stopTokenIds)
        break
      case 176:
        r.add(m.stopTokenIds, r.uint32())
        break
      case 184:
        m.ignoreEos = r.bool()
        break
      case 194:
        r.add(m.bad, r.string())
        break
      case 202:
        r.uint32s(m.badTokenIds)
        break
      case 200:
        r.add(m.badTokenIds, r.uint32())
        break
      case 208:
        m.includeStopTokenInOutput = r.bool()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGenerateRequest(bytes: Buffer): GenerateRequest {
  return readGenerateRequest(new Reader(bytes), bytes.length)
}

export interface TokenizedInput {
  originalText: string
  inputTokenIds: number[]
  queryTokenIds: number[]
}

export interface TokenizedInputFields {
  readonly originalText?: string
  readonly inputTokenIds?: ArrayLike<number>
  readonly queryTokenIds?: ArrayLike<number>
}

export function writeTokenizedInput(w: Writer, m: TokenizedInputFields): void {
  if (m.originalText !== undefined && m.originalText !== '') w.string(10, m.originalText)
  if (m.inputTokenIds !== undefined && m.inputTokenIds.length > 0) w.uint32s(18, m.inputTokenIds)
  if (m.queryTokenIds !== undefined && m.queryTokenIds.length > 0) w.uint32s(26, m.queryTokenIds)
}

export function encodeTokenizedInput(m: TokenizedInputFields, size?: number): Buffer {
  const w = new Writer(size)
  writeTokenizedInput(w, m)
  return w.finish()
}

export function readTokenizedInput(r: Reader, end: number): TokenizedInput {
  const m: TokenizedInput = {
    originalText: '',
    inputTokenIds: [],
    queryTokenIds: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.originalText = r.string()
        break
      case 18:
        r.uint32s(m.inputTokenIds)
        break
      case 16:
        r.add(m.inputTokenIds, r.uint32())
        break
      case 26:
        r.uint32s(m.queryTokenIds)
        break
      case 24:
        r.add(m.queryTokenIds, r.uint32())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeTokenizedInput(bytes: Buffer): TokenizedInput {
  return readTokenizedInput(new Reader(bytes), bytes.length)
}

export interface SamplingConfig {
  beamWidth: number
  numReturnSequences: number
  topK: number | undefined
  topP: number | undefined
  topPMin: number | undefined
  topPResetIds: number | undefined
  topPDecay: number | undefined
  seed: bigint | undefined
  temperature: number | undefined
  minTokens: number | undefined
  beamSearchDiversityRate: number | undefined
  repetitionPenalty: number | undefined
  presencePenalty: number | undefined
  frequencyPenalty: number | undefined
  promptIgnoreLength: number | undefined
  lengthPenalty: number | undefined
  earlyStopping: number | undefined
  noRepeatNgramSize: number | undefined
  minP: number | undefined
  beamWidthArray: number[]
}

export interface SamplingConfigFields {
  readonly beamWidth?: number
  readonly numReturnSequences?: number
  readonly topK?: number
  readonly topP?: number
  readonly topPMin?: number
  readonly topPResetIds?: number
  readonly topPDecay?: number
  readonly seed?: bigint
  readonly temperature?: number
  readonly minTokens?: number
  readonly beamSearchDiversityRate?: number
  readonly repetitionPenalty?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  readonly promptIgnoreLength?: number
  readonly lengthPenalty?: number
  readonly earlyStopping?: number
  readonly noRepeatNgramSize?: number
  readonly minP?: number
  readonly beamWidthArray?: ArrayLike<number>
}

export function writeSamplingConfig(w: Writer, m: SamplingConfigFields): void {
  if (m.beamWidth !== undefined && m.beamWidth !== 0) w.int32(8, m.beamWidth)
  if (m.numReturnSequences !== undefined && m.numReturnSequences !== 0) w.uint32(16, m.numReturnSequences)
  if (m.topK !== undefined) w.int32(24, m.topK)
  if (m.topP !== undefined) w.float(37, m.topP)
  if (m.topPMin !== undefined) w.float(45, m.topPMin)
  if (m.topPResetIds !== undefined) w.int32(48, m.topPResetIds)
  if (m.topPDecay !== undefined) w.float(61, m.topPDecay)
  if (m.seed !== undefined) w.int64(64, m.seed)
  if (m.temperature !== undefined) w.float(77, m.temperature)
  if (m.minTokens !== undefined) w.uint32(80, m.minTokens)
  if (m.beamSearchDiversityRate !== undefined) w.float(93, m.beamSearchDiversityRate)
  if (m.repetitionPenalty !== undefined) w.float(101, m.repetitionPenalty)
  if (m.presencePenalty !== undefined) w.float(109, m.presencePenalty)
  if (m.frequencyPenalty !== undefined) w.float(117, m.frequencyPenalty)
  if (m.promptIgnoreLength !== undefined) w.int32(120, m.promptIgnoreLength)
  if (m.lengthPenalty !== undefined) w.float(133, m.lengthPenalty)
  if (m.earlyStopping !== undefined) w.int32(136, m.earlyStopping)
  if (m.noRepeatNgramSize !== undefined) w.int32(144, m.noRepeatNgramSize)
  if (m.minP !== undefined) w.float(157, m.minP)
  if (m.beamWidthArray !== undefined && m.beamWidthArray.length > 0) w.int32s(162, m.beamWidthArray)
}

export function encodeSamplingConfig(m: SamplingConfigFields, size?: number): Buffer {
  const w = new Writer(size)
  writeSamplingConfig(w, m)
  return w.finish()
}

export function readSamplingConfig(r: Reader, end: number): SamplingConfig {
  const m: SamplingConfig = {
    beamWidth: 0,
    numReturnSequences: 0,
    topK: undefined,
    topP: undefined,
    topPMin: undefined,
    topPResetIds: undefined,
    topPDecay: undefined,
    seed: undefined,
    temperature: undefined,
    minTokens: undefined,
    beamSearchDiversityRate: undefined,
    repetitionPenalty: undefined,
    presencePenalty: undefined,
    frequencyPenalty: undefined,
    promptIgnoreLength: undefined,
    lengthPenalty: undefined,
    earlyStopping: undefined,
    noRepeatNgramSize: undefined,
    minP: undefined,
    beamWidthArray: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.beamWidth = r.int32()
        break
      case 16:
        m.numReturnSequences = r.uint32()
        break
      case 24:
        m.topK = r.int32()
        break
      case 37:
        m.topP = r.float()
        break
      case 45:
        m.topPMin = r.float()
        break
      case 48:
        m.topPResetIds = r.int32()
        break
      case 61:
        m.topPDecay = r.float()
        break
      case 64:
        m.seed = r.uint64()
        break
      case 77:
        m.temperature = r.float()
        break
      case 80:
        m.minTokens = r.uint32()
        break
      case 93:
        m.beamSearchDiversityRate = r.float()
        break
      case 101:
        m.repetitionPenalty = r.float()
        break
      case 109:
        m.presencePenalty = r.float()
        break
      case 117:
        m.frequencyPenalty = r.float()
        break
      case 120:
        m.promptIgnoreLength = r.int32()
        break
      case 133:
        m.lengthPenalty = r.float()
        break
      case 136:
        m.earlyStopping = r.int32()
        break
      case 144:
        m.noRepeatNgramSize = r.int32()
        break
      case 157:
        m.minP = r.float()
        break
      case 162:
        r.int32s(m.beamWidthArray)
        break
      case 160:
        r.add(m.beamWidthArray, r.int32())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeSamplingConfig(bytes: Buffer): SamplingConfig {
  return readSamplingConfig(new Reader(bytes), bytes.length)
}

export interface OutputConfig {
  logprobs: number | undefined
  promptLogprobs: number | undefined
  returnContextLogits: boolean
  returnGenerationLogits: boolean
  excludeInputFromOutput: boolean
  returnEncoderOutput: boolean
  returnPerfMetrics: boolean
}

export interface OutputConfigFields {
  readonly logprobs?: number
  readonly promptLogprobs?: number
  readonly returnContextLogits?: boolean
  readonly returnGenerationLogits?: boolean
  readonly excludeInputFromOutput?: boolean
  readonly returnEncoderOutput?: boolean
  readonly returnPerfMetrics?: boolean
}

export function writeOutputConfig(w: Writer, m: OutputConfigFields): void {
  if (m.logprobs !== undefined) w.int32(8, m.logprobs)
  if (m.promptLogprobs !== undefined) w.int32(16, m.promptLogprobs)
  if (m.returnContextLogits !== undefined && m.returnContextLogits) w.bool(24, m.returnContextLogits)
  if (m.returnGenerationLogits !== undefined && m.returnGenerationLogits) w.bool(32, m.returnGenerationLogits)
  if (m.excludeInputFromOutput !== undefined && m.excludeInputFromOutput) w.bool(40, m.excludeInputFromOutput)
  if (m.returnEncoderOutput !== undefined && m.returnEncoderOutput) w.bool(48, m.returnEncoderOutput)
  if (m.returnPerfMetrics !== undefined && m.returnPerfMetrics) w.bool(56, m.returnPerfMetrics)
}

export function encodeOutputConfig(m: OutputConfigFields, size?: number): Buffer {
  const w = new Writer(size)
  writeOutputConfig(w, m)
  return w.finish()
}

export function readOutputConfig(r: Reader, end: number): OutputConfig {
  const m: OutputConfig = {
    logprobs: undefined,
    promptLogprobs: undefined,
    returnContextLogits: false,
    returnGenerationLogits: false,
    excludeInputFromOutput: false,
    returnEncoderOutput: false,
    returnPerfMetrics: false,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.logprobs = r.int32()
        break
      case 16:
        m.promptLogprobs = r.int32()
        break
      case 24:
        m.returnContextLogits = r.bool()
        break
      case 32:
        m.returnGenerationLogits = r.bool()
        break
      case 40:
        m.excludeInputFromOutput = r.bool()
        break
      case 48:
        m.returnEncoderOutput = r.bool()
        break
      case 56:
        m.returnPerfMetrics = r.bool()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeOutputConfig(bytes: Buffer): OutputConfig {
  return readOutputConfig(new Reader(bytes), bytes.length)
}

export interface GuidedDecodingParams {
  guideType: number
  guide: string
}

export interface GuidedDecodingParamsFields {
  readonly guideType?: number
  readonly guide?: string
}

export function writeGuidedDecodingParams(w: Writer, m: GuidedDecodingParamsFields): void {
  if (m.guideType !== undefined && m.guideType !== 0) w.int32(8, m.guideType)
  if (m.guide !== undefined && m.guide !== '') w.string(18, m.guide)
}

export function encodeGuidedDecodingParams(m: GuidedDecodingParamsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGuidedDecodingParams(w, m)
  return w.finish()
}

export function readGuidedDecodingParams(r: Reader, end: number): GuidedDecodingParams {
  const m: GuidedDecodingParams = {
    guideType: 0,
    guide: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.guideType = r.int32()
        break
      case 18:
        m.guide = r.string()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGuidedDecodingParams(bytes: Buffer): GuidedDecodingParams {
  return readGuidedDecodingParams(new Reader(bytes), bytes.length)
}

export interface LoraConfig {
  taskId: bigint
  weights: Buffer | undefined
  configJson: string | undefined
}

export interface LoraConfigFields {
  readonly taskId?: bigint
  readonly weights?: Buffer
  readonly configJson?: string
}

export function writeLoraConfig(w: Writer, m: LoraConfigFields): void {
  if (m.taskId !== undefined && m.taskId !== 0n) w.int64(8, m.taskId)
  if (m.weights !== undefined) w.bytes(18, m.weights)
  if (m.configJson !== undefined) w.string(26, m.configJson)
}

export function encodeLoraConfig(m: LoraConfigFields, size?: number): Buffer {
  const w = new Writer(size)
  writeLoraConfig(w, m)
  return w.finish()
}

export function readLoraConfig(r: Reader, end: number): LoraConfig {
  const m: LoraConfig = {
    taskId: 0n,
    weights: undefined,
    configJson: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.taskId = r.int64()
        break
      case 18:
        m.weights = r.bytes()
        break
      case 26:
        m.configJson = r.string()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeLoraConfig(bytes: Buffer): LoraConfig {
  return readLoraConfig(new Reader(bytes), bytes.length)
}

export interface PromptTuningConfig {
  embeddingTable: Buffer
}

export interface PromptTuningConfigFields {
  readonly embeddingTable?: Buffer
}

export function writePromptTuningConfig(w: Writer, m: PromptTuningConfigFields): void {
  if (m.embeddingTable !== undefined && m.embeddingTable.length > 0) w.bytes(10, m.embeddingTable)
}

export function encodePromptTuningConfig(m: PromptTuningConfigFields, size?: number): Buffer {
  const w = new Writer(size)
  writePromptTuningConfig(w, m)
  return w.finish()
}

export function readPromptTuningConfig(r: Reader, end: number): PromptTuningConfig {
  const m: PromptTuningConfig = {
    embeddingTable: Buffer.alloc(0),
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.embeddingTable = r.bytes()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodePromptTuningConfig(bytes: Buffer): PromptTuningConfig {
  return readPromptTuningConfig(new Reader(bytes), bytes.length)
}

export interface MultimodalInput {
  imageData: Buffer[]
}

export interface MultimodalInputFields {
  readonly imageData?: readonly Buffer[]
}

export function writeMultimodalInput(w: Writer, m: MultimodalInputFields): void {
  if (m.imageData !== undefined && m.imageData.length > 0)
    for (const one of m.imageData) {
      w.bytes(10, one)
    }
}

export function encodeMultimodalInput(m: MultimodalInputFields, size?: number): Buffer {
  const w = new Writer(size)
  writeMultimodalInput(w, m)
  return w.finish()
}

export function readMultimodalInput(r: Reader, end: number): MultimodalInput {
  const m: MultimodalInput = {
    imageData: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.add(m.imageData, r.bytes())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeMultimodalInput(bytes: Buffer): MultimodalInput {
  return readMultimodalInput(new Reader(bytes), bytes.length)
}

export interface KvCacheRetentionConfig {
  policy: string
  configJson: string
}

export interface KvCacheRetentionConfigFields {
  readonly policy?: string
  readonly configJson?: string
}

export function writeKvCacheRetentionConfig(w: Writer, m: KvCacheRetentionConfigFields): void {
  if (m.policy !== undefined && m.policy !== '') w.string(10, m.policy)
  if (m.configJson !== undefined && m.configJson !== '') w.string(18, m.configJson)
}

export function encodeKvCacheRetentionConfig(m: KvCacheRetentionConfigFields, size?: number): Buffer {
  const w = new Writer(size)
  writeKvCacheRetentionConfig(w, m)
  return w.finish()
}

export function readKvCacheRetentionConfig(r: Reader, end: number): KvCacheRetentionConfig {
  const m: KvCacheRetentionConfig = {
    policy: '',
    configJson: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.policy = r.string()
        break
      case 18:
        m.configJson = r.string()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeKvCacheRetentionConfig(bytes: Buffer): KvCacheRetentionConfig {
  return readKvCacheRetentionConfig(new Reader(bytes), bytes.length)
}

export interface DisaggregatedParams {
  requestType: number
  ctxRequestId: string
  contextPhaseParams: ContextPhaseParams | undefined
}

export interface DisaggregatedParamsFields {
  readonly requestType?: number
  readonly ctxRequestId?: string
  readonly contextPhaseParams?: ContextPhaseParamsFields
}

export function writeDisaggregatedParams(w: Writer, m: DisaggregatedParamsFields): void {
  if (m.requestType !== undefined && m.requestType !== 0) w.int32(8, m.requestType)
  if (m.ctxRequestId !== undefined && m.ctxRequestId !== '') w.string(18, m.ctxRequestId)
  if (m.contextPhaseParams !== undefined) {
    const start = w.begin(26)
    writeContextPhaseParams(w, m.contextPhaseParams)
    w.end(start)
  }
}

export function encodeDisaggregatedParams(m: DisaggregatedParamsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeDisaggregatedParams(w, m)
  return w.finish()
}

export function readDisaggregatedParams(r: Reader, end: number): DisaggregatedParams {
  const m: DisaggregatedParams = {
    requestType: 0,
    ctxRequestId: '',
    contextPhaseParams: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.requestType = r.int32()
        break
      case 18:
        m.ctxRequestId = r.string()
        break
      case 26:
        m.contextPhaseParams = readContextPhaseParams(r, r.end())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeDisaggregatedParams(bytes: Buffer): DisaggregatedParams {
  return readDisaggregatedParams(new Reader(bytes), bytes.length)
}

export interface ContextPhaseParams {
  firstGenTokenId: number
  kvCacheBlocks: Buffer
}

export interface ContextPhaseParamsFields {
  readonly firstGenTokenId?: number
  readonly kvCacheBlocks?: Buffer
}

export function writeContextPhaseParams(w: Writer, m: ContextPhaseParamsFields): void {
  if (m.firstGenTokenId !== undefined && m.firstGenTokenId !== 0) w.uint32(8, m.firstGenTokenId)
  if (m.kvCacheBlocks !== undefined && m.kvCacheBlocks.length > 0) w.bytes(18, m.kvCacheBlocks)
}

export function encodeContextPhaseParams(m: ContextPhaseParamsFields, size?: number): Buffer {
  const w = new Writer(size)
  writeContextPhaseParams(w, m)
  return w.finish()
}

export function readContextPhaseParams(r: Reader, end: number): ContextPhaseParams {
  const m: ContextPhaseParams = {
    firstGenTokenId: 0,
    kvCacheBlocks: Buffer.alloc(0),
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.firstGenTokenId = r.uint32()
        break
      case 18:
        m.kvCacheBlocks = r.bytes()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeContextPhaseParams(bytes: Buffer): ContextPhaseParams {
  return readContextPhaseParams(new Reader(bytes), bytes.length)
}

export interface LookaheadConfig {
  maxWindowSize: number
  maxNgramSize: number
  maxVerificationSetSize: number
}

export interface LookaheadConfigFields {
  readonly maxWindowSize?: number
  readonly maxNgramSize?: number
  readonly maxVerificationSetSize?: number
}

export function writeLookaheadConfig(w: Writer, m: LookaheadConfigFields): void {
  if (m.maxWindowSize !== undefined && m.maxWindowSize !== 0) w.int32(8, m.maxWindowSize)
  if (m.maxNgramSize !== undefined && m.maxNgramSize !== 0) w.int32(16, m.maxNgramSize)
  if (m.maxVerificationSetSize !== undefined && m.maxVerificationSetSize !== 0) w.int32(24, m.maxVerificationSetSize)
}

export function encodeLookaheadConfig(m: LookaheadConfigFields, size?: number): Buffer {
  const w = new Writer(size)
  writeLookaheadConfig(w, m)
  return w.finish()
}

export function readLookaheadConfig(r: Reader, end: number): LookaheadConfig {
  const m: LookaheadConfig = {
    maxWindowSize: 0,
    maxNgramSize: 0,
    maxVerificationSetSize: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.maxWindowSize = r.int32()
        break
      case 16:
        m.maxNgramSize = r.int32()
        break
      case 24:
        m.maxVerificationSetSize = r.int32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeLookaheadConfig(bytes: Buffer): LookaheadConfig {
  return readLookaheadConfig(new Reader(bytes), bytes.length)
}

export interface GenerateResponse {
  requestId: string
  chunk: GenerateStreamChunk | undefined
  complete: GenerateComplete | undefined
}

export interface GenerateResponseFields {
  readonly requestId?: string
  readonly chunk?: GenerateStreamChunkFields
  readonly complete?: GenerateCompleteFields
}

export function writeGenerateResponse(w: Writer, m: GenerateResponseFields): void {
  if (m.requestId !== undefined && m.requestId !== '') w.string(10, m.requestId)
  if (m.chunk !== undefined) {
    const start = w.begin(18)
    writeGenerateStreamChunk(w, m.chunk)
    w.end(start)
  }
  if (m.complete !== undefined) {
    const start = w.begin(26)
    writeGenerateComplete(w, m.complete)
    w.end(start)
  }
}

export function encodeGenerateResponse(m: GenerateResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGenerateResponse(w, m)
  return w.finish()
}

export function readGenerateResponse(r: Reader, end: number): GenerateResponse {
  const m: GenerateResponse = {
    requestId: '',
    chunk: undefined,
    complete: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.requestId = r.string()
        break
      case 18:
        m.chunk = readGenerateStreamChunk(r, r.end())
        break
      case 26:
        m.complete = readGenerateComplete(r, r.end())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGenerateResponse(bytes: Buffer): GenerateResponse {
  return readGenerateResponse(new Reader(bytes), bytes.length)
}

export interface GenerateStreamChunk {
  tokenIds: number[]
  sequenceIndex: number
  promptTokens: number
  completionTokens: number
  cachedTokens: number
  logprobs: TokenLogprob[]
}

export interface GenerateStreamChunkFields {
  readonly tokenIds?: ArrayLike<number>
  readonly sequenceIndex?: number
  readonly promptTokens?: number
  readonly completionTokens?: number
  readonly cachedTokens?: number
  readonly logprobs?: readonly TokenLogprobFields[]
}

export function writeGenerateStreamChunk(w: Writer, m: GenerateStreamChunkFields): void {
  if (m.tokenIds !== undefined && m.tokenIds.length > 0) w.uint32s(10, m.tokenIds)
  if (m.sequenceIndex !== undefined && m.sequenceIndex !== 0) w.uint32(16, m.sequenceIndex)
  if (m.promptTokens !== undefined && m.promptTokens !== 0) w.uint32(24, m.promptTokens)
  if (m.completionTokens !== undefined && m.completionTokens !== 0) w.uint32(32, m.completionTokens)
  if (m.cachedTokens !== undefined && m.cachedTokens !== 0) w.uint32(40, m.cachedTokens)
  if (m.logprobs !== undefined && m.logprobs.length > 0)
    for (const one of m.logprobs) {
      const start = w.begin(50)
      writeTokenLogprob(w, one)
      w.end(start)
    }
}

export function encodeGenerateStreamChunk(m: GenerateStreamChunkFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGenerateStreamChunk(w, m)
  return w.finish()
}

export function readGenerateStreamChunk(r: Reader, end: number): GenerateStreamChunk {
  const m: GenerateStreamChunk = {
    tokenIds: [],
    sequenceIndex: 0,
    promptTokens: 0,
    completionTokens: 0,
    cachedTokens: 0,
    logprobs: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.uint32s(m.tokenIds)
        break
      case 8:
        r.add(m.tokenIds, r.uint32())
        break
      case 16:
        m.sequenceIndex = r.uint32()
        break
      case 24:
        m.promptTokens = r.uint32()
        break
      case 32:
        m.completionTokens = r.uint32()
        break
      case 40:
        m.cachedTokens = r.uint32()
        break
      case 50:
        r.add(m.logprobs, readTokenLogprob(r, r.end()))
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGenerateStreamChunk(bytes: Buffer): GenerateStreamChunk {
  return readGenerateStreamChunk(new Reader(bytes), bytes.length)
}

export interface GenerateComplete {
  outputTokenIds: number[]
  sequenceIndex: number
  finishReason: string
  matchedStopStr: string | undefined
  matchedTokenId: number | undefined
  promptTokens: number
  completionTokens: number
  cachedTokens: number
  logprobs: TokenLogprob[]
  promptLogprobs: TokenLogprob[]
  perfMetrics: PerfMetrics | undefined
  contextLogits: Buffer | undefined
  generationLogits: Buffer | undefined
  specAcceptedTokens: number
  specDraftTokens: number
}

export interface GenerateCompleteFields {
  readonly outputTokenIds?: ArrayLike<number>
  readonly sequenceIndex?: number
  readonly finishReason?: string
  readonly matchedStopStr?: string
  readonly matchedTokenId?: number
  readonly promptTokens?: number
  readonly completionTokens?: number
  readonly cachedTokens?: number
  readonly logprobs?: readonly TokenLogprobFields[]
  readonly promptLogprobs?: readonly TokenLogprobFields[]
  readonly perfMetrics?: PerfMetricsFields
  readonly contextLogits?: Buffer
  readonly generationLogits?: Buffer
  readonly specAcceptedTokens?: number
  readonly specDraftTokens?: number
}

export function writeGenerateComplete(w: Writer, m: GenerateCompleteFields): void {
  if (m.outputTokenIds !== undefined && m.outputTokenIds.length > 0) w.uint32s(10, m.outputTokenIds)
  if (m.sequenceIndex !== undefined && m.sequenceIndex !== 0) w.uint32(16, m.sequenceIndex)
  if (m.finishReason !== undefined && m.finishReason !== '') w.string(26, m.finishReason)
  if (m.matchedStopStr !== undefined) w.string(34, m.matchedStopStr)
  if (m.matchedTokenId !== undefined) w.uint32(104, m.matchedTokenId)
  if (m.promptTokens !== undefined && m.promptTokens !== 0) w.uint32(40, m.promptTokens)
  if (m.completionTokens !== undefined && m.completionTokens !== 0) w.uint32(48, m.completionTokens)
  if (m.cachedTokens !== undefined && m.cachedTokens !== 0) w.uint32(56, m.cachedTokens)
  if (m.logprobs !== undefined && m.logprobs.length > 0)
    for (const one of m.logprobs) {
      const start = w.begin(66)
      writeTokenLogprob(w, one)
      w.end(start)
    }
  if (m.promptLogprobs !== undefined && m.promptLogprobs.length > 0)
    for (const one of m.promptLogprobs) {
      const start = w.begin(74)
      writeTokenLogprob(w, one)
      w.end(start)
    }
  if (m.perfMetrics !== undefined) {
    const start = w.begin(82)
    writePerfMetrics(w, m.perfMetrics)
    w.end(start)
  }
  if (m.contextLogits !== undefined) w.bytes(90, m.contextLogits)
  if (m.generationLogits !== undefined) w.bytes(98, m.generationLogits)
  if (m.specAcceptedTokens !== undefined && m.specAcceptedTokens !== 0) w.uint32(112, m.specAcceptedTokens)
  if (m.specDraftTokens !== undefined && m.specDraftTokens !== 0) w.uint32(120, m.specDraftTokens)
}

export function encodeGenerateComplete(m: GenerateCompleteFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGenerateComplete(w, m)
  return w.finish()
}

export function readGenerateComplete(r: Reader, end: number): GenerateComplete {
  const m: GenerateComplete = {
    outputTokenIds: [],
    sequenceIndex: 0,
    finishReason: '',
    matchedStopStr: undefined,
    matchedTokenId: undefined,
    promptTokens: 0,
    completionTokens: 0,
    cachedTokens: 0,
    logprobs: [],
    promptLogprobs: [],
    perfMetrics: undefined,
    contextLogits: undefined,
    generationLogits: undefined,
    specAcceptedTokens: 0,
    specDraftTokens: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        r.uint32s(m.outputTokenIds)
        break
      case 8:
        r.add(m.outputTokenIds, r.uint32())
        break
      case 16:
        m.sequenceIndex = r.uint32()
        break
      case 26:
        m.finishReason = r.string()
        break
      case 34:
        m.matchedStopStr = r.string()
        break
      case 104:
        m.matchedTokenId = r.uint32()
        break
      case 40:
        m.promptTokens = r.uint32()
        break
      case 48:
        m.completionTokens = r.uint32()
        break
      case 56:
        m.cachedTokens = r.uint32()
        break
      case 66:
        r.add(m.logprobs, readTokenLogprob(r, r.end()))
        break
      case 74:
        r.add(m.promptLogprobs, readTokenLogprob(r, r.end()))
        break
      case 82:
        m.perfMetrics = readPerfMetrics(r, r.end())
        break
      case 90:
        m.contextLogits = r.bytes()
        break
      case 98:
        m.generationLogits = r.bytes()
        break
      case 112:
        m.specAcceptedTokens = r.uint32()
        break
      case 120:
        m.specDraftTokens = r.uint32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGenerateComplete(bytes: Buffer): GenerateComplete {
  return readGenerateComplete(new Reader(bytes), bytes.length)
}

export interface TokenLogprob {
  tokenId: number
  logprob: number
  topLogprobs: TopLogprob[]
}

export interface TokenLogprobFields {
  readonly tokenId?: number
  readonly logprob?: number
  readonly topLogprobs?: readonly TopLogprobFields[]
}

export function writeTokenLogprob(w: Writer, m: TokenLogprobFields): void {
  if (m.tokenId !== undefined && m.tokenId !== 0) w.uint32(8, m.tokenId)
  if (m.logprob !== undefined && m.logprob !== 0) w.float(21, m.logprob)
  if (m.topLogprobs !== undefined && m.topLogprobs.length > 0)
    for (const one of m.topLogprobs) {
      const start = w.begin(26)
      writeTopLogprob(w, one)
      w.end(start)
    }
}

export function encodeTokenLogprob(m: TokenLogprobFields, size?: number): Buffer {
  const w = new Writer(size)
  writeTokenLogprob(w, m)
  return w.finish()
}

export function readTokenLogprob(r: Reader, end: number): TokenLogprob {
  const m: TokenLogprob = {
    tokenId: 0,
    logprob: 0,
    topLogprobs: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.tokenId = r.uint32()
        break
      case 21:
        m.logprob = r.float()
        break
      case 26:
        r.add(m.topLogprobs, readTopLogprob(r, r.end()))
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeTokenLogprob(bytes: Buffer): TokenLogprob {
  return readTokenLogprob(new Reader(bytes), bytes.length)
}

export interface TopLogprob {
  tokenId: number
  logprob: number
}

export interface TopLogprobFields {
  readonly tokenId?: number
  readonly logprob?: number
}

export function writeTopLogprob(w: Writer, m: TopLogprobFields): void {
  if (m.tokenId !== undefined && m.tokenId !== 0) w.uint32(8, m.tokenId)
  if (m.logprob !== undefined && m.logprob !== 0) w.float(21, m.logprob)
}

export function encodeTopLogprob(m: TopLogprobFields, size?: number): Buffer {
  const w = new Writer(size)
  writeTopLogprob(w, m)
  return w.finish()
}

export function readTopLogprob(r: Reader, end: number): TopLogprob {
  const m: TopLogprob = {
    tokenId: 0,
    logprob: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.tokenId = r.uint32()
        break
      case 21:
        m.logprob = r.float()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeTopLogprob(bytes: Buffer): TopLogprob {
  return readTopLogprob(new Reader(bytes), bytes.length)
}

export interface PerfMetrics {
  arrivalTime: number
  firstScheduledTime: number
  firstTokenTime: number
  lastTokenTime: number
  kvCacheTransferStart: number
  kvCacheTransferEnd: number
  kvCacheSize: bigint
}

export interface PerfMetricsFields {
  readonly arrivalTime?: number
  readonly firstScheduledTime?: number
  readonly firstTokenTime?: number
  readonly lastTokenTime?: number
  readonly kvCacheTransferStart?: number
  readonly kvCacheTransferEnd?: number
  readonly kvCacheSize?: bigint
}

export function writePerfMetrics(w: Writer, m: PerfMetricsFields): void {
  if (m.arrivalTime !== undefined && m.arrivalTime !== 0) w.double(9, m.arrivalTime)
  if (m.firstScheduledTime !== undefined && m.firstScheduledTime !== 0) w.double(17, m.firstScheduledTime)
  if (m.firstTokenTime !== undefined && m.firstTokenTime !== 0) w.double(25, m.firstTokenTime)
  if (m.lastTokenTime !== undefined && m.lastTokenTime !== 0) w.double(33, m.lastTokenTime)
  if (m.kvCacheTransferStart !== undefined && m.kvCacheTransferStart !== 0) w.double(41, m.kvCacheTransferStart)
  if (m.kvCacheTransferEnd !== undefined && m.kvCacheTransferEnd !== 0) w.double(49, m.kvCacheTransferEnd)
  if (m.kvCacheSize !== undefined && m.kvCacheSize !== 0n) w.int64(56, m.kvCacheSize)
}

export function encodePerfMetrics(m: PerfMetricsFields, size?: number): Buffer {
  const w = new Writer(size)
  writePerfMetrics(w, m)
  return w.finish()
}

export function readPerfMetrics(r: Reader, end: number): PerfMetrics {
  const m: PerfMetrics = {
    arrivalTime: 0,
    firstScheduledTime: 0,
    firstTokenTime: 0,
    lastTokenTime: 0,
    kvCacheTransferStart: 0,
    kvCacheTransferEnd: 0,
    kvCacheSize: 0n,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 9:
        m.arrivalTime = r.double()
        break
      case 17:
        m.firstScheduledTime = r.double()
        break
      case 25:
        m.firstTokenTime = r.double()
        break
      case 33:
        m.lastTokenTime = r.double()
        break
      case 41:
        m.kvCacheTransferStart = r.double()
        break
      case 49:
        m.kvCacheTransferEnd = r.double()
        break
      case 56:
        m.kvCacheSize = r.int64()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodePerfMetrics(bytes: Buffer): PerfMetrics {
  return readPerfMetrics(new Reader(bytes), bytes.length)
}

export interface EmbedRequest {
  requestId: string
  tokenized: TokenizedInput | undefined
}

export interface EmbedRequestFields {
  readonly requestId?: string
  readonly tokenized?: TokenizedInputFields
}

export function writeEmbedRequest(w: Writer, m: EmbedRequestFields): void {
  if (m.requestId !== undefined && m.requestId !== '') w.string(10, m.requestId)
  if (m.tokenized !== undefined) {
    const start = w.begin(18)
    writeTokenizedInput(w, m.tokenized)
    w.end(start)
  }
}

export function encodeEmbedRequest(m: EmbedRequestFields, size?: number): Buffer {
  const w = new Writer(size)
  writeEmbedRequest(w, m)
  return w.finish()
}

export function readEmbedRequest(r: Reader, end: number): EmbedRequest {
  const m: EmbedRequest = {
    requestId: '',
    tokenized: undefined,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.requestId = r.string()
        break
      case 18:
        m.tokenized = readTokenizedInput(r, r.end())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeEmbedRequest(bytes: Buffer): EmbedRequest {
  return readEmbedRequest(new Reader(bytes), bytes.length)
}

export interface EmbedResponse {
  requestId: string
  embedding: number[]
  promptTokens: number
}

export interface EmbedResponseFields {
  readonly requestId?: string
  readonly embedding?: ArrayLike<number>
  readonly promptTokens?: number
}

export function writeEmbedResponse(w: Writer, m: EmbedResponseFields): void {
  if (m.requestId !== undefined && m.requestId !== '') w.string(10, m.requestId)
  if (m.embedding !== undefined && m.embedding.length > 0) w.floats(18, m.embedding)
  if (m.promptTokens !== undefined && m.promptTokens !== 0) w.uint32(24, m.promptTokens)
}

export function encodeEmbedResponse(m: EmbedResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeEmbedResponse(w, m)
  return w.finish()
}

export function readEmbedResponse(r: Reader, end: number): EmbedResponse {
  const m: EmbedResponse = {
    requestId: '',
    embedding: [],
    promptTokens: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.requestId = r.string()
        break
      case 18:
        r.floats(m.embedding)
        break
      case 21:
        r.add(m.embedding, r.float())
        break
      case 24:
        m.promptTokens = r.uint32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeEmbedResponse(bytes: Buffer): EmbedResponse {
  return readEmbedResponse(new Reader(bytes), bytes.length)
}

export interface HealthCheckResponse {
  status: string
}

export interface HealthCheckResponseFields {
  readonly status?: string
}

export function writeHealthCheckResponse(w: Writer, m: HealthCheckResponseFields): void {
  if (m.status !== undefined && m.status !== '') w.string(10, m.status)
}

export function encodeHealthCheckResponse(m: HealthCheckResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeHealthCheckResponse(w, m)
  return w.finish()
}

export function readHealthCheckResponse(r: Reader, end: number): HealthCheckResponse {
  const m: HealthCheckResponse = {
    status: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.status = r.string()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeHealthCheckResponse(bytes: Buffer): HealthCheckResponse {
  return readHealthCheckResponse(new Reader(bytes), bytes.length)
}

export interface AbortRequest {
  requestId: string
}

export interface AbortRequestFields {
  readonly requestId?: string
}

export function writeAbortRequest(w: Writer, m: AbortRequestFields): void {
  if (m.requestId !== undefined && m.requestId !== '') w.string(10, m.requestId)
}

export function encodeAbortRequest(m: AbortRequestFields, size?: number): Buffer {
  const w = new Writer(size)
  writeAbortRequest(w, m)
  return w.finish()
}

export function readAbortRequest(r: Reader, end: number): AbortRequest {
  const m: AbortRequest = {
    requestId: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.requestId = r.string()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeAbortRequest(bytes: Buffer): AbortRequest {
  return readAbortRequest(new Reader(bytes), bytes.length)
}

export interface AbortResponse {
  success: boolean
  message: string
}

export interface AbortResponseFields {
  readonly success?: boolean
  readonly message?: string
}

export function writeAbortResponse(w: Writer, m: AbortResponseFields): void {
  if (m.success !== undefined && m.success) w.bool(8, m.success)
  if (m.message !== undefined && m.message !== '') w.string(18, m.message)
}

export function encodeAbortResponse(m: AbortResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeAbortResponse(w, m)
  return w.finish()
}

export function readAbortResponse(r: Reader, end: number): AbortResponse {
  const m: AbortResponse = {
    success: false,
    message: '',
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 8:
        m.success = r.bool()
        break
      case 18:
        m.message = r.string()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeAbortResponse(bytes: Buffer): AbortResponse {
  return readAbortResponse(new Reader(bytes), bytes.length)
}

export interface GetModelInfoResponse {
  modelId: string
  maxInputLen: number
  maxSeqLen: number
  maxBatchSize: number
  vocabSize: number
  hiddenSize: number
  numLayers: number
  numHeads: number
  supportedFeatures: string[]
}

export interface GetModelInfoResponseFields {
  readonly modelId?: string
  readonly maxInputLen?: number
  readonly maxSeqLen?: number
  readonly maxBatchSize?: number
  readonly vocabSize?: number
  readonly hiddenSize?: number
  readonly numLayers?: number
  readonly numHeads?: number
  readonly supportedFeatures?: readonly string[]
}

export function writeGetModelInfoResponse(w: Writer, m: GetModelInfoResponseFields): void {
  if (m.modelId !== undefined && m.modelId !== '') w.string(10, m.modelId)
  if (m.maxInputLen !== undefined && m.maxInputLen !== 0) w.int32(16, m.maxInputLen)
  if (m.maxSeqLen !== undefined && m.maxSeqLen !== 0) w.int32(24, m.maxSeqLen)
  if (m.maxBatchSize !== undefined && m.maxBatchSize !== 0) w.int32(32, m.maxBatchSize)
  if (m.vocabSize !== undefined && m.vocabSize !== 0) w.int32(40, m.vocabSize)
  if (m.hiddenSize !== undefined && m.hiddenSize !== 0) w.int32(48, m.hiddenSize)
  if (m.numLayers !== undefined && m.numLayers !== 0) w.int32(56, m.numLayers)
  if (m.numHeads !== undefined && m.numHeads !== 0) w.int32(64, m.numHeads)
  if (m.supportedFeatures !== undefined && m.supportedFeatures.length > 0)
    for (const one of m.supportedFeatures) {
      w.string(74, one)
    }
}

export function encodeGetModelInfoResponse(m: GetModelInfoResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGetModelInfoResponse(w, m)
  return w.finish()
}

export function readGetModelInfoResponse(r: Reader, end: number): GetModelInfoResponse {
  const m: GetModelInfoResponse = {
    modelId: '',
    maxInputLen: 0,
    maxSeqLen: 0,
    maxBatchSize: 0,
    vocabSize: 0,
    hiddenSize: 0,
    numLayers: 0,
    numHeads: 0,
    supportedFeatures: [],
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.modelId = r.string()
        break
      case 16:
        m.maxInputLen = r.int32()
        break
      case 24:
        m.maxSeqLen = r.int32()
        break
      case 32:
        m.maxBatchSize = r.int32()
        break
      case 40:
        m.vocabSize = r.int32()
        break
      case 48:
        m.hiddenSize = r.int32()
        break
      case 56:
        m.numLayers = r.int32()
        break
      case 64:
        m.numHeads = r.int32()
        break
      case 74:
        r.add(m.supportedFeatures, r.string())
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGetModelInfoResponse(bytes: Buffer): GetModelInfoResponse {
  return readGetModelInfoResponse(new Reader(bytes), bytes.length)
}

export interface GetServerInfoResponse {
  version: string
  backend: string
  tensorParallelSize: number
  pipelineParallelSize: number
  contextParallelSize: number
  worldSize: number
}

export interface GetServerInfoResponseFields {
  readonly version?: string
  readonly backend?: string
  readonly tensorParallelSize?: number
  readonly pipelineParallelSize?: number
  readonly contextParallelSize?: number
  readonly worldSize?: number
}

export function writeGetServerInfoResponse(w: Writer, m: GetServerInfoResponseFields): void {
  if (m.version !== undefined && m.version !== '') w.string(10, m.version)
  if (m.backend !== undefined && m.backend !== '') w.string(18, m.backend)
  if (m.tensorParallelSize !== undefined && m.tensorParallelSize !== 0) w.int32(24, m.tensorParallelSize)
  if (m.pipelineParallelSize !== undefined && m.pipelineParallelSize !== 0) w.int32(32, m.pipelineParallelSize)
  if (m.contextParallelSize !== undefined && m.contextParallelSize !== 0) w.int32(40, m.contextParallelSize)
  if (m.worldSize !== undefined && m.worldSize !== 0) w.int32(48, m.worldSize)
}

export function encodeGetServerInfoResponse(m: GetServerInfoResponseFields, size?: number): Buffer {
  const w = new Writer(size)
  writeGetServerInfoResponse(w, m)
  return w.finish()
}

export function readGetServerInfoResponse(r: Reader, end: number): GetServerInfoResponse {
  const m: GetServerInfoResponse = {
    version: '',
    backend: '',
    tensorParallelSize: 0,
    pipelineParallelSize: 0,
    contextParallelSize: 0,
    worldSize: 0,
  }
  while (r.at < end) {
    const tag = r.uint32()
    switch (tag) {
      case 10:
        m.version = r.string()
        break
      case 18:
        m.backend = r.string()
        break
      case 24:
        m.tensorParallelSize = r.int32()
        break
      case 32:
        m.pipelineParallelSize = r.int32()
        break
      case 40:
        m.contextParallelSize = r.int32()
        break
      case 48:
        m.worldSize = r.int32()
        break
      default:
        r.skip(tag)
    }
  }
  r.close(end)
  return m
}

export function decodeGetServerInfoResponse(bytes: Buffer): GetServerInfoResponse {
  return readGetServerInfoResponse(new Reader(bytes), bytes.length)
}
