/** Commands that the routes send to control, which alone holds the worker records. */
import { defineCommand } from '#kernel'
import type { Discovery, WorkerList, WorkerQuery, WorkerRecord } from './wire.ts'

/** A change that was accepted and is carried out in the background. */
export interface AcceptedChange {
  readonly id: string
  readonly url: string
}

/** A client's API key, by the header that carried it. */
export interface CallerKey {
  readonly header: 'authorization' | 'x-api-key'
  readonly key: string
}

/**
 * Takes the request body as sent: it is validated on control, so that data threads load no validator.
 * @throws invalid_field, worker_already_exists, invalid_worker_url, job_queue_full, worker_limit_reached
 */
export const RegisterWorker = defineCommand<unknown, AcceptedChange>('workers.register')
/** @throws worker_not_found, url_change_unsupported, job_queue_full */
export const ReplaceWorker = defineCommand<{ id: string; body: unknown }, AcceptedChange>('workers.replace')
/** @throws worker_not_found, job_queue_full */
export const PatchWorker = defineCommand<{ id: string; body: unknown }, AcceptedChange>('workers.patch')
/** @throws worker_not_found, job_queue_full */
export const RemoveWorker = defineCommand<string, AcceptedChange>('workers.remove')
/** Resolves when the cloud services that may get the client's key have answered or failed. */
export const LearnModels = defineCommand<CallerKey, void>('workers.learn-models')
export const ListWorkers = defineCommand<WorkerQuery, WorkerList>('workers.list')
/** Takes the request body as `RegisterWorker`. @throws invalid_field, invalid_worker_url, discovery_failed */
export const DiscoverWorker = defineCommand<unknown, Discovery>('workers.discover')
/** @throws worker_not_found */
export const GetWorker = defineCommand<string, WorkerRecord>('workers.get')
