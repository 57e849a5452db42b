/** What the routes ask of control: it alone holds the records and decides. */
import { defineCommand } from '#kernel'
import type { ModelInquiry } from './model-inquiries.ts'
import type { WorkerList, WorkerRecord } from './wire.ts'

/** A change that was taken on; it happens in the background. */
export interface AcceptedChange {
  readonly id: string
  readonly url: string
}

/** The request body as sent; checked on control, so that data threads load no validator. @throws invalid_field, worker_already_exists, invalid_worker_url, job_queue_full, worker_limit_reached */
export const RegisterWorker = defineCommand<unknown, AcceptedChange>('workers.register')
/** @throws worker_not_found, url_change_unsupported, job_queue_full */
export const ReplaceWorker = defineCommand<{ id: string; body: unknown }, AcceptedChange>('workers.replace')
/** @throws worker_not_found, job_queue_full */
export const PatchWorker = defineCommand<{ id: string; body: unknown }, AcceptedChange>('workers.patch')
/** @throws worker_not_found, job_queue_full */
export const RemoveWorker = defineCommand<string, AcceptedChange>('workers.remove')
/** Resolves when the cloud services that may know the model have been asked, or could not be. */
export const LearnModels = defineCommand<ModelInquiry, void>('workers.learn-models')
/** Of those that serve the model, or of all. */
export const ListWorkers = defineCommand<string | null, WorkerList>('workers.list')
/** @throws worker_not_found */
export const GetWorker = defineCommand<string, WorkerRecord>('workers.get')
