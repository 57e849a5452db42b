/** Candidates as balancing passes them to policies, without a balance: all of one tier, in the rows 0, 1, 2, …, without reports. */
import type { CandidateView, WorkerEntry } from '#kernel'

export function candidatesOf(
  members: readonly WorkerEntry[],
  inFlightBySlot = new Int32Array(members.length),
): CandidateView {
  return {
    length: members.length,
    members,
    slots: Int32Array.from(members.keys()),
    inFlightBySlot,
    slownessBySlot: new Int32Array(members.length),
    hasEqualCosts: true,
    hasLoads: false,
    worker: (index) => members[index],
    slot: (index) => index,
    inFlight: (index) => inFlightBySlot[index],
    load: () => null,
    indexOfSlot: (slot) => (slot < members.length ? slot : -1),
  }
}
