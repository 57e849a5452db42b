/** The registry as other plugins use it: discovery hands workers over and takes them back. */
import type { KnownWorker, WorkerControls, WorkerRegistryService } from '#kernel'
import { GatewayError } from '#kernel'
import type { WorkerManager } from './manager.ts'
import { readSpec } from './read-body.ts'
import type { WorkerRecord } from './wire.ts'

export function registryService(manager: WorkerManager, controls: WorkerControls): WorkerRegistryService {
  return {
    register: (body) => manager.register(readSpec(body, controls)),
    remove: (id) => void manager.remove(id),
    // Registrations under way are found by id only.
    list: () =>
      manager
        .list(null)
        .workers.filter(({ id }) => manager.isRegistered(id))
        .map((record) => toKnown(record, true)),
    find: (id) => {
      try {
        return toKnown(manager.get(id), manager.isRegistered(id))
      } catch (error) {
        if (error instanceof GatewayError && error.code === 'worker_not_found') return undefined
        throw error
      }
    },
  }
}

function toKnown(record: WorkerRecord, isRegistered: boolean): KnownWorker {
  const { id, url, labels = {}, status, job_status: job, dp_base_url: baseUrl } = record
  return {
    id,
    // All ranks of an engine are one worker to whoever found it.
    url: baseUrl ?? url,
    labels,
    status: isRegistered ? statusOf(status) : job?.status === 'failed' ? 'failed' : 'pending',
  }
}

/** One whose probes have failed for good is there all the same, and may come back. */
function statusOf(status: WorkerRecord['status']): KnownWorker['status'] {
  return status === 'failed' ? 'not_ready' : (status as KnownWorker['status'])
}
