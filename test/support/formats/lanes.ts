/** Clients and workers of the three formats. */
import { VENDOR } from '../../api/messages-fleet.ts'
import type { FormatName } from './sdk-formats.ts'

export const FORMATS = ['chat', 'responses', 'messages'] as const satisfies readonly FormatName[]
/** Of workers: gRPC engines take token ids. */
export const WORKER_FORMATS = [...FORMATS, 'grpc'] as const
export type WorkerName = (typeof WORKER_FORMATS)[number]
export const TITLES = { chat: 'Chat', responses: 'Responses', messages: 'Messages', grpc: 'gRPC' } as const
export const ROUTES = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
} as const
export const WORKERS = { chat: {}, responses: { spec: { apis: ['responses'] } }, messages: VENDOR } as const
