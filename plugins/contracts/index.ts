/**
 * What only plugins agree on, and its door (`#contracts`): services that one plugin provides to others, and formats that
 * several read or write. The kernel knows none of it.
 */

export { BodyExcerpt } from './formats/body-excerpt.ts'
export { arrayShape, type Member, topLevelMembers, withMembers } from './formats/json-members.ts'
export { LabelLimit, modelLabelLimit, OTHER } from './formats/label-limit.ts'
export type { PrometheusFamily, PrometheusSample } from './formats/prometheus-text.ts'
export { parsePrometheusText, writePrometheusText } from './formats/prometheus-text.ts'
export { trimSlashes } from './formats/trim-slashes.ts'
export { isUuid, uuidV7, uuidV7Hex } from './formats/uuid-v7.ts'
export * from './generation/embedding.ts'
export type * from './generation/generation.ts'
export type * from './generation/generation-request.ts'
export * from './generation/generations.ts'
export * from './generation/output-parser.ts'
export * from './generation/tokenizer.ts'
export * from './generation/tool-loop.ts'
export { type ConnectorMode, PairMetrics, type PairTimes } from './pair-metrics.ts'
export * from './request-tracing.ts'
export * from './store/history.ts'
export { checkCollectionName, checkKeyPart, toRecordJson } from './store/record-rules.ts'
export { SlicedWork } from './store/sliced-work.ts'
export * from './store/store.ts'
export { storeErrors } from './store/store-errors.ts'
export { StoreMetrics } from './store/store-metrics.ts'
export { makeVersionStamps } from './store/version-stamps.ts'
export * from './worker-registry.ts'
