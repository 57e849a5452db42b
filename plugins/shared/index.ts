/** Helpers that several plugins use (`#shared`): no module state that outlives a caller's object, no service tokens. */
export { parseBoundedJson, parseBoundedText, type WorkerMessage, workerMessage } from '#kernel'
export { answerErrors, clientError, streamFailure } from './answers/answer-errors.ts'
export { type AnswerLimits, AnswerReader, WholeAnswerReader } from './answers/answer-reader.ts'
export { BodyExcerpt } from './answers/body-excerpt.ts'
export { type CollectingUpstream, collectResponse, toWorkerResponse } from './answers/collect-response.ts'
export { EventAnswerReader } from './answers/event-answer-reader.ts'
export { StopSearch } from './answers/stop-search.ts'
export { streamCompletionCheck } from './answers/stream-completion.ts'
export { addUsage, readLogprobs, tokenCount, toLogprob } from './answers/usage.ts'
export {
  errorOfEvent,
  readAnswerObject,
  readStreamEvent,
} from './answers/worker-message.ts'
export { foldersFrom } from './files/folders-from.ts'
export { FileError, readRootedFile, resolveInRoots } from './files/read-rooted-file.ts'
export { editItemTexts, editTexts } from './formats/edit-texts.ts'
export { extraContentOf, isShortExtraContent, withExtraContent } from './formats/extra-content.ts'
export { imageNote } from './formats/image-note.ts'
export { type Include, includeNames, isInclude } from './formats/include.ts'
export { newId, newItemId } from './formats/item-ids.ts'
export { arrayShape, type Member, topLevelMembers, withMembers } from './formats/json-members.ts'
export { parseCallArguments, tryParseJson } from './formats/lenient-json.ts'
export { MESSAGES_HEADERS, MESSAGES_VERSION_HEADER, messagesHeaders } from './formats/messages-headers.ts'
export { contextLengthOf, isEmbeddingModel, modelIdOf, positiveCount } from './formats/model-labels.ts'
export {
  countPromptTokens,
  estimateMessageTokens,
  estimatePromptTokens,
  templatePrompt,
} from './formats/prompt-tokens.ts'
export {
  FunctionCallItem,
  FunctionOutputItem,
  InputItem,
  type ItemOf,
  ItemPart,
  ItemReference,
  MessageItem,
  NATIVE_ITEM_TYPES,
  ReasoningItem,
  type TextPart,
  TextParts,
  withItemTypes,
} from './formats/response-items.ts'
export {
  bracketPath,
  nullable,
  nullableStringOrList,
  stringOrList,
  type Unchecked,
  unionBy,
} from './formats/schemas.ts'
export { readEvent, writeEvent } from './formats/sse-event.ts'
export { withStrictRoles } from './formats/strict-roles.ts'
export { MAX_TOOL_NAME, memberName, shortened, withDigest } from './formats/tool-names.ts'
export { isUuid, uuidV7 } from './formats/uuid-v7.ts'
export { ignoredMembers, warningHeader } from './formats/warning-header.ts'
export { type KeyEntry, keyEntryMembers, keyEntryProblems, toKeyRecord } from './keys/key-entry.ts'
export { LabelLimit, modelLabelLimit, OTHER } from './metrics/label-limit.ts'
export type { PrometheusFamily, PrometheusSample } from './metrics/prometheus-text.ts'
export {
  parsePrometheusText,
  printPrometheusText,
  readPrometheusText,
} from './metrics/prometheus-text.ts'
export { failedExchange } from './net/failed-exchange.ts'
export { fanOut } from './net/fan-out.ts'
export { hostProblem } from './net/listen-host.ts'
export { isWithin, networkProblems, readNetworks } from './net/networks.ts'
export { pinnedLookup, type Resolver } from './net/pinned-lookup.ts'
export { isMetadataHost, isPrivateAddress } from './net/private-addresses.ts'
export { isSecureUrl, trimSlashes } from './net/urls.ts'
export { WorkerHashes } from './net/worker-hashes.ts'
export { type BootstrapServer, bootstrapHostOf } from './pairs/bootstrap-host.ts'
export { type DisaggregationReport, toPairLoad } from './pairs/pair-load.ts'
export { type ConnectorMode, PairMetrics, type PairTimes } from './pairs/pair-metrics.ts'
export { messageSocket } from './socket/message-socket.ts'
export { isPublic, isShown, toClientItems, withoutPrivate } from './store/client-items.ts'
export { PeriodicBatches } from './store/periodic-batches.ts'
export { countRecords, pagesOf, tenantsOf } from './store/record-pages.ts'
export {
  checkCollectionName,
  checkKeyPart,
  makeVersionStamps,
  parseRecord,
  toRecordJson,
} from './store/record-rules.ts'
export { findRecordStore } from './store/record-store.ts'
export {
  isUnreadableRecord,
  storageOverloaded,
  storageUnavailable,
  storeErrors,
} from './store/store-errors.ts'
export { runStoreOperation, StoreMetrics } from './store/store-metrics.ts'
export {
  DEFAULT_TENANTS,
  pageLimits,
  StoredCollection,
  type WriteChanges,
} from './store/stored-collection.ts'
export { CoalescedWork } from './threads/coalesced-work.ts'
export { openTaskPool, type TaskPoolOptions } from './threads/task-pool.ts'
