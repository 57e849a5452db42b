/** A call to an engine that ended with a status other than OK. */
export class GrpcFault extends Error {
  /** Of gRPC. */
  readonly code: number

  constructor(code: number, details: string) {
    super(details === '' ? `status ${code}` : details)
    this.name = 'GrpcFault'
    this.code = code
  }
}

export const UNIMPLEMENTED = 12
