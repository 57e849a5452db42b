/** Helpers that several plugins use (`#shared`): no state that outlives a call site's object, no service tokens. */
export { answerErrors } from './formats/answer-errors.ts'
export { type AnswerLimits, AnswerReader } from './formats/answer-reader.ts'
export { BodyExcerpt } from './formats/body-excerpt.ts'
export { parseBoundedJson, parseBoundedText } from './formats/bounded-json.ts'
export { EventAnswerReader } from './formats/event-answer-reader.ts'
export { arrayShape, type Member, topLevelMembers, withMembers } from './formats/json-members.ts'
export { judgeByTail } from './formats/judge-by-tail.ts'
export { LabelLimit, modelLabelLimit, OTHER } from './formats/label-limit.ts'
export { MESSAGES_HEADERS, MESSAGES_VERSION_HEADER, messagesHeaders } from './formats/messages-headers.ts'
export type { PrometheusFamily, PrometheusSample } from './formats/prometheus-text.ts'
export {
  parsePrometheusText,
  printPrometheusText,
  readPrometheusText,
  writePrometheusText,
} from './formats/prometheus-text.ts'
export {
  bracketPath,
  FunctionCallItem,
  FunctionOutputItem,
  InputItem,
  type ItemOf,
  ItemPart,
  ItemReference,
  MessageItem,
  NATIVE_ITEM_TYPES,
  nullable,
  ReasoningItem,
  type TextPart,
  TextParts,
  taggedUnion,
  withItemTypes,
} from './formats/response-items.ts'
export { type ReadEvent, readEvent, type SseEvent, writeEvent } from './formats/sse-event.ts'
export { trimSlashes } from './formats/trim-slashes.ts'
export { isUuid, uuidV7, uuidV7Hex } from './formats/uuid-v7.ts'
export { WholeAnswerReader } from './formats/whole-answer-reader.ts'
export { StopSearch } from './generation/stop-search.ts'
export { hostProblem } from './net/host-problem.ts'
export { isPrivateWay } from './net/is-private-way.ts'
export { isWithin, networkProblems, readNetworks } from './net/networks.ts'
export { isPrivateAddress } from './net/private-addresses.ts'
export { type DisaggregationReport, toPairLoad } from './pair-load.ts'
export { type ConnectorMode, PairMetrics, type PairTimes } from './pair-metrics.ts'
export { messageSocket } from './socket/message-socket.ts'
export { isPublic, isShown, toClientItems, withoutPrivate } from './store/client-items.ts'
export { checkCollectionName, checkKeyPart, toRecordJson } from './store/record-rules.ts'
export { SlicedWork } from './store/sliced-work.ts'
export { storeErrors } from './store/store-errors.ts'
export { StoreMetrics } from './store/store-metrics.ts'
export { makeVersionStamps } from './store/version-stamps.ts'
export { openTaskPool, type TaskPoolOptions } from './threads/open-task-pool.ts'
export { type CollectingUpstream, collectReply } from './upstream/collect-reply.ts'
export { toWorkerReply } from './upstream/worker-reply.ts'
